"""A push to the default branch: the suites that it brings become the kernels' own, its changed revisions points of
their histories."""

import logging

from sqlmodel import Session

from contract.api import Scope
from service.auth import Principal
from service.dispatch import Wake, wake_of
from service.evaluations import ensure_evaluation
from service.find import current_suite, kernel_by_name
from service.github import queueing
from service.github.plans import Planned
from service.github.tables import GithubGate
from service.models import Project
from service.problems import ProblemError
from service.projects import put_suite
from service.settings import Settings

log = logging.getLogger(__name__)
_SERVICE = Principal(scope=Scope.ADMIN)


def record(
    session: Session, *, gate: GithubGate, project: Project, planned: Planned, sizes: dict[str, int], settings: Settings
) -> list[Wake]:
    """The evaluations to be published. What can't be taken over is logged: a push is never refused."""
    plan = planned.plan
    for fault in plan.faults:
        log.warning("push %s to %s: %s", gate.head_sha, project.slug, fault.said)
    taken = set()
    for suite in plan.suites:
        try:
            put_suite(session, principal=_SERVICE, slug=project.slug, kernel_name=suite.kernel, suite=suite)
            taken.add(suite.kernel)
        except ProblemError as error:
            log.warning("push %s to %s: %s", gate.head_sha, project.slug, error)
    wakes = []
    for target in plan.targets:
        if target.kernel not in taken:
            continue
        kernel = kernel_by_name(session, project=project, name=target.kernel, lock=True)
        suite_row = current_suite(session, kernel)
        base = (
            queueing.revision_for(session, kernel=kernel, version=target.base, planned=planned, sizes=sizes)
            if target.base
            else None
        )
        head = queueing.revision_for(
            session,
            kernel=kernel,
            version=target.head,
            planned=planned,
            sizes=sizes,
            mainline=True,
            branch=gate.base_ref,
        )
        suite = next(each for each in plan.suites if each.kernel == target.kernel)
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
