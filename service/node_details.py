"""What the page of the nodes says of each beside what it says of itself: its work, how it measures, its outages."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col, select

from contract.api import NodeOut
from contract.spreads import Spread
from contract.views import NodeDetail, NodePage, Work
from contract.views import Outage as OutageOut
from service.auth import Principal
from service.models import Attempt, Comparison, Evaluation, Kernel, Node, Outage, Project, Revision
from service.nodes import node_outs
from service.pages import cut
from service.settings import Settings
from verdict.floors import default_floor

_OUTAGES = 5
# The newest of a node that it says how it measures by.
_EVALUATIONS = 5


def node_page(session: Session, *, principal: Principal, settings: Settings, after: str | None, limit: int) -> NodePage:
    """By name."""
    query = select(Node).order_by(Node.name).limit(limit + 1)
    if after is not None:
        query = query.where(Node.name > after)
    rows, following = cut(session.exec(query).all(), limit, lambda row: row.name)
    nodes = node_outs(session, rows, settings=settings)
    work = _work(session, principal, [node.evaluation for node in nodes if node.evaluation])
    items = (
        _detail(session, node, row=row, work=work.get(node.evaluation or ""))
        for node, row in zip(nodes, rows, strict=True)
    )
    return NodePage(items=tuple(items), next=following)


def _detail(session: Session, node: NodeOut, *, row: Node, work: Work | None) -> NodeDetail:
    newest = _newest(session, node.name)
    environment: dict[str, Any] = (newest[0].environment or {}) if newest else {}
    spreads = _spreads(session, [row.id for row in newest])
    return NodeDetail(
        **dict(node),
        sandbox=row.sandbox,
        work=work,
        measured_at=newest[0].finished_at if newest else None,
        clocks=environment.get("clocks", {}),
        spread=statistics.median(spread for spread, _ in spreads) if spreads else None,
        spread_floor=statistics.median(floor for _, floor in spreads) if spreads else None,
        outages=_outages(session, node.name),
        learnt=tuple(Spread.model_validate(each) for each in row.spreads),
    )


def _newest(session: Session, node: str) -> Sequence[Any]:
    """Of those that the node measured; (id, finished_at, environment)."""
    query = (
        sa.select(col(Evaluation.id), col(Evaluation.finished_at), col(Evaluation.environment))
        .join(Attempt, col(Attempt.evaluation_id) == col(Evaluation.id))
        .where(col(Attempt.node) == node, col(Attempt.end) == "reported", col(Evaluation.build_only).is_(False))
        .order_by(col(Attempt.id).desc())
        .limit(_EVALUATIONS)
    )
    return session.execute(query).all()


def _spreads(session: Session, evaluation_ids: Sequence[str]) -> list[tuple[float, float]]:
    """(seen, least assumed) of each case that pairs of processes compared."""
    query = select(Comparison.processes, Comparison.spread_floor).where(
        col(Comparison.evaluation_id).in_(evaluation_ids), col(Comparison.verdict).is_not(None)
    )
    found = []
    for processes, floor in session.exec(query).all():
        pairs = [(base, head) for base, head in processes if base > 0 and head > 0]
        if len(pairs) < 2:
            continue
        seen = statistics.stdev(math.log(head / base) for base, head in pairs)
        found.append(
            (seen, default_floor("us", statistics.median_low(pair[0] for pair in pairs)) if floor is None else floor)
        )
    return found


def _outages(session: Session, node: str) -> tuple[OutageOut, ...]:
    query = select(Outage).where(Outage.node == node).order_by(col(Outage.id).desc()).limit(_OUTAGES)
    rows = session.exec(query).all()
    return tuple(OutageOut(began_at=row.began_at, ended_at=row.ended_at, why=row.why) for row in rows)


def _work(session: Session, principal: Principal, evaluation_ids: Sequence[str]) -> dict[str, Work]:
    """By evaluation; without those of another project than the token's."""
    query = (
        select(Evaluation.id, Project, Kernel.name, Revision.label)
        .join(Kernel, col(Kernel.id) == col(Evaluation.kernel_id))
        .join(Project, col(Project.id) == col(Kernel.project_id))
        .join(Revision, col(Revision.id) == col(Evaluation.revision_id))
        .where(col(Evaluation.id).in_(evaluation_ids))
    )
    return {
        identifier: Work(evaluation=identifier, project=project.slug, kernel=kernel, label=label)
        for identifier, project, kernel, label in session.exec(query).all()
        if principal.project in {None, project.id}
    }
