"""A push to the default branch: the suites that it brings become the kernels' own, its changed revisions points of
their histories."""

import logging
from collections.abc import Sequence
from typing import Any

from sqlalchemy import update
from sqlmodel import Session, col, select

from contract.api import Scope
from contract.outcomes import Reason
from contract.suite import Suite
from service.auth import Principal
from service.dispatch import Wake, wake_of
from service.evaluations import cancel_evaluation, ensure_evaluation
from service.find import current_suite, kernel_by_name
from service.github import gates, queueing
from service.github.line import Place
from service.github.plans import Planned
from service.github.tables import GithubGate
from service.models import Kernel, Project, Revision
from service.problems import ProblemError
from service.projects import put_suite, suite_of
from service.regressions.leaving import leave_mainline
from service.settings import Settings
from service.standings import refresh_all_standings

log = logging.getLogger(__name__)
_SERVICE = Principal(scope=Scope.ADMIN)


def record(
    session: Session,
    *,
    gate: GithubGate,
    project: Project,
    planned: Planned,
    place: Place,
    sizes: dict[str, int],
    settings: Settings,
) -> list[Wake]:
    """The evaluations to be published. What can't be taken over is logged: a push is never refused."""
    plan = planned.plan
    for fault in plan.faults:
        log.warning("push %s to %s: %s", gate.head_sha, project.slug, fault.said)
    _leave(session, gate=gate, project=project, left=place.left)
    taken = {
        suite.kernel
        for suite in plan.suites
        if (place.late and _has_suite(session, project, suite.kernel)) or _take_suite(session, gate, project, suite)
    }
    wakes = []
    for target in plan.targets:
        if target.kernel not in taken:
            continue
        kernel = kernel_by_name(session, project=project, name=target.kernel, lock=True)
        _place_earlier(session, kernel, before=place.base_index)
        suite_row = current_suite(session, kernel)
        suite = suite_of(suite_row, kernel)
        revisions = queueing.Revisions(session=session, kernel=kernel, planned=planned, sizes=sizes)
        base = revisions.base(target.base, place=place.base_index) if target.base else None
        head = revisions.on_line(target.head, place=place.index, branch=gate.base_ref)
        for device_class, build_only in queueing.classes_of(session, suite, settings=settings):
            evaluation = ensure_evaluation(
                session,
                kernel=kernel,
                suite_row=suite_row,
                revision=head,
                base=base,
                device_class=device_class,
                build_only=build_only,
                settings=settings,
            )
            if evaluation is not None:
                wakes.append(wake_of(evaluation))
    return wakes


def _has_suite(session: Session, project: Project, name: str) -> bool:
    query = select(Kernel.suite_id).where(Kernel.project_id == project.id, Kernel.name == name)
    return session.exec(query).first() is not None


def _take_suite(session: Session, gate: GithubGate, project: Project, suite: Suite) -> bool:
    try:
        put_suite(session, principal=_SERVICE, slug=project.slug, kernel_name=suite.kernel, suite=suite)
    except ProblemError as error:
        log.warning("push %s to %s: %s", gate.head_sha, project.slug, error)
        return False
    return True


def _place_earlier(session: Session, kernel: Kernel, *, before: int) -> None:
    """What came by another way than a push has no place of its own: it came before this push."""
    unplaced: Any = update(Revision).where(
        col(Revision.kernel_id) == kernel.id, col(Revision.first_parent_index).is_(None)
    )
    if session.exec(unplaced.values(first_parent_index=before)).rowcount:
        refresh_all_standings(session, kernel)


def _leave(session: Session, *, gate: GithubGate, project: Project, left: Sequence[str]) -> None:
    """The branch was rewritten: its points from there on are none of the line any more."""
    if not left:
        return
    log.info("push %s to %s: %d earlier pushes are not on the branch any more", gate.head_sha, project.slug, len(left))
    forget: Any = update(GithubGate).where(
        col(GithubGate.repository_id) == gate.repository_id,
        col(GithubGate.kind) == gates.PUSH,
        col(GithubGate.head_sha).in_(left),
    )
    session.exec(forget.values(first_parent_index=None))
    rows = session.exec(
        select(Revision, Kernel)
        .join(Kernel, col(Kernel.id) == col(Revision.kernel_id))
        .where(Kernel.project_id == project.id, col(Revision.mainline).is_(True), col(Revision.commit).in_(left))
    ).all()
    for kernel in {kernel.id: kernel for _, kernel in rows}.values():
        gone = [revision for revision, own in rows if own.id == kernel.id]
        leave_mainline(session, kernel, gone, why=f"pushed away by {gate.head_sha[:12]}")
        for evaluation in queueing.unfinished(session, gone):
            if not gates.is_wanted(session, evaluation):
                cancel_evaluation(session, principal=_SERVICE, evaluation_id=evaluation.id, reason=Reason.SUPERSEDED)
