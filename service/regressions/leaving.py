"""Revisions that leave the mainline: the branch was rewritten without them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col, or_, select

from contract.regressions import RegressionState
from service.models import Kernel, Revision, Series
from service.regressions import following, keeping, states
from service.regressions.tables import Regression, RegressionCase, SeriesTrack
from service.standings import refresh_all_standings


def leave_mainline(session: Session, kernel: Kernel, revisions: Sequence[Revision], *, why: str) -> None:
    """They hang beside the line from now on. What they were the cause of is none of the line's, and what they fixed is
    open again."""
    gone = {row.id: row for row in revisions}
    for row in revisions:
        row.mainline, row.pushed_away = False, True
        session.add(row)
    session.flush()
    cases = session.exec(
        select(RegressionCase).where(
            RegressionCase.kernel_id == kernel.id,
            or_(col(RegressionCase.revision_id).in_(gone), col(RegressionCase.fixed_by).in_(gone)),
        )
    ).all()
    for case in cases:
        if case.revision_id in gone:
            keeping.withdraw(session, case, why=f"{gone[case.revision_id].label} was {why}")
    for case in cases:
        if case.revision_id not in gone and case.fixed_by in gone:
            _open_again(session, case, gone, why=f"{gone[case.fixed_by].label}, which fixed it, was {why}")
    # Worked out anew one by one, by the reconciler: together they would hold up every other writer.
    of_kernel = select(Series.id).where(Series.kernel_id == kernel.id)
    stale: Any = sa.update(SeriesTrack).where(col(SeriesTrack.series_id).in_(of_kernel)).values(stale=True)
    session.exec(stale)
    refresh_all_standings(session, kernel)


def _open_again(session: Session, case: RegressionCase, gone: dict[str, Revision], *, why: str) -> None:
    case.standings = {name: standing for name, standing in case.standings.items() if name not in gone}
    case.fixed_by = case.kept = None
    session.add(case)
    regression = session.get_one(Regression, case.regression_id)
    if regression.state == RegressionState.FIXED:
        states.move(session, regression, RegressionState.NEW, who=states.ITSELF, reason=why)
    session.flush()
    following.follow(session, case)
