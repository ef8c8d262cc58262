"""What the machine code says of itself, as series of no case: registers, spills and code over the revisions."""

from collections.abc import Sequence

from sqlmodel import Session, select

from contract.devices import ARCHITECTURES, DeviceClass
from contract.statics import FunctionStatics
from service.models import Evaluation, Measurement, Series

# Of the function that has most of it; the rest is summed over the functions.
_GREATEST = {"registers": "1", "stack_bytes": "B", "shared_bytes": "B"}
_SUMMED = {"spill_bytes": ("spill_store_bytes", "spill_load_bytes"), "code_bytes": ("code_bytes",)}


def static_metrics(statics: Sequence[FunctionStatics], device_class: DeviceClass) -> dict[str, tuple[float, str]]:
    """metric -> (value, unit), of the code for the class's architecture; a metric that nobody reported is left out.

    Code for other architectures (a node may compile for several) is another line's.
    """
    architecture = ARCHITECTURES.get(device_class)
    own = [each for each in statics if _is_for(each.architecture, architecture)]
    found: dict[str, tuple[float, str]] = {}
    for name, unit in _GREATEST.items():
        known = [value for each in own if (value := getattr(each, name)) is not None]
        if known:
            found[name] = (float(max(known)), unit)
    for name, parts in _SUMMED.items():
        known = [value for each in own for part in parts if (value := getattr(each, part)) is not None]
        if known:
            found[name] = (float(sum(known)), "B")
    return found


def _is_for(architecture: str, wanted: str | None) -> bool:
    """`wanted`: None on a CPU, whose code is whatever isn't a GPU's."""
    return not architecture.startswith("sm_") if wanted is None else architecture == wanted


def add_static_measurements(
    session: Session, evaluation: Evaluation, statics: Sequence[FunctionStatics], *, trusted: bool
) -> None:
    """Store them as measurements of `evaluation`. The caller holds the kernel, so that no series is made twice. A
    metric that the history keeps in another unit (an imported one) is left out."""
    metrics = static_metrics(statics, DeviceClass(evaluation.device_class))
    query = select(Series).where(
        Series.kernel_id == evaluation.kernel_id, Series.device_class == evaluation.device_class, Series.case == ""
    )
    lines = {row.metric: row for row in session.exec(query).all()}
    for name, (value, unit) in metrics.items():
        line = lines.get(name)
        if line is None:
            line = Series(
                kernel_id=evaluation.kernel_id,
                device_class=evaluation.device_class,
                case="",
                metric=name,
                unit=unit,
            )
            session.add(line)
            session.flush()
        if line.unit == unit:
            session.add(
                Measurement(
                    series_id=line.id,
                    revision_id=evaluation.revision_id,
                    evaluation_id=evaluation.id,
                    value=value,
                    trusted=trusted,
                )
            )
