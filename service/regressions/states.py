"""The only place that moves a regression from one state to another."""

from __future__ import annotations

from sqlmodel import Session, col, func, select

from contract.regressions import REGRESSION_SUCCESSORS, RegressionState
from service.columns import now
from service.problems import ProblemError
from service.regressions.tables import Regression, RegressionEvent

# Who acts where a measurement does.
ITSELF = "kernelgate"
OPEN = (RegressionState.NEW, RegressionState.ACKNOWLEDGED, RegressionState.EXPECTED)


def begin(session: Session, regression: Regression, *, state: RegressionState, who: str, reason: str) -> None:
    """The first state of a new row."""
    regression.state = state
    _record(session, regression, who=who, reason=reason)


def move(session: Session, regression: Regression, state: RegressionState, *, who: str, reason: str) -> None:
    """Raises ProblemError 409 `state-not-reachable`."""
    current = RegressionState(regression.state)
    successors = REGRESSION_SUCCESSORS[current]
    if state not in successors:
        allowed = ", ".join(each.value for each in RegressionState if each in successors)
        raise ProblemError(
            409,
            "state-not-reachable",
            f"regression {regression.id} is {current.value}, which is never followed by {state.value} "
            f"(but by {allowed})",
            field="state",
        )
    regression.state = state
    if state is not RegressionState.FIXED:
        regression.fixed_by = regression.kept = None
    _record(session, regression, who=who, reason=reason)


def _record(session: Session, regression: Regression, *, who: str, reason: str) -> None:
    moment = now()
    regression.who, regression.reason, regression.changed_at = who, reason, moment
    session.add(regression)
    session.flush()
    last = session.exec(
        select(func.max(col(RegressionEvent.number))).where(RegressionEvent.regression_id == regression.id)
    ).one()
    session.add(
        RegressionEvent(
            regression_id=regression.id,
            number=(last or 0) + 1,
            state=regression.state,
            who=who,
            reason=reason,
            at=moment,
        )
    )
