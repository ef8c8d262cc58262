"""What the page of the nodes says of each beside what it says of itself: its work, how it measures, its outages."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlmodel import Session, col, select

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
    """By name; nine queries however many they are."""
    query = select(Node).order_by(Node.name).limit(limit + 1)
    if after is not None:
        query = query.where(Node.name > after)
    rows, following = cut(session.exec(query).all(), limit, lambda row: row.name)
    names = [row.name for row in rows]
    nodes = node_outs(session, rows, settings=settings)
    work = _work(session, principal, [node.evaluation for node in nodes if node.evaluation])
    measured = _measured(session, names)
    outages = _outages(session, names)
    items = (
        NodeDetail(
            **dict(node),
            sandbox=row.sandbox,
            work=work.get(node.evaluation or ""),
            **measured.get(node.name, _NOTHING)._asdict(),
            outages=tuple(outages.get(node.name, ())),
            learnt=tuple(Spread.model_validate(each) for each in row.spreads),
        )
        for node, row in zip(nodes, rows, strict=True)
    )
    return NodePage(items=tuple(items), next=following)


class _Measured(NamedTuple):
    """How a node measures, by its newest evaluations."""

    measured_at: datetime | None
    clocks: dict[str, Any]
    spread: float | None
    spread_floor: float | None


_NOTHING = _Measured(None, {}, None, None)


def _measured(session: Session, names: Sequence[str]) -> dict[str, _Measured]:
    newest = _newest(session, names)
    spreads = _spreads(session, [identifier for of in newest.values() for identifier in of])
    firsts = [of[0] for of in newest.values()]
    said = sa.select(col(Evaluation.id), col(Evaluation.finished_at), col(Evaluation.environment))
    ends = {row.id: row for row in session.execute(said.where(col(Evaluation.id).in_(firsts)))}
    found = {}
    for name, of in newest.items():
        seen = [pair for identifier in of for pair in spreads.get(identifier, ())]
        found[name] = _Measured(
            measured_at=ends[of[0]].finished_at,
            clocks=(ends[of[0]].environment or {}).get("clocks", {}),
            spread=statistics.median(spread for spread, _ in seen) if seen else None,
            spread_floor=statistics.median(floor for _, floor in seen) if seen else None,
        )
    return found


def _newest(session: Session, names: Sequence[str]) -> dict[str, list[str]]:
    """Ids of those that each node measured, the newest first."""
    of_node = (
        sa.select(col(Evaluation.id))
        .join(Attempt, col(Attempt.evaluation_id) == col(Evaluation.id))
        .where(col(Attempt.node) == col(Node.name), col(Attempt.end) == "reported")
        .where(col(Evaluation.build_only).is_(False))
        .order_by(col(Attempt.id).desc())
    )
    return _first(session, names, of_node, count=_EVALUATIONS)


def _first(session: Session, names: Sequence[str], of_node: sa.Select[Any], *, count: int) -> dict[str, list[str]]:
    """What `of_node` selects for each of the nodes, `count` at most: place by place, so that an index finds each."""
    places = [of_node.correlate(Node).offset(place).limit(1).scalar_subquery() for place in range(count)]
    found = session.execute(sa.select(col(Node.name), *places).where(col(Node.name).in_(names)))
    listed = {name: [identifier for identifier in of if identifier is not None] for name, *of in found}
    return {name: of for name, of in listed.items() if of}


def _spreads(session: Session, evaluation_ids: Sequence[str]) -> dict[str, list[tuple[float, float]]]:
    """(seen, least assumed) of each case that pairs of processes compared, by evaluation."""
    query = select(Comparison.evaluation_id, Comparison.processes, Comparison.spread_floor).where(
        col(Comparison.evaluation_id).in_(evaluation_ids), col(Comparison.verdict).is_not(None)
    )
    found: dict[str, list[tuple[float, float]]] = {}
    for identifier, processes, floor in session.exec(query).all():
        pairs = [(base, head) for base, head in processes if base > 0 and head > 0]
        if len(pairs) < 2:
            continue
        assumed = default_floor("us", statistics.median_low(pair[0] for pair in pairs)) if floor is None else floor
        found.setdefault(identifier, []).append((_spread([math.log(head / base) for base, head in pairs]), assumed))
    return found


def _spread(logs: Sequence[float]) -> float:
    """`statistics.stdev` sums exactly, which takes ten times as long and shows nowhere here."""
    mean = math.fsum(logs) / len(logs)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in logs) / (len(logs) - 1))


def _outages(session: Session, names: Sequence[str]) -> dict[str, list[OutageOut]]:
    """The newest of each node, the newest first."""
    of_node = sa.select(col(Outage.id)).where(col(Outage.node) == col(Node.name)).order_by(col(Outage.id).desc())
    listed = _first(session, names, of_node, count=_OUTAGES)
    query = select(Outage).where(col(Outage.id).in_([identifier for of in listed.values() for identifier in of]))
    found: dict[str, list[OutageOut]] = {}
    for row in session.exec(query.order_by(col(Outage.id).desc())).all():
        found.setdefault(row.node, []).append(OutageOut(began_at=row.began_at, ended_at=row.ended_at, why=row.why))
    return found


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
