"""The line of a chart before anything is known of its points but their order, value, outcome and verdict.

Four queries that read indices alone, merged here: a join of the same takes several times as long on either database,
and seconds when PostgreSQL's statistics are older than the rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlmodel import Session, col, select

from contract.devices import DeviceClass
from contract.outcomes import Outcome, State, Verdict
from service.kernels import LAST, series_order
from service.models import Comparison, Evaluation, Kernel, Measurement, Revision
from service.problems import not_found

# Those that say something of the kernel; a revision that has only such an outcome is a point without a value.
WITHOUT_VALUE = frozenset({Outcome.INCORRECT, Outcome.BUILD_FAILED, Outcome.UNTRUSTED, Outcome.BUILT})
FAILED = frozenset({Outcome.INCORRECT, Outcome.BUILD_FAILED, Outcome.UNTRUSTED})
_TELLING = (*sorted(WITHOUT_VALUE), Outcome.PASSED, Outcome.SLOWER, Outcome.INCONCLUSIVE)
_MARKS = (Verdict.FASTER, Verdict.SLOWER)


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
    case_id: str | None,
    series_id: str | None,
    before: str | None = None,
    after: str | None = None,
    mainline: bool = False,
) -> list[Place]:
    """All places, oldest first. `before`, `after`: only those on that side of the revision, which must exist."""
    order = sa.select(col(Revision.id), col(Revision.mainline)).where(col(Revision.kernel_id) == kernel.id)
    if mainline:
        order = order.where(col(Revision.mainline).is_(True))
    if before is not None:
        order = order.where(sa.tuple_(*series_order()) < _key(session, kernel, before, field="before"))
    if after is not None:
        order = order.where(sa.tuple_(*series_order()) > _key(session, kernel, after, field="after"))
    newest = _newest_evaluations(session, kernel, device_class)
    values = _values(session, series_id) if series_id else {}
    verdicts = _verdicts(session, kernel, device_class, case_id) if case_id else {}
    places: list[Place] = []
    for revision, is_mainline in session.execute(order.order_by(*series_order())):
        evaluation, outcome = newest.get(revision, ("", ""))
        value = values.get(evaluation)
        if value is not None or outcome in WITHOUT_VALUE:
            places.append(Place(revision, evaluation, is_mainline, outcome, value, verdicts.get(evaluation)))
    return places


def _newest_evaluations(session: Session, kernel: Kernel, device_class: DeviceClass) -> dict[str, tuple[str, str]]:
    """revision -> (id, outcome) of what it stands for itself by: one that measured before one that only compiled."""
    query = sa.select(col(Evaluation.revision_id), col(Evaluation.id), col(Evaluation.outcome)).where(
        col(Evaluation.kernel_id) == kernel.id,
        col(Evaluation.device_class) == device_class,
        col(Evaluation.state) == State.FINISHED,
        col(Evaluation.outcome).in_(_TELLING),
    )
    newest: dict[str, tuple[str, str]] = {}
    built: dict[str, tuple[str, str]] = {}
    for revision, evaluation, outcome in session.execute(query):
        group = built if outcome == Outcome.BUILT else newest
        known = group.get(revision)
        if known is None or known[0] < evaluation:
            group[revision] = (evaluation, outcome)
    return {**built, **newest}


def _values(session: Session, series_id: str) -> dict[str, float]:
    query = sa.select(col(Measurement.evaluation_id), col(Measurement.value)).where(
        col(Measurement.series_id) == series_id, col(Measurement.trusted).is_(True)
    )
    return {row[0]: row[1] for row in session.execute(query)}


def _verdicts(session: Session, kernel: Kernel, device_class: DeviceClass, case_id: str) -> dict[str, str]:
    query = (
        sa.select(col(Comparison.evaluation_id), col(Comparison.verdict))
        .join(Evaluation, col(Evaluation.id) == col(Comparison.evaluation_id))
        .where(
            col(Evaluation.kernel_id) == kernel.id,
            col(Evaluation.device_class) == device_class,
            col(Comparison.case) == case_id,
            col(Comparison.verdict).in_(_MARKS),
        )
    )
    return {row[0]: row[1] for row in session.execute(query)}


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
