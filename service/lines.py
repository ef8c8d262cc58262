"""The line of a chart before anything is known of its points but their order, value, outcome and verdict.

Four queries that read indices alone, merged here: a join of the same takes several times as long on either database,
and seconds when PostgreSQL's statistics are older than the rows. They go to the connection itself, as the ORM's rows
cost more than the queries.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlmodel import Session, SQLModel, select

from contract.devices import DeviceClass
from contract.outcomes import Outcome, State, Verdict
from service.kept import Kept
from service.kernels import LAST, series_order
from service.models import Comparison, Evaluation, Kernel, Measurement, Revision
from service.problems import not_found

# Those that say something of the kernel; a revision that has only such an outcome is a point without a value.
WITHOUT_VALUE = frozenset({Outcome.INCORRECT, Outcome.BUILD_FAILED, Outcome.UNTRUSTED, Outcome.BUILT})
FAILED = frozenset({Outcome.INCORRECT, Outcome.BUILD_FAILED, Outcome.UNTRUSTED})
_TELLING = (*sorted(WITHOUT_VALUE), Outcome.PASSED, Outcome.SLOWER, Outcome.INCONCLUSIVE)
_MARKS = (Verdict.FASTER, Verdict.SLOWER)

_REVISION, _EVALUATION, _MEASUREMENT, _COMPARISON = (
    SQLModel.metadata.tables[str(model.__tablename__)].c for model in (Revision, Evaluation, Measurement, Comparison)
)

# (revision, whether it is of the mainline, its newest telling evaluation, that one's outcome)
_Step = tuple[str, bool, str, str]
# 5,000 of them are about a megabyte.
_STEPS: Kept[list[_Step]] = Kept(32)


class Measured(Protocol):
    """A row with a value and its interval."""

    value: float
    low: float | None
    high: float | None


class Place(NamedTuple):
    """One revision on the line, by its newest telling evaluation. `verdict`: faster or slower, else None."""

    revision: str
    evaluation: str
    mainline: bool
    outcome: str
    value: float | None
    verdict: str | None


def line_of(
    session: Session,
    kernel: Kernel,
    *,
    device_class: DeviceClass,
    values: dict[str, Measured],
    case_id: str | None = None,
    before: str | None = None,
    after: str | None = None,
    mainline: bool = False,
    version: str | None = None,
) -> list[Place]:
    """All places, oldest first. `values`: of the series, by evaluation (`values_of`). `case_id`: with verdicts of that
    case. `before`, `after`: only those on that side of the revision, which must exist. `version`: of the standing
    (service.kept), read before; None keeps nothing."""
    steps = _steps(session, kernel, device_class, version=version)
    if before is not None or after is not None:
        within = _within(session, kernel, before=before, after=after)
        steps = [step for step in steps if step[0] in within]
    verdicts = _verdicts(session, kernel, device_class, case_id) if case_id else {}
    known = {evaluation: measured.value for evaluation, measured in values.items()}
    return [
        Place(revision, evaluation, is_mainline, outcome, known.get(evaluation), verdicts.get(evaluation))
        for revision, is_mainline, evaluation, outcome in steps
        if (evaluation in known or outcome in WITHOUT_VALUE) and (is_mainline or not mainline)
    ]


def _steps(session: Session, kernel: Kernel, device_class: DeviceClass, *, version: str | None) -> list[_Step]:
    """What every series of the class has in common, oldest first."""
    key = (kernel.id, device_class, version)
    steps = _STEPS.get(key) if version is not None else None
    if steps is None:
        newest = _newest_evaluations(session, kernel, device_class)
        order = sa.select(_REVISION.id, _REVISION.mainline).where(_REVISION.kernel_id == kernel.id)
        steps = [
            (revision, is_mainline, *newest[revision])
            for revision, is_mainline in _fetch(session, order.order_by(*series_order()))
            if revision in newest
        ]
        if version is not None:
            _STEPS.put(key, steps)
    return steps


def _within(session: Session, kernel: Kernel, *, before: str | None, after: str | None) -> set[str]:
    query = sa.select(_REVISION.id).where(_REVISION.kernel_id == kernel.id)
    if before is not None:
        query = query.where(sa.tuple_(*series_order()) < _key(session, kernel, before, field="before"))
    if after is not None:
        query = query.where(sa.tuple_(*series_order()) > _key(session, kernel, after, field="after"))
    return {row[0] for row in _fetch(session, query)}


def values_of(
    session: Session, series_id: str | None, *, evaluation_ids: Sequence[str] | None = None
) -> dict[str, Measured]:
    """evaluation -> what a history may draw of it, of the whole series or of these evaluations."""
    if series_id is None:
        return {}
    query = sa.select(_MEASUREMENT.evaluation_id, _MEASUREMENT.value, _MEASUREMENT.low, _MEASUREMENT.high).where(
        _MEASUREMENT.series_id == series_id, _MEASUREMENT.trusted.is_(True)
    )
    if evaluation_ids is not None:
        query = query.where(among(session, _MEASUREMENT.evaluation_id, evaluation_ids))
    return {row[0]: row for row in _fetch(session, query)}


def among(session: Session, column: Any, ids: Sequence[str]) -> Any:
    """`column` IN ids, as one parameter: a thousand of them take longer to write down than to find."""
    if session.connection().dialect.name == "postgresql":
        return column == sa.any_(sa.literal(list(ids), postgresql.ARRAY(sa.String)))
    each = sa.func.json_each(json.dumps(list(ids))).table_valued("value")
    return column.in_(sa.select(each.c.value))


def _fetch(session: Session, query: sa.Select[Any]) -> Sequence[Any]:
    return session.connection().execute(query).all()


def _newest_evaluations(session: Session, kernel: Kernel, device_class: DeviceClass) -> dict[str, tuple[str, str]]:
    """revision -> (id, outcome) of what it stands for itself by: one that measured before one that only compiled."""
    query = sa.select(_EVALUATION.revision_id, _EVALUATION.id, _EVALUATION.outcome).where(
        _EVALUATION.kernel_id == kernel.id,
        _EVALUATION.device_class == device_class,
        _EVALUATION.state == State.FINISHED,
        _EVALUATION.outcome.in_(_TELLING),
    )
    newest: dict[str, tuple[str, str]] = {}
    built: dict[str, tuple[str, str]] = {}
    for revision, evaluation, outcome in _fetch(session, query):
        group = built if outcome == Outcome.BUILT else newest
        known = group.get(revision)
        if known is None or known[0] < evaluation:
            group[revision] = (evaluation, outcome)
    return {**built, **newest}


def _verdicts(session: Session, kernel: Kernel, device_class: DeviceClass, case_id: str) -> dict[str, str]:
    query = (
        sa.select(_COMPARISON.evaluation_id, _COMPARISON.verdict)
        .join_from(Evaluation, Comparison, _EVALUATION.id == _COMPARISON.evaluation_id)
        .where(
            _EVALUATION.kernel_id == kernel.id,
            _EVALUATION.device_class == device_class,
            _COMPARISON.case == case_id,
            _COMPARISON.verdict.in_(_MARKS),
        )
    )
    return {row[0]: row[1] for row in _fetch(session, query)}


def _key(session: Session, kernel: Kernel, revision_id: str, *, field: str) -> Any:
    named = session.exec(select(Revision).where(Revision.id == revision_id, Revision.kernel_id == kernel.id)).first()
    if named is None:
        raise not_found("revision", revision_id, field=field)
    return (
        LAST if named.first_parent_index is None else named.first_parent_index,
        LAST if named.position is None else named.position,
        named.created_at,
        named.id,
    )
