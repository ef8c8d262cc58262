"""The only place that moves an evaluation from one state to the next."""

from datetime import timedelta

from sqlmodel import Session

from contract.outcomes import OUTCOME_OF, SUCCESSORS, Outcome, Reason, State
from service.columns import now
from service.events import add_state_event
from service.find import existing
from service.models import Attempt, Evaluation
from service.settings import Settings
from verdict.summaries import summarise_failure

ENDED = frozenset(state for state, successors in SUCCESSORS.items() if not successors)


def queue(evaluation: Evaluation, *, settings: Settings) -> None:
    """Due to be published now by who queues it; the reconciler steps in only when that didn't help."""
    evaluation.publishes = 1
    evaluation.publish_due_at = now() + timedelta(seconds=settings.republish_after_s)


def move(session: Session, evaluation: Evaluation, state: State) -> None:
    current = State(evaluation.state)
    if state not in SUCCESSORS[current]:
        raise ValueError(f"evaluation {evaluation.id}: {current.value} is never followed by {state.value}")
    evaluation.state = state
    if state in ENDED:
        evaluation.finished_at = now()
        evaluation.publish_due_at = None
        evaluation.progress = None
    session.add(evaluation)
    add_state_event(session, evaluation)


def requeue(session: Session, evaluation: Evaluation, *, settings: Settings) -> None:
    evaluation.attempt_id = None
    evaluation.leased_at = None
    evaluation.stage = None
    evaluation.progress = None
    queue(evaluation, settings=settings)
    move(session, evaluation, State.QUEUED)


def fail(session: Session, evaluation: Evaluation, *, reason: Reason, message: str) -> None:
    """End it without a report's result: cancelled, or an infrastructure error."""
    outcome = OUTCOME_OF[reason]
    evaluation.outcome = outcome
    evaluation.reason = reason
    evaluation.message = message
    evaluation.summary = summarise_failure(outcome=outcome, reason=reason, message=message)
    move(session, evaluation, State.CANCELLED if outcome is Outcome.CANCELLED else State.FINISHED)


def end_cancelled(session: Session, evaluation: Evaluation, *, message: str, reason: Reason | None = None) -> None:
    """`reason`: where nobody asked for it before."""
    asked = Reason(evaluation.cancel_reason) if evaluation.cancel_reason else None
    end_attempt(session, evaluation, end="cancelled")
    fail(session, evaluation, reason=asked or reason or Reason.BY_REQUEST, message=message)


def end_attempt(session: Session, evaluation: Evaluation, *, end: str) -> None:
    """End the attempt that holds the lease; its token opens nothing from here on."""
    if evaluation.attempt_id is None:
        return
    attempt = existing(session, Attempt, evaluation.attempt_id)
    attempt.ended_at = now()
    attempt.end = end
    evaluation.attempt_id = None
    session.add(attempt)
