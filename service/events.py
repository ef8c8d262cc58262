"""An evaluation's progress stream: written with the change that it tells of, read by the event route."""

from collections.abc import Sequence
from typing import Any, Literal

from sqlmodel import Session, col, select

from service.models import Evaluation, Event

Kind = Literal["state", "progress", "finished"]


def add_event(session: Session, evaluation: Evaluation, kind: Kind, data: dict[str, Any]) -> None:
    """The caller holds the evaluation's row, so numbers have no gaps and come in order."""
    evaluation.events += 1
    session.add(evaluation)
    session.add(Event(evaluation_id=evaluation.id, number=evaluation.events, kind=kind, data=data))


def add_state_event(session: Session, evaluation: Evaluation) -> None:
    kind: Kind = "finished" if evaluation.outcome else "state"
    keys = ("state", "outcome", "reason", "summary")
    add_event(session, evaluation, kind, {key: getattr(evaluation, key) for key in keys})


def events_after(session: Session, *, evaluation_id: str, number: int) -> Sequence[Event]:
    query = select(Event).where(Event.evaluation_id == evaluation_id, col(Event.number) > number)
    return session.exec(query.order_by(col(Event.number))).all()
