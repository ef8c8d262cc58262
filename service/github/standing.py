"""Where a gate stands, read from the database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from sqlmodel import Session, col, select

from contract.api import EvaluationOut
from contract.gate import Acceptance, Anchored, GateSubject
from contract.outcomes import State
from service.anchoring import anchored
from service.columns import now
from service.github import gates, queueing
from service.github.conclusions import Standing
from service.github.plans import Plan, Target
from service.github.tables import GithubAcceptance, GithubGate, GithubRepository
from service.models import Evaluation, Node, Revision
from service.presenting import evaluation_outs
from service.settings import Settings
from service.states import ENDED
from verdict.gate import gate as judge


@dataclass(frozen=True, kw_only=True)
class Scene:
    """What a check shows. `evaluations`: of the plan's targets, by their place; `previews`: of its previews. `beside`:
    the other gates that are open over the same commit, where the one name must stand for all of them."""

    gate: GithubGate
    repository: GithubRepository
    plan: Plan | None
    standing: Standing
    evaluations: dict[int, list[EvaluationOut]]
    previews: dict[int, list[EvaluationOut]]
    accepted: tuple[str, ...]
    open: bool
    beside: tuple[Scene, ...] = ()


def scene_of(session: Session, gate: GithubGate, *, settings: Settings) -> Scene:
    """`open`: something may still change without anyone's doing."""
    scene = _scene(session, gate, settings=settings)
    if gate.current_since is None:
        return scene
    beside = tuple(_scene(session, each, settings=settings) for each in gates.beside(session, gate))
    return replace(scene, beside=beside, open=scene.open or any(each.open for each in beside))


def _scene(session: Session, gate: GithubGate, *, settings: Settings) -> Scene:
    repository = session.get_one(GithubRepository, gate.repository_id)
    plan = Plan.model_validate(gate.plan) if gate.plan else None
    linked = queueing.linked(session, gate)
    rows = [evaluation for _, evaluation in linked]
    outs = {out.id: out for out in evaluation_outs(session, rows, samples=False)} if rows else {}
    evaluations: dict[int, list[EvaluationOut]] = {}
    previews: dict[int, list[EvaluationOut]] = {}
    for link, evaluation in linked:
        (previews if link.preview else evaluations).setdefault(link.target, []).append(outs[evaluation.id])
    accepted: tuple[str, ...] = ()
    if plan is None or gate.ended is not None:
        standing = Standing(planned=plan is not None, ended=gate.ended, broken=gate.error if _gave_up(gate) else None)
    else:
        standing, accepted = _planned(session, gate, plan, project_id=repository.project_id, evaluations=evaluations)
    waiting = [row for row in rows if row.state not in ENDED]
    starved = _starved(session, waiting, settings=settings)
    standing = replace(standing, starved=starved, started=any(row.state != State.QUEUED for row in rows))
    return Scene(
        gate=gate,
        repository=repository,
        plan=plan,
        standing=standing,
        evaluations=evaluations,
        previews=previews,
        accepted=accepted,
        open=gate.ended is None and (gate.state == gates.DUE or bool(waiting)),
    )


def _gave_up(gate: GithubGate) -> bool:
    return gate.state == gates.DONE and gate.plan is None


def _planned(
    session: Session, gate: GithubGate, plan: Plan, *, project_id: str, evaluations: dict[int, list[EvaluationOut]]
) -> tuple[Standing, tuple[str, ...]]:
    """And what was accepted, in words."""
    accepted = []
    holds = []
    for hold in plan.holds:
        yes = gates.accepted_hold(session, project_id=project_id, hold=hold)
        if yes is None:
            holds.append(hold)
        else:
            accepted.append(f"{hold.said}. Accepted by {_who(yes)}")
    subjects = []
    for place, target in enumerate(plan.targets):
        yeses = gates.accepted_slowdowns(session, project_id=project_id, target=target)
        subjects.append(
            GateSubject(
                suite=target.suite,
                evaluations=tuple(evaluations.get(place, ())),
                acceptances=tuple(each for yes in yeses for each in _acceptances(yes)),
                anchored=_anchored(session, target, evaluations.get(place, ())),
            )
        )
        accepted += [f"slower in {', '.join(yes.cases)}: accepted by {_who(yes)}" for yes in yeses]
    unapproved = bool(plan.targets or plan.previews) and not gates.is_approved(session, gate)
    standing = Standing(
        planned=gate.state != gates.DUE,
        unapproved=unapproved,
        faults=plan.faults,
        holds=tuple(holds),
        answer=judge(subjects) if plan.targets else None,
    )
    return standing, tuple(accepted)


def _anchored(session: Session, target: Target, evaluations: Sequence[EvaluationOut]) -> tuple[Anchored, ...]:
    if target.suite.policy.anchor is None or not evaluations:
        return ()
    head = session.get_one(Revision, evaluations[0].revision.id)
    classes = [each.device_class for each in evaluations]
    return anchored(session, suite=target.suite, head=head, device_classes=classes)


def _who(yes: GithubAcceptance) -> str:
    return f"{yes.who}: {yes.why}" if yes.why else yes.who


def _acceptances(yes: GithubAcceptance) -> list[Acceptance]:
    found = []
    for each in yes.cases:
        device_class, _, case = each.partition(" ")
        found.append(
            Acceptance.model_validate({"device_class": device_class, "case": case, "who": yes.who, "reason": yes.why})
        )
    return found


def _starved(session: Session, waiting: Sequence[Evaluation], *, settings: Settings) -> tuple[str, ...]:
    """Classes that something has waited for too long, and of which no healthy node was heard in that time."""
    since = now() - timedelta(seconds=settings.github_node_wait_s)
    late = {
        (each.device_class, each.build_only)
        for each in waiting
        if each.state == State.QUEUED and each.created_at < since
    }
    if not late:
        return ()
    query = select(Node.device_class, Node.build_only_classes).where(
        col(Node.healthy).is_(True), col(Node.last_seen_at) >= since
    )
    at_hand: set[tuple[str, bool]] = set()
    for device_class, builds in session.exec(query).all():
        # What is to be measured needs a card; a node that only compiles for the class is none.
        at_hand |= {(device_class, False), (device_class, True), *((name, True) for name in builds)}
    return tuple(sorted({device_class for device_class, _ in late - at_hand}))
