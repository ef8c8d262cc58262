"""When a node could not be used: it called itself unhealthy, or was not heard of. One row an outage, open until it is
over; the node's `outage_id` names the open one, so that no two replicas begin the same."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import update
from sqlmodel import Session, col, select

from service.columns import now
from service.ids import new_id
from service.models import Node, Outage

SILENT = "not heard of"


def keep_outage(session: Session, node: Node, *, problem: str | None) -> None:
    """Of a node that was heard just now. `problem`: what it says is wrong, None where it is healthy."""
    known = session.get(Outage, node.outage_id) if node.outage_id else None
    if known is not None and known.why != problem:
        known.ended_at = now()
        node.outage_id = None
        session.add(known)
    if problem is not None and node.outage_id is None:
        row = Outage(node=node.name, began_at=now(), why=problem)
        session.add(row)
        node.outage_id = row.id


def begin_silence(session: Session, *, before: datetime) -> None:
    """For every node that was heard last before that moment, unless an outage of it is open."""
    silent = select(Node.name, Node.last_seen_at).where(col(Node.last_seen_at) < before, col(Node.outage_id).is_(None))
    for name, seen in session.exec(silent).all():
        identifier = new_id("out")
        take: Any = update(Node).where(
            col(Node.name) == name, col(Node.outage_id).is_(None), col(Node.last_seen_at) < before
        )
        if session.exec(take.values(outage_id=identifier)).rowcount == 1:
            session.add(Outage(id=identifier, node=name, began_at=seen, why=SILENT))
