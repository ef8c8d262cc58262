"""Nodes, as they describe themselves. An offline node is offline, whatever lease it may still hold."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Literal

from sqlmodel import Session, col, select

from contract.api import NodeOut
from contract.job import NodeInfo
from contract.outcomes import State
from contract.text import one_line
from service import find
from service.auth import Principal
from service.columns import now
from service.database import insert_if_missing
from service.models import Attempt, Evaluation, Node
from service.outages import keep_outage
from service.problems import ProblemError
from service.settings import Settings

UNHEALTHY = "unhealthy, without a word why"


def see_node(session: Session, *, principal: Principal, info: NodeInfo) -> Node:
    """Keep what the node says of itself. Raises 403 where the token is another node's."""
    if principal.node is not None and principal.node != info.name:
        raise ProblemError(
            403, "forbidden", f"this token is node {principal.node}'s, not {info.name}'s", field="node.name"
        )
    node = session.get(Node, info.name, with_for_update=True)
    if node is None:
        blank = Node(name=info.name, device_class=info.device_class, device="", host="", last_seen_at=now())
        insert_if_missing(session, blank)
        node = find.existing(session, Node, info.name)
    node.device_class = info.device_class
    node.device = one_line(info.device, 200)
    node.driver = one_line(info.driver, 100) if info.driver else None
    node.host = one_line(info.host, 255)
    node.healthy = info.healthy
    node.problem = one_line(info.problem, 2000) if info.problem else None
    node.sandbox = info.sandbox
    node.build_only_classes = [each.value for each in info.build_only_classes]
    node.spreads = [each.model_dump(mode="json") for each in info.spreads]
    node.last_seen_at = now()
    keep_outage(session, node, problem=None if node.healthy else node.problem or UNHEALTHY)
    session.add(node)
    return node


def list_nodes(session: Session, *, settings: Settings) -> list[NodeOut]:
    """All of them, by name."""
    return node_outs(session, session.exec(select(Node).order_by(Node.name)).all(), settings=settings)


def node_outs(session: Session, rows: Sequence[Node], *, settings: Settings) -> list[NodeOut]:
    held = (
        select(Attempt.node, Evaluation.id)
        .join(Evaluation, col(Evaluation.attempt_id) == col(Attempt.id))
        .where(Evaluation.state == State.LEASED)
    )
    evaluations = dict(session.exec(held).all())
    silent_since = now() - timedelta(seconds=settings.node_offline_after_s)
    nodes = []
    for node in rows:
        evaluation = evaluations.get(node.name)
        state: Literal["idle", "busy", "offline", "unhealthy"] = "busy" if evaluation else "idle"
        if not node.healthy:
            state = "unhealthy"
        if node.last_seen_at < silent_since:
            state = "offline"
        nodes.append(
            NodeOut(
                name=node.name,
                device_class=node.device_class,
                device=node.device,
                driver=node.driver,
                host=node.host,
                state=state,
                problem=node.problem,
                evaluation=evaluation,
                last_seen_at=node.last_seen_at,
            )
        )
    return nodes
