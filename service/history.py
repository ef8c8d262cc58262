"""A kernel's series: points in the order of the mainline, in one query however many there are."""

from __future__ import annotations

from typing import Any, cast

import sqlalchemy as sa
from sqlalchemy.orm import aliased
from sqlmodel import Session, col, select

from contract.api import Point
from contract.api import Series as SeriesOut
from contract.devices import DeviceClass
from contract.outcomes import Outcome, State
from service.importing import BASELINE_PREFIX, OVER_BASELINE
from service.kernels import LAST, kernel_outs, series_order
from service.models import Comparison, Evaluation, Kernel, Measurement, Project, Revision, Series
from service.problems import ProblemError, not_found

# Neither says anything of the kernel.
_NOT_ITS_FAULT = (Outcome.INFRASTRUCTURE_ERROR, Outcome.CANCELLED)
_SHOWN_WITHOUT_VALUE = frozenset({Outcome.INCORRECT, Outcome.BUILD_FAILED, Outcome.UNTRUSTED, Outcome.BUILT})


def series_out(
    session: Session,
    *,
    project: Project,
    kernel: Kernel,
    device_class: DeviceClass,
    case_id: str,
    metric: str,
    limit: int,
    before: str | None = None,
    mainline: bool = False,
) -> SeriesOut:
    """The newest `limit` points of a series, oldest first; `before`: only those before that revision.

    A revision stands for itself by its newest evaluation on the class that says something of it: one that measured
    before one that only compiled. Those that failed are points without a value. `mainline`: those alone.
    """
    found = session.exec(
        select(Series).where(
            Series.kernel_id == kernel.id,
            Series.device_class == device_class,
            Series.case == case_id,
            Series.metric == metric,
        )
    ).first()
    if found is None:
        _check_known(session, project, kernel, device_class=device_class, case_id=case_id, metric=metric)
    query = _points_query(kernel, device_class=device_class, case_id=case_id, metric=metric)
    if mainline:
        query = query.where(col(Revision.mainline).is_(True))
    if before is not None:
        query = query.where(_is_before(session, kernel, before))
    order = series_order()
    rows = session.execute(query.order_by(*(part.desc() for part in order)).limit(limit)).all()
    rows = list(reversed(rows))
    last = next((row for row in reversed(rows) if row.baseline and row.value is not None), None)
    return SeriesOut(
        project=project.slug,
        kernel=kernel.name,
        device_class=device_class,
        case=case_id,
        metric=metric,
        unit=found.unit if found else "",
        better=cast("Any", found.better) if found else None,
        baseline=last.baseline if last else None,
        baseline_value=_baseline_value(last, metric) if last else None,
        points=tuple(_point(row) for row in rows),
    )


def _baseline_value(row: Any, metric: str) -> float | None:
    """In the series' unit. Where only the share of it was measured, the value follows from the share."""
    if metric in {OVER_BASELINE, "of_baseline"}:
        return 1.0
    if row.baseline_value is not None:
        return float(row.baseline_value)
    if row.of_baseline and metric == "throughput":
        return float(row.value / row.of_baseline)
    if row.of_baseline and metric == "time":
        return float(row.value * row.of_baseline)
    return None


def _point(row: Any) -> Point:
    return Point(
        revision=row.revision,
        evaluation=row.evaluation,
        label=row.label,
        commit=row.commit,
        summary=row.summary,
        mainline=row.mainline,
        at=row.finished_at or row.created_at,
        value=row.value,
        low=row.low,
        high=row.high,
        outcome=row.outcome,
        verdict=row.verdict,
        base=row.base,
        ratio=row.ratio,
        interval=(row.ratio_low, row.ratio_high) if row.ratio_low is not None and row.ratio_high is not None else None,
        of_baseline=row.of_baseline,
    )


def _is_before(session: Session, kernel: Kernel, revision_id: str) -> Any:
    named = session.exec(select(Revision).where(Revision.id == revision_id, Revision.kernel_id == kernel.id)).first()
    if named is None:
        raise not_found("revision", revision_id, field="before")
    key = (
        LAST if named.first_parent_index is None else named.first_parent_index,
        LAST if named.position is None else named.position,
        named.created_at,
        named.id,
    )
    return sa.tuple_(*series_order()) < key


def _points_query(kernel: Kernel, *, device_class: DeviceClass, case_id: str, metric: str) -> sa.Select[Any]:
    base, share, beside = aliased(Revision), aliased(Measurement), aliased(Measurement)
    value, compared, evaluation = col(Measurement.value), Comparison, Evaluation

    def measured(what: type[Measurement], metric: str) -> sa.ColumnElement[bool]:
        """`what` is the evaluation's value of `metric` in this case."""
        series = (
            sa.select(col(Series.id))
            .where(col(Series.kernel_id) == kernel.id, col(Series.device_class) == device_class)
            .where(col(Series.case) == case_id, col(Series.metric) == metric)
            .scalar_subquery()
        )
        return sa.and_(
            col(what.evaluation_id) == col(evaluation.id), col(what.series_id) == series, col(what.trusted).is_(True)
        )

    newest = _newest_evaluations(kernel, device_class)
    columns: list[Any] = [
        col(Revision.id).label("revision"),
        col(evaluation.id).label("evaluation"),
        col(Revision.label),
        col(Revision.commit),
        col(Revision.summary),
        col(Revision.mainline),
        col(evaluation.created_at),
        col(evaluation.finished_at),
        value,
        col(Measurement.low),
        col(Measurement.high),
        col(evaluation.outcome),
        col(compared.verdict),
        col(base.label).label("base"),
        col(compared.ratio),
        col(compared.low).label("ratio_low"),
        col(compared.high).label("ratio_high"),
        col(compared.baseline),
        col(share.value).label("of_baseline"),
        col(beside.value).label("baseline_value"),
    ]
    of_case = sa.and_(col(compared.evaluation_id) == col(evaluation.id), col(compared.case) == case_id)
    return (
        sa.select(*columns)
        .select_from(newest)
        .join(evaluation, col(evaluation.id) == newest.c.id)
        .join(Revision, col(Revision.id) == col(evaluation.revision_id))
        .outerjoin(Measurement, measured(Measurement, metric))
        .outerjoin(compared, of_case)
        .outerjoin(base, col(base.id) == col(evaluation.base_id))
        .outerjoin(share, measured(share, OVER_BASELINE))
        .outerjoin(beside, measured(beside, BASELINE_PREFIX + metric))
        .where(newest.c.place == 1)
        .where(sa.or_(value.is_not(None), col(evaluation.outcome).in_(_SHOWN_WITHOUT_VALUE)))
    )


def _newest_evaluations(kernel: Kernel, device_class: DeviceClass) -> sa.Subquery:
    """(id, place): place 1 is what a revision stands for itself by on the class."""
    only_built = sa.case((col(Evaluation.outcome) == Outcome.BUILT, 1), else_=0)
    place = sa.func.row_number().over(
        partition_by=col(Evaluation.revision_id), order_by=(only_built, col(Evaluation.id).desc())
    )
    return (
        sa.select(col(Evaluation.id).label("id"), place.label("place"))
        .where(col(Evaluation.kernel_id) == kernel.id, col(Evaluation.device_class) == device_class)
        .where(col(Evaluation.state) == State.FINISHED, col(Evaluation.outcome).not_in(_NOT_ITS_FAULT))
        .subquery()
    )


def _check_known(
    session: Session, project: Project, kernel: Kernel, *, device_class: DeviceClass, case_id: str, metric: str
) -> None:
    """An empty series is an answer where the kernel knows class, case and metric; else 404 says which it doesn't."""
    known = next(one for one in kernel_outs(session, project) if one.name == kernel.name)
    for column, asked, names in (
        ("device_class", device_class, known.device_classes),
        ("case", case_id, known.cases),
        ("metric", metric, known.metrics),
    ):
        if asked not in names and not (column == "metric" and not names):
            raise ProblemError(
                404,
                "unknown-series",
                f"{kernel.name} has no {column.replace('_', ' ')} {str(asked)!r}"
                f" (it has {'; '.join(names) or 'none yet'})",
                field=column,
            )
