"""A kernel's series: points in the order of the mainline, in a fixed number of queries however many there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.orm import aliased
from sqlmodel import Session, col, select

from contract.api import Point
from contract.api import Series as SeriesOut
from contract.devices import DeviceClass
from service.kernels import kernel_outs
from service.lines import FAILED, Place, among, line_of, values_of
from service.metrics import BASELINE_PREFIX, OVER_BASELINE
from service.models import Comparison, Evaluation, Kernel, Project, Revision, Series
from service.problems import ProblemError
from service.statics import NO_CASE
from service.thinning import thin

_POINTS = TypeAdapter(tuple[Point, ...])
_NOTHING = (None,) * 4
_NOT_COMPARED = (None,) * 6


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
    after: str | None = None,
    mainline: bool = False,
    points: int | None = None,
    version: str | None = None,
) -> SeriesOut:
    """The newest `limit` points of a series, oldest first; `before`, `after`: only those on that side of a revision.

    A revision stands for itself by its newest evaluation on the class that says something of it: one that measured
    before one that only compiled. Those that failed are points without a value. `mainline`: those alone. `points`:
    thinned to about so many (service.thinning); failed, faster and slower revisions stay whatever it says.
    `version`: of the standing, with which what all series of the class share is kept.
    """
    beside = {"share": OVER_BASELINE, "baseline": BASELINE_PREFIX + metric}
    series = {
        row.metric: row
        for row in session.exec(
            select(Series).where(
                Series.kernel_id == kernel.id,
                Series.device_class == device_class,
                Series.case == case_id,
                col(Series.metric).in_((metric, *beside.values())),
            )
        ).all()
    }
    found = series.get(metric)
    if found is None:
        _check_known(session, project, kernel, device_class=device_class, case_id=case_id, metric=metric)
    own = values_of(session, found.id if found else None)
    line = line_of(
        session,
        kernel,
        device_class=device_class,
        values=own,
        case_id=case_id,
        before=before,
        after=after,
        mainline=mainline,
        version=version,
    )
    page = line[-limit:]
    shown = _thinned(page, points)
    ids = [page[place].evaluation for place in shown]
    # Of what lies beside the line only what is shown is looked up.
    values = {"value": own} | {
        role: values_of(session, series[name].id if name in series else None, evaluation_ids=ids)
        for role, name in beside.items()
    }
    rows = _rows(session, ids)
    compared = _comparisons(session, case_id, ids)
    # Validated in one go: a model made for each of a thousand points would take longer than the queries.
    made = _POINTS.validate_python(
        [
            _point(rows[evaluation], place=place, values=values, compared=compared.get(evaluation))
            for place, evaluation in zip(shown, ids, strict=True)
        ]
    )
    baseline, baseline_value = _baseline(made, metric=metric, beside=values["baseline"], compared=compared)
    return SeriesOut(
        project=project.slug,
        kernel=kernel.name,
        device_class=device_class,
        case=case_id,
        metric=metric,
        unit=found.unit if found else "",
        better=cast("Any", found.better) if found else None,
        baseline=baseline,
        baseline_value=baseline_value,
        points=made,
        total=len(page),
        earlier=page[0].revision if len(line) > len(page) else None,
    )


def _thinned(page: Sequence[Place], points: int | None) -> list[int]:
    """Places to show. The mainline and what hangs beside it are two lines, each with its own extremes."""
    if points is None:
        return list(range(len(page)))
    kept = [place.outcome in FAILED or place.verdict is not None for place in page]
    shown: set[int] = set()
    for mainline in (True, False):
        own = [place.value if place.mainline is mainline else None for place in page]
        marked = [keep and place.mainline is mainline for keep, place in zip(kept, page, strict=True)]
        if any(value is not None for value in own) or any(marked):
            shown.update(thin(own, kept=marked, points=points))
    return sorted(shown)


def _baseline(
    points: tuple[Point, ...], *, metric: str, beside: Mapping[str, Any], compared: Mapping[str, Any]
) -> tuple[str | None, float | None]:
    """The newest point's baseline: its name, and its value in the series' unit. Where only the share of it was
    measured, the value follows from the share."""
    for point in reversed(points):
        row = compared.get(point.evaluation or "")
        if point.value is None or row is None or row.baseline is None:
            continue
        value = beside.get(point.evaluation or "")
        if metric in {OVER_BASELINE, "of_baseline"}:
            return row.baseline, 1.0
        if value is not None:
            return row.baseline, float(value.value)
        if point.of_baseline and metric in {"throughput", "time"}:
            return row.baseline, point.value * point.of_baseline ** (1 if metric == "time" else -1)
        return row.baseline, None
    return None, None


def _point(row: Any, *, place: int, values: Mapping[str, Mapping[str, Any]], compared: Any) -> dict[str, Any]:
    """The fields of a Point. Rows are taken apart at once: a look-up by name costs as much as all of the rest."""
    evaluation, revision, label, commit, summary, mainline, at, outcome, base = row
    _, value, low, high = values["value"].get(evaluation) or _NOTHING
    _, of_baseline, *_ = values["share"].get(evaluation) or _NOTHING
    _, verdict, ratio, least, most, _ = compared or _NOT_COMPARED
    return {
        "place": place,
        "revision": revision,
        "evaluation": evaluation,
        "label": label,
        "commit": commit,
        "summary": summary,
        "mainline": mainline,
        "at": at,
        "value": value,
        "low": low,
        "high": high,
        "outcome": outcome,
        "verdict": verdict,
        "base": base,
        "ratio": ratio,
        "interval": None if least is None or most is None else (least, most),
        "of_baseline": of_baseline,
    }


def _comparisons(session: Session, case_id: str, evaluation_ids: Sequence[str]) -> dict[str, Any]:
    """evaluation -> verdict, ratio and its interval, baseline; without the pairs, which can be a megabyte."""
    query = sa.select(
        col(Comparison.evaluation_id),
        col(Comparison.verdict),
        col(Comparison.ratio),
        col(Comparison.low),
        col(Comparison.high),
        col(Comparison.baseline),
    ).where(col(Comparison.case) == case_id, among(session, col(Comparison.evaluation_id), evaluation_ids))
    return {row[0]: row for row in session.connection().execute(query).all()}


def _rows(session: Session, evaluation_ids: Sequence[str]) -> dict[str, Any]:
    """evaluation -> what a point says of its revision."""
    base = aliased(Revision)
    columns: list[Any] = [
        col(Evaluation.id).label("evaluation"),
        col(Revision.id).label("revision"),
        col(Revision.label),
        col(Revision.commit),
        col(Revision.summary),
        col(Revision.mainline),
        sa.func.coalesce(col(Evaluation.finished_at), col(Evaluation.created_at)).label("at"),
        col(Evaluation.outcome),
        col(base.label).label("base"),
    ]
    query = (
        sa.select(*columns)
        .select_from(Evaluation)
        .join(Revision, col(Revision.id) == col(Evaluation.revision_id))
        .outerjoin(base, col(base.id) == col(Evaluation.base_id))
        .where(among(session, col(Evaluation.id), evaluation_ids))
    )
    return {row[0]: row for row in session.connection().execute(query).all()}


def _check_known(
    session: Session, project: Project, kernel: Kernel, *, device_class: DeviceClass, case_id: str, metric: str
) -> None:
    """An empty series is an answer where the kernel knows class, case and metric; else 404 says which it doesn't."""
    known = kernel_outs(session, project, [kernel])[0]
    for column, asked, names in (
        ("device_class", device_class, known.device_classes),
        ("case", case_id, (*known.cases, NO_CASE)),
        ("metric", metric, known.metrics),
    ):
        if asked not in names and not (column == "metric" and not names):
            raise ProblemError(
                404,
                "unknown-series",
                f"{kernel.name} has no {column.replace('_', ' ')} {str(asked)!r}"
                f" (it has {'; '.join(filter(None, names)) or 'none yet'})",
                field=column,
            )
