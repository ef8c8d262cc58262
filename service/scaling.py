"""One revision over the sizes of its case families, beside the baseline."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, cast

import sqlalchemy as sa
from sqlmodel import Session, col, or_, select

from contract.devices import DeviceClass
from contract.limits import LIMITS
from contract.suite import Case
from contract.views import Curve, Roofs, Scaling, ScalingPoint
from service.kernels import series_order
from service.metrics import BASELINE_PREFIX, FLOPS_PER_BYTE, OVER_BASELINE, THROUGHPUT
from service.models import Comparison, Evaluation, Kernel, Measurement, Project, Revision, Series, Suite
from service.problems import ProblemError, not_found

_MEMORY = "memory_throughput"
_PER_S = {"GFLOPS": 1e9, "TFLOPS": 1e12, "PFLOPS": 1e15, "GB/s": 1e9, "TB/s": 1e12}


def scaling_out(
    session: Session,
    *,
    project: Project,
    kernel: Kernel,
    device_class: DeviceClass,
    revision: str | None,
    family: str | None,
    metric: str,
) -> Scaling:
    """`revision`: a label, an id or a digest; the newest measured one of the mainline by default. Raises 404
    `unknown-revision`, and `unknown-family` where the suite has no such family."""
    suite = session.get(Suite, kernel.suite_id) if kernel.suite_id else None
    cases = [Case.model_validate(each) for each in suite.content.get("cases", ())] if suite else []
    families: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        if case.family and family in {None, case.family}:
            families[case.family].append(case)
    if family is not None and family not in families:
        names = "; ".join(dict.fromkeys(case.family for case in cases if case.family)) or "none"
        raise ProblemError(
            404, "unknown-family", f"{kernel.name} has no case family {family!r} (it has {names})", field="family"
        )
    head, evaluation = _measured(session, kernel, device_class, revision)
    values = _values(
        session, evaluation, [metric, BASELINE_PREFIX + metric, OVER_BASELINE, THROUGHPUT, FLOPS_PER_BYTE, _MEMORY]
    )
    of_metric = next((row for (_, name), row in values.items() if name == metric), None)
    of_throughput = next((row for (_, name), row in values.items() if name == THROUGHPUT), None)
    return Scaling(
        project=project.slug,
        kernel=kernel.name,
        device_class=device_class,
        revision=head.id,
        label=head.label,
        evaluation=evaluation,
        metric=metric,
        unit=of_metric.unit if of_metric else "",
        better=cast("Any", of_metric.better) if of_metric else None,
        throughput_unit=of_throughput.unit if of_throughput else None,
        baseline=_baseline(session, evaluation),
        roofs=_roofs(device_class, suite, unit=of_throughput.unit) if suite and of_throughput else None,
        curves=tuple(_curve(name, own, values=values, metric=metric) for name, own in families.items()),
    )


def _roofs(device_class: DeviceClass, suite: Suite, *, unit: str) -> Roofs | None:
    limits, per_s = LIMITS.get(device_class), _PER_S.get(unit)
    if limits is None or per_s is None:
        return None
    flops = limits.flops(suite.content["dtype"])
    return Roofs(throughput=flops / per_s, per_intensity=limits.bytes_per_s / per_s)


def _measured(
    session: Session, kernel: Kernel, device_class: DeviceClass, name: str | None
) -> tuple[Revision, str | None]:
    """The revision, and its newest evaluation on the class that has trusted values."""
    has_values = (
        sa.select(col(Measurement.id))
        .where(col(Measurement.evaluation_id) == col(Evaluation.id), col(Measurement.trusted).is_(True))
        .exists()
    )
    query = (
        select(Revision, Evaluation.id)
        .join(Evaluation, col(Evaluation.revision_id) == col(Revision.id))
        .where(Revision.kernel_id == kernel.id, Evaluation.device_class == device_class, has_values)
    )
    if name is None:
        query = query.where(col(Revision.mainline).is_(True))
    else:
        query = query.where(or_(Revision.id == name, Revision.digest == name, Revision.label == name))
    order = (*(part.desc() for part in series_order()), col(Evaluation.id).desc())
    found = session.exec(query.order_by(col(Revision.mainline).desc(), *order).limit(1)).first()
    if found is not None:
        return found[0], found[1]
    named = select(Revision).where(Revision.kernel_id == kernel.id)
    if name is not None:
        named = named.where(or_(Revision.id == name, Revision.digest == name, Revision.label == name))
    unmeasured = session.exec(named.order_by(col(Revision.id).desc()).limit(1)).first()
    if unmeasured is None:
        raise not_found("revision", name or "measured on this class", field="revision")
    return unmeasured, None


def _values(session: Session, evaluation: str | None, metrics: Sequence[str]) -> dict[tuple[str, str], Any]:
    """(case, metric) -> value, low, high, unit, better."""
    query = (
        sa.select(
            col(Series.case),
            col(Series.metric),
            col(Series.unit),
            col(Series.better),
            col(Measurement.value),
            col(Measurement.low),
            col(Measurement.high),
        )
        .join(Measurement, col(Measurement.series_id) == col(Series.id))
        .where(
            col(Measurement.evaluation_id) == evaluation,
            col(Measurement.trusted).is_(True),
            col(Series.metric).in_(metrics),
        )
    )
    return {(row.case, row.metric): row for row in session.execute(query)}


def _baseline(session: Session, evaluation: str | None) -> str | None:
    query = sa.select(col(Comparison.baseline)).where(
        col(Comparison.evaluation_id) == evaluation, col(Comparison.baseline).is_not(None)
    )
    return session.execute(query.limit(1)).scalar()


def _curve(name: str, cases: Sequence[Case], *, values: dict[tuple[str, str], Any], metric: str) -> Curve:
    growing = [dim for dim in cases[0].dims if len({case.dims[dim] for case in cases}) > 1] or list(cases[0].dims)[:1]
    # Dimensions of the same value in every case are one axis: m=n=k. Else the first that grows stands for all.
    together = [dim for dim in growing if all(case.dims[dim] == case.dims[growing[0]] for case in cases)]
    points = [_point(case, x=case.dims[growing[0]], values=values, metric=metric) for case in cases]
    return Curve(family=name, axis="=".join(together), points=tuple(sorted(points, key=lambda point: point.x)))


def _point(case: Case, *, x: int, values: dict[tuple[str, str], Any], metric: str) -> ScalingPoint:
    def of(name: str) -> Any:
        return values.get((case.id, name))

    own, baseline, share = of(metric), of(BASELINE_PREFIX + metric), of(OVER_BASELINE)
    throughput = of(THROUGHPUT)
    return ScalingPoint(
        case=case.id,
        title=case.title,
        x=x,
        dims=case.dims,
        value=own.value if own else None,
        low=own.low if own else None,
        high=own.high if own else None,
        baseline=baseline.value if baseline else _from_share(own, share, metric),
        over_baseline=share.value if share else None,
        throughput=throughput.value if throughput else None,
        flops_per_byte=_intensity(of(FLOPS_PER_BYTE), throughput, of(_MEMORY)),
    )


def _from_share(own: Any, share: Any, metric: str) -> float | None:
    """The baseline's value where only the share of its speed was kept."""
    if own is None or share is None or not share.value or metric not in {"time", THROUGHPUT}:
        return None
    return float(own.value * share.value if metric == "time" else own.value / share.value)


def _intensity(stored: Any, throughput: Any, memory: Any) -> float | None:
    """As it was reported, else from what was moved while it was computed."""
    if stored is not None:
        return float(stored.value)
    if throughput is None or memory is None or throughput.unit not in _PER_S or memory.unit not in _PER_S:
        return None
    moved = memory.value * _PER_S[memory.unit]
    return float(throughput.value * _PER_S[throughput.unit] / moved) if moved else None
