"""Leases: claimed by one node at most, kept by heartbeats, opened by a token that only its node knows."""

import secrets
from datetime import timedelta
from typing import Any

from sqlalchemy import update
from sqlmodel import Session, col

from contract.devices import DeviceClass
from contract.job import Claim, Heartbeat, HeartbeatReply, Job, NodeInfo, Progress, RevisionRef
from contract.outcomes import State
from contract.text import one_line
from service import find, states
from service.auth import Principal, hash_secret, matches
from service.columns import now
from service.events import add_event, add_state_event
from service.ids import new_id
from service.models import Attempt, Evaluation, Kernel, Project, Revision, Suite
from service.nodes import see_node
from service.problems import ProblemError
from service.projects import suite_of
from service.settings import Settings
from service.text import clean_json


def claim(
    session: Session, *, principal: Principal, evaluation_id: str, wanted: Claim, settings: Settings
) -> Job | ProblemError:
    """The job and its lease. 409 `not-claimable`, returned so that what the node said of itself is kept, where it is
    taken, ended, of another class, or the node is unhealthy; raises 404 where there is no such evaluation."""
    node = wanted.node
    see_node(session, principal=principal, info=node)
    evaluation = find.evaluation_by_id(session, principal=principal, evaluation_id=evaluation_id)
    refusal = _refusal(evaluation, node)
    if refusal:
        return ProblemError(409, "not-claimable", f"evaluation {evaluation_id} {refusal}")
    moment = now()
    lease = f"kl_{secrets.token_urlsafe(32)}"
    attempt = Attempt(
        id=new_id("att"),
        evaluation_id=evaluation_id,
        node=node.name,
        lease_hash=hash_secret(lease),
        started_at=moment,
        heartbeat_at=moment,
        deadline=moment + timedelta(seconds=settings.lease_deadline_s),
    )
    # The compare-and-set: of two claims at once, the second finds the row no longer queued.
    taken: Any = update(Evaluation).where(col(Evaluation.id) == evaluation_id, col(Evaluation.state) == State.QUEUED)
    values = {
        "state": State.LEASED,
        "attempt_id": attempt.id,
        "attempts": Evaluation.attempts + 1,
        "leased_at": moment,
        "publish_due_at": None,
    }
    if session.exec(taken.values(**values)).rowcount != 1:
        return ProblemError(409, "not-claimable", f"evaluation {evaluation_id} was taken by another node just now")
    session.add(attempt)
    session.flush()
    session.refresh(evaluation)
    add_state_event(session, evaluation)
    return _job(session, evaluation, attempt=attempt, lease=lease, settings=settings)


def held_evaluation(
    session: Session, *, principal: Principal, evaluation_id: str, lease: str
) -> tuple[Evaluation, Attempt]:
    """The evaluation, its row held, whose live lease `lease` opens; raises 409 `lease-lost` otherwise."""
    evaluation = find.evaluation_by_id(session, principal=principal, evaluation_id=evaluation_id, lock=True)
    attempt = session.get(Attempt, evaluation.attempt_id) if evaluation.attempt_id else None
    if evaluation.state != State.LEASED or attempt is None or not matches(lease, attempt.lease_hash):
        raise ProblemError(
            409,
            "lease-lost",
            f"this lease of evaluation {evaluation_id} is over (it is {evaluation.state}); nothing was changed",
        )
    if principal.node is not None and principal.node != attempt.node:
        raise ProblemError(403, "forbidden", f"this lease is node {attempt.node}'s")
    return evaluation, attempt


def heartbeat(
    session: Session, *, principal: Principal, evaluation_id: str, lease: str, beat: Heartbeat
) -> HeartbeatReply:
    """Keep the lease. Where the evaluation is to be cancelled, it ends here and the answer says so."""
    evaluation, attempt = held_evaluation(session, principal=principal, evaluation_id=evaluation_id, lease=lease)
    see_node(session, principal=principal, info=beat.node)
    attempt.heartbeat_at = now()
    session.add(attempt)
    for progress in beat.progress:
        evaluation.stage = progress.stage
        evaluation.progress = _progress_text(progress)
        data = progress.model_copy(update={"at": progress.at or attempt.heartbeat_at})
        add_event(session, evaluation, "progress", clean_json(data.model_dump(mode="json")))
    if evaluation.cancel_requested:
        # With this answer the node knows; should the answer get lost, its next heartbeat finds the lease gone.
        states.end_cancelled(session, evaluation, message=f"cancelled while node {attempt.node} worked on it")
        return HeartbeatReply(cancel=True, deadline=attempt.deadline)
    return HeartbeatReply(cancel=False, deadline=attempt.deadline)


def _refusal(evaluation: Evaluation, node: NodeInfo) -> str | None:
    if evaluation.state != State.QUEUED:
        return f"is {evaluation.state}"
    device_class = DeviceClass(evaluation.device_class)
    builds = evaluation.build_only and device_class in node.build_only_classes
    if device_class is not node.device_class and not builds:
        what = "a build for" if evaluation.build_only else "for"
        return f"is {what} {device_class.value}, and node {node.name} is {node.device_class.value}"
    if not node.healthy:
        return (
            f"is not for node {node.name}, which calls itself unhealthy: {one_line(node.problem or 'no reason', 300)}"
        )
    return None


def _progress_text(progress: Progress) -> str:
    counted = f" {progress.done}/{progress.total}" if progress.total else ""
    return one_line(f"{progress.stage.value}{counted} {progress.detail}", 400)


def _job(session: Session, evaluation: Evaluation, *, attempt: Attempt, lease: str, settings: Settings) -> Job:
    kernel = find.existing(session, Kernel, evaluation.kernel_id)
    return Job(
        evaluation_id=evaluation.id,
        lease_token=lease,
        deadline=attempt.deadline,
        heartbeat_s=settings.heartbeat_s,
        project=find.existing(session, Project, kernel.project_id).slug,
        kernel=kernel.name,
        device_class=evaluation.device_class,
        revision=_reference(session, evaluation.revision_id),
        base=_reference(session, evaluation.base_id) if evaluation.base_id else None,
        suite=suite_of(find.existing(session, Suite, evaluation.suite_id or ""), kernel),
        protocol_version=evaluation.protocol_version,
        repeat=evaluation.repeat,
        build_only=evaluation.build_only,
        profile=evaluation.profile,
    )


def _reference(session: Session, revision_id: str) -> RevisionRef:
    revision = find.existing(session, Revision, revision_id)
    return RevisionRef(id=revision.id, label=revision.label, digest=revision.digest or "")
