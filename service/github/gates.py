"""Gates as rows: opened, superseded, measured again, accepted. Each is one step inside the caller's transaction."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlmodel import Session, col, select

from contract.api import Scope
from contract.outcomes import Outcome, Reason, State, Verdict
from contract.text import one_line
from service.auth import Principal
from service.columns import now
from service.dispatch import Wake, wake_of
from service.evaluations import cancel_evaluation
from service.github import queueing
from service.github.line import Known
from service.github.plans import Hold, Plan, Target
from service.github.tables import (
    GithubAcceptance,
    GithubApproval,
    GithubGate,
    GithubGateEvaluation,
    GithubRepository,
)
from service.models import Comparison, Evaluation
from service.settings import Settings
from service.states import ENDED

log = logging.getLogger(__name__)

DUE, RUNNING, DONE = "due", "running", "done"
PULL, QUEUE, PUSH = "pull_request", "merge_group", "push"
_SERVICE = Principal(scope=Scope.ADMIN)


@dataclass(frozen=True, kw_only=True)
class Commit:
    """What a gate is over. `base_sha`: known in a queue and for a push; a pull request's follows from its branch.
    `as_of`: when the pull request was like that."""

    kind: str
    head_sha: str
    base_ref: str
    number: int = 0
    base_sha: str | None = None
    fork: bool = False
    as_of: datetime | None = None


def open_gate(session: Session, repository: GithubRepository, commit: Commit) -> GithubGate:
    """The gate over this commit, made where it is new, and due again where it was cancelled, or pushed again after
    another one. Older commits of the same pull request end as superseded."""
    lock(session, repository)
    query = select(GithubGate).where(
        GithubGate.repository_id == repository.id,
        GithubGate.kind == commit.kind,
        GithubGate.number == commit.number,
        GithubGate.head_sha == commit.head_sha,
        GithubGate.base_ref == commit.base_ref,
    )
    gate = session.exec(query).first()
    if gate is None:
        gate = GithubGate(
            repository_id=repository.id,
            kind=commit.kind,
            number=commit.number,
            head_sha=commit.head_sha,
            base_ref=commit.base_ref,
            base_sha=commit.base_sha,
            fork=commit.fork,
            publish_at=None if commit.kind == PUSH else now(),
        )
        session.add(gate)
        session.flush()
    elif commit.kind == PUSH:
        gate.base_sha, gate.created_at = commit.base_sha, now()
        restart(session, gate)
    elif gate.ended is not None:
        restart(session, gate)
    gate.current_since = gate.current_since or now()
    gate.as_of = commit.as_of
    session.add(gate)
    if commit.kind == PULL:
        for other in of_pull(session, repository, commit.number):
            if other.id != gate.id:
                end_gate(session, other, why=f"superseded by {commit.head_sha[:12]}", reason=Reason.SUPERSEDED)
    return gate


def lock(session: Session, repository: GithubRepository) -> None:
    """Deliveries of one repository are worked off one at a time, however many replicas there are."""
    session.exec(select(GithubRepository.id).where(GithubRepository.id == repository.id).with_for_update()).one()


def of_pull(session: Session, repository: GithubRepository, number: int) -> Sequence[GithubGate]:
    """Newest first."""
    query = select(GithubGate).where(
        GithubGate.repository_id == repository.id, GithubGate.kind == PULL, GithubGate.number == number
    )
    return session.exec(query.order_by(col(GithubGate.id).desc())).all()


def is_stale(session: Session, repository: GithubRepository, number: int, as_of: datetime | None) -> bool:
    """Whether something newer is known of the pull request: deliveries may come late, and be sent again much later."""
    known = [gate.as_of for gate in of_pull(session, repository, number) if gate.as_of is not None]
    return as_of is not None and bool(known) and as_of < max(known)


def of_commit(session: Session, repository: GithubRepository, head_sha: str) -> Sequence[GithubGate]:
    """Those that show a check, newest first: a fork's delivery names no pull request, its commit is what is known."""
    query = select(GithubGate).where(
        GithubGate.repository_id == repository.id, GithubGate.head_sha == head_sha, GithubGate.kind != PUSH
    )
    return session.exec(query.order_by(col(GithubGate.id).desc())).all()


def line(session: Session, *, repository_id: int) -> list[Known]:
    """The pushes whose places on the default branch are known, in their order."""
    query = select(GithubGate.head_sha, GithubGate.first_parent_index).where(
        GithubGate.repository_id == repository_id,
        GithubGate.kind == PUSH,
        col(GithubGate.first_parent_index).is_not(None),
    )
    return [Known(sha=sha, index=index or 0) for sha, index in session.exec(query.order_by("first_parent_index")).all()]


def place_on_line(session: Session, gate: GithubGate) -> int | None:
    """Of the commit that the gate's head is compared with, where it is a push's."""
    query = select(GithubGate.first_parent_index).where(
        GithubGate.repository_id == gate.repository_id,
        GithubGate.kind == PUSH,
        GithubGate.head_sha == gate.base_sha,
    )
    return session.exec(query).first()


def beside(session: Session, gate: GithubGate) -> Sequence[GithubGate]:
    """The others that are current over the same commit and show a check, oldest first."""
    query = select(GithubGate).where(
        GithubGate.repository_id == gate.repository_id,
        GithubGate.head_sha == gate.head_sha,
        GithubGate.kind != PUSH,
        GithubGate.id != gate.id,
        col(GithubGate.current_since).is_not(None),
    )
    return session.exec(query.order_by(col(GithubGate.id))).all()


def look_at_those_beside(session: Session, gate: GithubGate) -> None:
    """Their checks stand for this gate too."""
    for other in beside(session, gate):
        if other.state == DUE:
            continue  # it is sent once it is planned
        other.version += 1
        other.publish_at = other.publish_at or now()
        session.add(other)


def end_gate(session: Session, gate: GithubGate, *, why: str, reason: Reason) -> None:
    """Cancel what it still waits for; what another open gate waits for too goes on. A conclusion stays."""
    gate.current_since = None
    session.add(gate)
    if gate.state == DONE:
        session.flush()
        look_at_those_beside(session, gate)
        return
    gate.state, gate.ended, gate.finished_at = DONE, why, now()
    touch(gate)
    session.add(gate)
    session.flush()
    for _, evaluation in queueing.linked(session, gate):
        if evaluation.state not in ENDED and not is_wanted(session, evaluation):
            cancel_evaluation(session, principal=_SERVICE, evaluation_id=evaluation.id, reason=reason)


def is_wanted(session: Session, evaluation: Evaluation) -> bool:
    """Whether an open gate waits for it."""
    query = (
        select(GithubGate.id)
        .join(GithubGateEvaluation, col(GithubGateEvaluation.gate_id) == GithubGate.id)
        .where(
            GithubGateEvaluation.evaluation_id == evaluation.id,
            col(GithubGate.state) != DONE,
        )
    )
    return session.exec(query).first() is not None


def restart(session: Session, gate: GithubGate, *, new_check: bool = False) -> None:
    """Plan it again; with `new_check` as a new check run, which is what GitHub's own button expects."""
    gate.state, gate.ended, gate.finished_at, gate.started_at = DUE, None, None, None
    gate.due_at = now()
    gate.plan_tries = gate.tries = 0
    gate.error = None
    if new_check:
        forget_check(gate)
    touch(gate)
    session.add(gate)
    session.flush()


def give_up(gate: GithubGate, why: str) -> None:
    """It could not be judged. An older plan says nothing of it any more."""
    gate.state, gate.plan, gate.error, gate.finished_at = DONE, None, why[:1000], now()
    touch(gate)


def touch(gate: GithubGate) -> None:
    """Its check is to be looked at now, whatever is on its way to GitHub at this moment."""
    gate.version += 1
    if gate.kind != PUSH:
        gate.publish_at = now()


def forget_check(gate: GithubGate) -> None:
    """The next thing that is sent is a new check run."""
    if gate.check_run_id is not None:
        gate.check_run_id = None
        gate.checks += 1
    gate.annotations_sent = 0


def measure_again(session: Session, gate: GithubGate, *, settings: Settings) -> list[Wake]:
    """Repeat what didn't pass, or everything where all did; evidence adds up. Plans again where nothing was asked."""
    newest = _newest_linked(session, gate)
    if not newest or gate.plan is None or gate.state == DUE:
        restart(session, gate, new_check=True)
        return []
    failed = [each for each in newest if each[1].outcome not in {Outcome.PASSED, Outcome.BUILT}]
    ended = [each for each in failed or newest if each[1].state in ENDED]
    wakes = []
    for linked, evaluation in ended:
        again = queueing.repeat(session, evaluation, settings=settings)
        queueing.link(session, gate, again, target=linked.target, preview=linked.preview)
        wakes.append(wake_of(again))
    restart(session, gate, new_check=True)
    gate.state = RUNNING
    session.add(gate)
    return wakes


def _newest_linked(session: Session, gate: GithubGate) -> list[tuple[GithubGateEvaluation, Evaluation]]:
    found: dict[tuple[str, str, str, str], tuple[GithubGateEvaluation, Evaluation]] = {}
    for linked, evaluation in queueing.linked(session, gate):
        key = (evaluation.revision_id, evaluation.base_key, evaluation.device_class, evaluation.suite_digest)
        found[key] = (linked, evaluation)
    return list(found.values())


def approve(session: Session, gate: GithubGate, *, who: str) -> None:
    """Let this exact commit of a fork run."""
    if session.get(GithubApproval, (gate.repository_id, gate.head_sha)) is None:
        session.add(GithubApproval(repository_id=gate.repository_id, head_sha=gate.head_sha, who=one_line(who, 100)))
    log.info("%s lets commit %s of a fork run (gate %s)", who, gate.head_sha, gate.id)
    if gate.state != RUNNING:
        restart(session, gate)


def is_approved(session: Session, gate: GithubGate) -> bool:
    # What reached a queue, or the default branch, was put there by someone with write permission.
    return not gate.fork or session.get(GithubApproval, (gate.repository_id, gate.head_sha)) is not None


def accept(session: Session, gate: GithubGate, *, project_id: str, who: str, why: str) -> int:
    """Store a yes to everything that this gate shows as undecided or slower; how many things that were."""
    plan = Plan.model_validate(gate.plan) if gate.plan else None
    if plan is None:
        return 0
    given: dict[str, Any] = {"project_id": project_id, "who": one_line(who, 100), "why": one_line(why, 1000)}
    rows = [
        GithubAcceptance(kernel=hold.kernel, subject=hold.subject, digest=hold.digest, **given)
        for hold in plan.holds
        if accepted_hold(session, project_id=project_id, hold=hold) is None
    ]
    slower = _slower_cases(session, gate, plan)
    for target, cases in slower:
        base = target.base.digest if target.base else ""
        rows.append(
            GithubAcceptance(
                kernel=target.kernel,
                subject="slowdown",
                digest=target.head.digest,
                base_digest=base,
                cases=cases,
                **given,
            )
        )
    session.add_all(rows)
    session.flush()
    log.info("%s accepts %d things in gate %s: %s", who, len(rows), gate.id, why)
    if any(row.subject == "new_kernel" for row in rows):
        restart(session, gate)
    elif rows:
        gate.state = RUNNING
        touch(gate)
        session.add(gate)
    return len(rows)


def _slower_cases(session: Session, gate: GithubGate, plan: Plan) -> list[tuple[Target, list[str]]]:
    found: dict[int, list[str]] = {}
    query = (
        select(GithubGateEvaluation.target, Evaluation.device_class, Comparison.case)
        .join(Evaluation, col(Evaluation.id) == GithubGateEvaluation.evaluation_id)
        .join(Comparison, col(Comparison.evaluation_id) == Evaluation.id)
        .where(
            GithubGateEvaluation.gate_id == gate.id,
            col(GithubGateEvaluation.preview).is_(False),
            Comparison.verdict == Verdict.SLOWER,
            Evaluation.state == State.FINISHED,
        )
    )
    for place, device_class, case in session.exec(query).all():
        found.setdefault(place, []).append(f"{device_class} {case}")
    return [(plan.targets[place], sorted(set(cases))) for place, cases in sorted(found.items())]


def accepted_hold(session: Session, *, project_id: str, hold: Hold) -> GithubAcceptance | None:
    query = select(GithubAcceptance).where(
        GithubAcceptance.project_id == project_id,
        GithubAcceptance.kernel == hold.kernel,
        GithubAcceptance.subject == hold.subject,
        GithubAcceptance.digest == hold.digest,
    )
    return session.exec(query.order_by(col(GithubAcceptance.id).desc())).first()


def accepted_slowdowns(session: Session, *, project_id: str, target: Target) -> Sequence[GithubAcceptance]:
    """Over the same base alone: over another one it may be another slowdown."""
    query = select(GithubAcceptance).where(
        GithubAcceptance.project_id == project_id,
        GithubAcceptance.kernel == target.kernel,
        GithubAcceptance.subject == "slowdown",
        GithubAcceptance.digest == target.head.digest,
        GithubAcceptance.base_digest == (target.base.digest if target.base else ""),
    )
    return session.exec(query.order_by(col(GithubAcceptance.id))).all()
