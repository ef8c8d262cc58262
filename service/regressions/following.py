"""What later revisions of the mainline do to an open regression: multiply on, go round it, bring it back."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col, select

from contract.outcomes import State, Verdict
from service.models import Comparison, Evaluation, Revision
from service.regressions import keeping, states
from service.regressions.order import key_of
from service.regressions.tables import Regression, RegressionCase

# Of how many later revisions the standing is kept.
_MOST_STANDINGS = 100
# What published values without an allowed slowdown, or steps of a series, may differ by.
_DEFAULT_ALLOWED = 0.01


def follow(session: Session, case: RegressionCase) -> None:
    """Take in everything that was measured of this case already, in the order of the history."""
    rows = session.execute(_compared(case))
    for revision, base, row in sorted(rows, key=lambda row: key_of(row[0])):
        _advance(session, case, revision=revision, base=base, compared=row)
    keeping.close_if_fixed(session, session.get_one(Regression, case.regression_id))


def follow_with(
    session: Session, case: RegressionCase, *, revision: Revision, base: Revision, compared: Comparison
) -> None:
    """Take in one more."""
    _advance(session, case, revision=revision, base=base, compared=compared)
    keeping.close_if_fixed(session, session.get_one(Regression, case.regression_id))


def open_cases(session: Session, *, kernel_id: str, device_class: str) -> list[RegressionCase]:
    """The cases of open slowdowns, the oldest first."""
    query = (
        select(RegressionCase)
        .join(Regression, col(Regression.id) == col(RegressionCase.regression_id))
        .where(
            RegressionCase.kernel_id == kernel_id,
            RegressionCase.device_class == device_class,
            Regression.direction == "slower",
            col(Regression.state).in_(states.OPEN),
        )
        .order_by(col(RegressionCase.id))
    )
    return list(session.exec(query).all())


def _compared(case: RegressionCase) -> sa.Select[Any]:
    base = sa.orm.aliased(Revision)
    newest = (
        sa.select(sa.func.max(col(Evaluation.id)))
        .where(
            col(Evaluation.kernel_id) == case.kernel_id,
            col(Evaluation.device_class) == case.device_class,
            col(Evaluation.state) == State.FINISHED,
        )
        .group_by(col(Evaluation.revision_id), col(Evaluation.base_id))
    )
    columns: list[Any] = [Revision, base, Comparison]
    return (
        sa.select(*columns)
        .select_from(Comparison)
        .join(Evaluation, col(Evaluation.id) == col(Comparison.evaluation_id))
        .join(Revision, col(Revision.id) == col(Evaluation.revision_id))
        .join(base, col(base.id) == col(Evaluation.base_id))
        .options(sa.orm.defer(Comparison.pairs))  # type: ignore[arg-type]
        .where(
            col(Evaluation.id).in_(newest),
            col(Comparison.case) == case.case,
            col(Comparison.ratio).is_not(None),
            col(Revision.mainline).is_(True),
        )
    )


def _advance(
    session: Session, case: RegressionCase, *, revision: Revision, base: Revision, compared: Comparison
) -> None:
    if compared.ratio is None or revision.id == case.revision_id:
        return
    culprit = session.get_one(Revision, case.revision_id)
    if key_of(revision) <= key_of(culprit):
        return
    level = session.get(Revision, case.base_id) if case.base_id else None
    if base.id in case.standings:
        standing, round_it = case.standings[base.id] * compared.ratio, False
    elif level is not None and base.id == level.id:
        # An imported history names each revision's own base; elsewhere a base may be any that was asked for.
        standing, round_it = compared.ratio, revision.origin == "imported"
    else:
        return
    if level is not None and revision.digest is not None and revision.digest == level.digest:
        standing = 1.0
    kept = dict(list(case.standings.items())[-_MOST_STANDINGS + 1 :])
    # A new dictionary: a JSON column sees no change inside the old one.
    case.standings = {**kept, case.revision_id: case.standings[case.revision_id], revision.id: standing}
    if case.fixed_by is None and _is_back(case, standing, compared):
        case.fixed_by, case.kept = revision.id, not round_it
    session.add(case)
    session.flush()


def _is_back(case: RegressionCase, standing: float, compared: Comparison) -> bool:
    if standing > 1.0 + (case.allowed_slowdown or _DEFAULT_ALLOWED) or compared.verdict == Verdict.SLOWER:
        return False
    # An undecided measurement proves nothing; published values are undecided where they differ by less than a margin.
    return compared.verdict != Verdict.INCONCLUSIVE or compared.measured == "published"
