"""Two revisions of a kernel, case by case: side by side where an evaluation compared them, else from two."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, cast

from sqlalchemy.orm import defer
from sqlmodel import Session, col, or_, select

from contract.api import BaseRef, CaseComparison, CompareOut, ProcessPair
from contract.devices import DeviceClass
from contract.outcomes import State, Verdict
from service.history_file import JUDGED
from service.machine_code import machine_code
from service.models import Comparison, Evaluation, Kernel, Measurement, Project, Revision, Series
from service.problems import not_found

Values = dict[str, dict[str, float]]


def compare(
    session: Session, *, project: Project, kernel: Kernel, base: str, head: str, device_class: DeviceClass
) -> CompareOut:
    """`base`, `head`: a label, an id or a digest. Raises ProblemError 404 `unknown-revision`."""
    bases = _named(session, kernel, base, field="base")
    heads = _named(session, kernel, head, field="head")
    evaluation = _side_by_side(session, bases=bases, heads=heads, device_class=device_class)
    if evaluation is not None:
        one = next(row for row in bases if row.id == evaluation.base_id)
        other = next(row for row in heads if row.id == evaluation.revision_id)
    else:
        measured = _measured(session, (*bases, *heads), device_class)
        one = next((row for row in bases if row.id in measured), bases[0])
        other = next((row for row in heads if row.id in measured), heads[0])
    values = {
        row.id: _newest_values(session, row, device_class, only=evaluation.id if evaluation and row is other else None)
        for row in (one, other)
    }
    cases = (
        _judged_cases(session, evaluation, base=values[one.id], head=values[other.id])
        if evaluation
        else _separate_cases(base=values[one.id], head=values[other.id])
    )
    return CompareOut(
        project=project.slug,
        kernel=kernel.name,
        device_class=device_class,
        base=BaseRef(id=one.id, label=one.label, digest=one.digest),
        head=BaseRef(id=other.id, label=other.label, digest=other.digest),
        evaluation=evaluation.id if evaluation else None,
        cases=tuple(cases),
        **machine_code(session, base=one, head=other, device_class=device_class)._asdict(),
    )


def _named(session: Session, kernel: Kernel, name: str, *, field: str) -> Sequence[Revision]:
    """All revisions that `name` can mean, the newest of the mainline first."""
    found = session.exec(
        select(Revision)
        .where(
            Revision.kernel_id == kernel.id,
            or_(Revision.id == name, Revision.digest == name, Revision.label == name),
        )
        .order_by(col(Revision.mainline).desc(), col(Revision.id).desc())
    ).all()
    if not found:
        raise not_found("revision", name, field=field)
    return [row for row in found if row.id == name] or found


def _side_by_side(
    session: Session, *, bases: Sequence[Revision], heads: Sequence[Revision], device_class: DeviceClass
) -> Evaluation | None:
    """The newest evaluation that compared exactly these two."""
    asked = session.exec(
        select(Evaluation.id, Evaluation.state).where(
            col(Evaluation.revision_id).in_([row.id for row in heads]),
            col(Evaluation.base_id).in_([row.id for row in bases]),
            Evaluation.device_class == device_class,
        )
    ).all()
    # In two steps, without an order and without the state: SQLite would take their index and walk through all that
    # ever finished.
    finished = [identifier for identifier, state in asked if state == State.FINISHED]
    judged = session.exec(
        select(Comparison.evaluation_id).where(
            col(Comparison.evaluation_id).in_(finished), col(Comparison.verdict).is_not(None)
        )
    ).all()
    return session.get_one(Evaluation, max(judged)) if judged else None


def _measured(session: Session, revisions: Iterable[Revision], device_class: DeviceClass) -> set[str]:
    return set(
        session.exec(
            select(Measurement.revision_id)
            .join(Series, col(Series.id) == Measurement.series_id)
            .where(
                col(Measurement.revision_id).in_([row.id for row in revisions]),
                Series.device_class == device_class,
                col(Measurement.trusted).is_(True),
            )
            .distinct()
        ).all()
    )


def _newest_values(session: Session, revision: Revision, device_class: DeviceClass, *, only: str | None) -> Values:
    """case -> metric -> the newest trusted value on the class; of one evaluation where `only` names it."""
    query = (
        select(Series.case, Series.metric, Measurement.value)
        .join(Series, col(Series.id) == Measurement.series_id)
        .where(
            Measurement.revision_id == revision.id,
            Series.device_class == device_class,
            col(Measurement.trusted).is_(True),
        )
        .order_by(Measurement.evaluation_id)
    )
    if only is not None:
        query = query.where(Measurement.evaluation_id == only)
    values: Values = defaultdict(dict)
    for case, metric, value in session.exec(query).all():
        values[case][metric] = value
    return dict(values)


def _judged_cases(session: Session, evaluation: Evaluation, *, base: Values, head: Values) -> list[CaseComparison]:
    # The pairs can be a megabyte, and nobody asked for them.
    query = select(Comparison).options(defer(Comparison.pairs)).where(Comparison.evaluation_id == evaluation.id)  # type: ignore[arg-type]
    return [
        CaseComparison(
            case=row.case,
            verdict=Verdict(row.verdict) if row.verdict else None,
            ratio=row.ratio,
            interval=(row.low, row.high) if row.low is not None and row.high is not None else None,
            smallest_detectable=row.smallest_detectable,
            measured=cast("Any", row.measured),
            allowed=row.allowance,
            base=base.get(row.case, {}),
            head=head.get(row.case, {}),
            processes=tuple(ProcessPair(base=one, head=other) for one, other in row.processes),
        )
        for row in session.exec(query.order_by(col(Comparison.position))).all()
    ]


def _separate_cases(*, base: Values, head: Values) -> list[CaseComparison]:
    """Measured at different times, perhaps on different cards: a ratio to look at, and no verdict."""
    made: list[CaseComparison] = []
    for case in dict.fromkeys([*head, *base]):
        if not case:
            continue
        ratio = _time_ratio(base.get(case, {}), head.get(case, {}))
        made.append(
            CaseComparison(
                case=case,
                verdict=None,
                ratio=ratio,
                interval=None,
                smallest_detectable=None,
                measured="none" if ratio is None else "separately",
                base=base.get(case, {}),
                head=head.get(case, {}),
            )
        )
    return made


def _time_ratio(base: dict[str, float], head: dict[str, float]) -> float | None:
    for metric, better in JUDGED.items():
        if base.get(metric) and head.get(metric):
            ratio = head[metric] / base[metric]
            return ratio if better == "lower" else 1.0 / ratio
    return None
