"""What the machine code says of itself, as series of no case: registers, spills, instructions over the revisions."""

from collections.abc import Mapping, Sequence

from sqlmodel import Session, select

from contract.devices import ARCHITECTURES, DeviceClass
from contract.names import MetricName
from contract.statics import STATIC_METRICS, FunctionStatics, by_architecture, static_value, unit_of
from service.models import Evaluation, Measurement, Series

NO_CASE = ""


def static_metrics(
    statics: Sequence[FunctionStatics], device_class: DeviceClass
) -> Mapping[MetricName, tuple[float, str]]:
    """metric -> (value, unit); one that nobody reported is left out.

    Where the machine code is not for the class itself (a CPU's node compiles for cards that it has not), the
    architecture is part of the metric's name: `registers.sm_90a`.
    """
    own = ARCHITECTURES.get(device_class)
    found: dict[MetricName, tuple[float, str]] = {}
    for architecture, functions in by_architecture(statics).items():
        of_a_gpu = architecture.startswith("sm_")
        suffix = "" if architecture == own or (own is None and not of_a_gpu) else f".{architecture}"
        for metric in STATIC_METRICS:
            value = static_value(functions, metric)
            if value is not None:
                found[f"{metric}{suffix}"] = (float(value), unit_of(metric))
    return found


def add_static_measurements(
    session: Session, evaluation: Evaluation, statics: Sequence[FunctionStatics], *, trusted: bool
) -> None:
    """Store them as measurements of `evaluation`. The caller holds the kernel, so that no series is made twice. A
    metric that the history keeps in another unit (an imported one) is left out."""
    metrics = static_metrics(statics, DeviceClass(evaluation.device_class))
    query = select(Series).where(
        Series.kernel_id == evaluation.kernel_id, Series.device_class == evaluation.device_class, Series.case == NO_CASE
    )
    lines = {row.metric: row for row in session.exec(query).all()}
    for name, (value, unit) in metrics.items():
        line = lines.get(name)
        if line is None:
            line = Series(
                kernel_id=evaluation.kernel_id,
                device_class=evaluation.device_class,
                case=NO_CASE,
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
