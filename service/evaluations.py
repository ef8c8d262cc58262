"""Evaluations: made, listed, asked for again, cancelled."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import desc, func
from sqlalchemy.orm import aliased
from sqlmodel import Session, col, select

from contract.api import EvaluationIn
from contract.devices import DeviceClass
from contract.job import PROTOCOL_VERSION
from contract.outcomes import OUTCOME_OF, Outcome, Reason, State
from contract.suite import Suite
from service import find, states
from service.auth import Principal
from service.bases import default_base, named_base
from service.events import add_state_event
from service.models import Evaluation, Kernel, Project, Revision
from service.models import Suite as SuiteRow
from service.pages import cut
from service.problems import ProblemError
from service.projects import suite_of
from service.settings import Settings

# What an earlier evaluation must not be to stand for the one that is asked for.
NO_ANSWER = (Outcome.INFRASTRUCTURE_ERROR, Outcome.CANCELLED)


def check_device_class(suite: Suite, device_class: DeviceClass) -> None:
    """A suite says where its kernel is measured; on `cpu` anything may be compiled, and verified where that works."""
    if device_class not in suite.device_classes and device_class is not DeviceClass.CPU:
        known = ", ".join(each.value for each in suite.device_classes)
        raise ProblemError(
            422,
            "device-class-not-in-suite",
            f"{device_class.value} is not a device class of {suite.kernel}'s suite ({known})",
            field="device_classes",
        )


def ensure_evaluation(
    session: Session,
    *,
    kernel: Kernel,
    suite_row: SuiteRow,
    revision: Revision,
    base: Revision | None,
    device_class: DeviceClass,
    build_only: bool,
    settings: Settings,
    profile: bool = False,
) -> Evaluation | None:
    """A new evaluation, or None where the question was asked before: with the same base, or, where no base is named,
    with any (which revision is newest changes; asking again must add nothing). A profile that is asked for later takes
    a repeat, and so does what was cancelled or could not be measured."""
    check_device_class(suite_of(suite_row, kernel), device_class)
    asked = select(Evaluation.id).where(
        Evaluation.revision_id == revision.id,
        Evaluation.device_class == device_class,
        Evaluation.suite_digest == suite_row.digest,
        Evaluation.protocol_version == PROTOCOL_VERSION,
        col(Evaluation.build_only).is_(build_only),
        col(Evaluation.cancel_requested).is_(False),
        col(Evaluation.outcome).is_(None) | col(Evaluation.outcome).not_in(NO_ANSWER),
    )
    if base is not None:
        asked = asked.where(Evaluation.base_key == base.id)
    if profile:
        asked = asked.where(col(Evaluation.profile).is_(True))
    if session.exec(asked).first():
        return None
    base = base or default_base(session, kernel=kernel, head=revision, device_class=device_class)
    question: dict[str, Any] = {
        "revision_id": revision.id,
        "device_class": device_class,
        "base_key": base.id if base else "",
        "suite_digest": suite_row.digest,
        "protocol_version": PROTOCOL_VERSION,
        "build_only": build_only,
    }
    evaluation = Evaluation(
        **question,
        kernel_id=kernel.id,
        base_id=base.id if base else None,
        suite_id=suite_row.id,
        profile=profile,
        repeat=next_repeat(session, question),
    )
    return queue(session, evaluation, settings=settings)


def repeat_evaluation(
    session: Session, *, principal: Principal, wanted: EvaluationIn, settings: Settings
) -> tuple[Project, Evaluation]:
    """Evaluate again. Without a named base: against what the newest evaluation of this class was against."""
    project, kernel, revision = find.revision_by_id(session, principal=principal, revision_id=wanted.revision)
    kernel = find.kernel_by_name(session, project=project, name=kernel.name, lock=True)
    if revision.digest is None:
        raise ProblemError(
            422,
            "revision-without-files",
            f"{revision.label} was imported: there are no files to measure",
            field="revision",
        )
    suite_row = find.current_suite(session, kernel)
    check_device_class(suite_of(suite_row, kernel), wanted.device_class)
    before = select(Evaluation).where(
        Evaluation.revision_id == revision.id,
        Evaluation.device_class == wanted.device_class,
        col(Evaluation.build_only).is_(wanted.build_only),
    )
    newest = session.exec(before.order_by(desc(col(Evaluation.id)))).first()
    if wanted.base:
        base_id: str | None = named_base(session, kernel=kernel, head=revision, name=wanted.base).id
    elif newest is not None:
        base_id = newest.base_id
    else:
        base = default_base(session, kernel=kernel, head=revision, device_class=wanted.device_class)
        base_id = base.id if base else None
    question: dict[str, Any] = {
        "revision_id": revision.id,
        "device_class": wanted.device_class,
        "base_key": base_id or "",
        "suite_digest": suite_row.digest,
        "protocol_version": PROTOCOL_VERSION,
        "build_only": wanted.build_only,
    }
    evaluation = Evaluation(
        **question,
        kernel_id=kernel.id,
        base_id=base_id,
        suite_id=suite_row.id,
        profile=wanted.profile,
        repeat=next_repeat(session, question),
    )
    return project, queue(session, evaluation, settings=settings)


def cancel_evaluation(
    session: Session, *, principal: Principal, evaluation_id: str, reason: Reason = Reason.BY_REQUEST
) -> Evaluation:
    """Queued: cancelled at once. Leased: it ends with the node's next heartbeat, whose answer
    makes the node kill what runs, or with its lease. Raises 409 where it finished before."""
    evaluation = find.evaluation_by_id(session, principal=principal, evaluation_id=evaluation_id, lock=True)
    if OUTCOME_OF[reason] is not Outcome.CANCELLED:
        raise ValueError(f"{reason.value} cancels nothing")
    if evaluation.state == State.FINISHED:
        raise ProblemError(409, "already-finished", f"evaluation {evaluation_id} finished: {evaluation.outcome}")
    if evaluation.state == State.QUEUED:
        states.fail(session, evaluation, reason=reason, message="cancelled before a node took it")
    elif evaluation.state == State.LEASED and not evaluation.cancel_requested:
        evaluation.cancel_requested = True
        evaluation.cancel_reason = reason
        session.add(evaluation)
        add_state_event(session, evaluation)
    return evaluation


def list_evaluations(
    session: Session,
    *,
    principal: Principal,
    state: State | None,
    project: str | None,
    kernel: str | None,
    device_class: DeviceClass | None,
    after: str | None,
    limit: int,
) -> tuple[Sequence[Evaluation], str | None]:
    """Newest first; the second value is the `after` of the next page."""
    query = select(Evaluation).join(Kernel, col(Kernel.id) == Evaluation.kernel_id)
    if project is not None:
        query = query.where(Kernel.project_id == find.project_by_slug(session, principal=principal, slug=project).id)
    elif principal.project is not None:
        query = query.where(Kernel.project_id == principal.project)
    if kernel is not None:
        query = query.where(Kernel.name == kernel)
    query = _narrowed(query, Evaluation, state=state, device_class=device_class, after=after)
    if state not in {State.QUEUED, State.LEASED}:
        # Of a kernel no more than a page's length of its newest can be on the page, and an index finds the last of
        # them; else every evaluation of the project would be sorted. What is unfinished is few, by an index of its own.
        one = aliased(Evaluation)
        newest = sa.select(col(one.id)).where(col(one.kernel_id) == col(Kernel.id)).correlate(Kernel)
        newest = _narrowed(newest, one, state=state, device_class=device_class, after=after)
        last = newest.order_by(col(one.id).desc()).offset(limit).limit(1).scalar_subquery()
        query = query.where(col(Evaluation.id) >= func.coalesce(last, ""))
    rows = session.exec(query.order_by(desc(col(Evaluation.id))).limit(limit + 1)).all()
    return cut(rows, limit, lambda row: row.id)


def _narrowed(query: Any, row: Any, *, state: State | None, device_class: DeviceClass | None, after: str | None) -> Any:
    if state is not None:
        query = query.where(row.state == state)
    if device_class is not None:
        query = query.where(row.device_class == device_class)
    return query.where(row.id < after) if after is not None else query


def next_repeat(session: Session, question: dict[str, Any]) -> int:
    """The caller holds the kernel, so that no number is given twice."""
    last = session.exec(select(func.max(Evaluation.repeat)).filter_by(**question)).one()
    return (last or 0) + 1


def queue(session: Session, evaluation: Evaluation, *, settings: Settings) -> Evaluation:
    states.queue(evaluation, settings=settings)
    session.add(evaluation)
    session.flush()
    add_state_event(session, evaluation)
    return evaluation
