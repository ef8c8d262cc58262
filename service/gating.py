"""The gate over everything that a commit brought, from the database."""

from __future__ import annotations

from collections.abc import Sequence

from sqlmodel import Session, col, select

from contract.api import EvaluationOut
from contract.devices import DeviceClass
from contract.gate import Acceptance, CommitGate, GateSubject
from service import find
from service.anchoring import anchored
from service.github.plans import Plan
from service.github.tables import GithubAcceptance, GithubGate, GithubRepository
from service.models import Evaluation, Kernel, Project, Revision
from service.presenting import evaluation_outs
from service.problems import ProblemError
from service.projects import suite_of
from verdict.gate import gate


def commit_gate(session: Session, *, project: Project, commit: str) -> CommitGate:
    """By the kernels' current suites. Raises ProblemError 404 `unknown-commit` where nobody ever asked for it: that a
    commit touches no kernel is known only of those that GitHub told of."""
    rows = session.exec(
        select(Revision, Kernel)
        .join(Kernel, col(Kernel.id) == col(Revision.kernel_id))
        .where(Kernel.project_id == project.id, Revision.commit == commit)
        .order_by(col(Kernel.name), col(Revision.id))
    ).all()
    kernels = {kernel.id: kernel for _, kernel in rows}
    asked: dict[str, list[Revision]] = {}
    for revision, kernel in rows:
        asked.setdefault(kernel.id, []).append(revision)
    subjects = [
        subject
        for kernel_id, revisions in asked.items()
        if (subject := _subject(session, kernels[kernel_id], revisions)) is not None
    ]
    if not subjects and not _touches_nothing(session, project, commit):
        raise ProblemError(
            404,
            "unknown-commit",
            f"nothing was asked for at commit {commit} in {project.slug}; "
            "submit a revision with it (`kernelgate submit`), or push it where the GitHub App sees it",
            field="commit",
        )
    return CommitGate(
        project=project.slug,
        commit=commit,
        kernels=tuple(dict.fromkeys(subject.suite.kernel for subject in subjects)),
        answer=gate(subjects),
    )


def _subject(session: Session, kernel: Kernel, revisions: Sequence[Revision]) -> GateSubject | None:
    """None where the commit's revisions are only what others were compared with."""
    evaluations = session.exec(
        select(Evaluation)
        .where(col(Evaluation.revision_id).in_([each.id for each in revisions]))
        .order_by(col(Evaluation.id))
    ).all()
    if not evaluations and _is_a_base(session, revisions):
        return None
    suite = suite_of(find.current_suite(session, kernel), kernel)
    classes = [DeviceClass(each.device_class) for each in evaluations]
    shown = evaluation_outs(session, evaluations, samples=False)
    return GateSubject(
        suite=suite,
        evaluations=tuple(shown),
        acceptances=tuple(_acceptances(session, kernel, shown)),
        anchored=tuple(
            each
            for revision in revisions
            for each in anchored(session, suite=suite, head=revision, device_classes=classes)
        ),
    )


def _is_a_base(session: Session, revisions: Sequence[Revision]) -> bool:
    ids = [each.id for each in revisions]
    return session.exec(select(Evaluation.id).where(col(Evaluation.base_id).in_(ids))).first() is not None


def _acceptances(session: Session, kernel: Kernel, evaluations: Sequence[EvaluationOut]) -> list[Acceptance]:
    """Slowdowns that someone accepted of exactly these bundles over exactly these bases, on the classes compared so."""
    bases: dict[tuple[str, DeviceClass], set[str]] = {}
    for one in evaluations:
        compared = bases.setdefault((one.revision.digest or "", one.device_class), set())
        compared.add((one.base and one.base.digest) or "")
    rows = session.exec(
        select(GithubAcceptance).where(
            GithubAcceptance.project_id == kernel.project_id,
            GithubAcceptance.kernel == kernel.name,
            GithubAcceptance.subject == "slowdown",
            col(GithubAcceptance.digest).in_([digest for digest, _ in bases]),
        )
    ).all()
    made = []
    for row in rows:
        for each in row.cases:
            name, _, case = each.partition(" ")
            device_class = DeviceClass(name)
            if bases.get((row.digest, device_class)) == {row.base_digest}:
                made.append(Acceptance(device_class=device_class, case=case, who=row.who, reason=row.why or "accepted"))
    return made


def _touches_nothing(session: Session, project: Project, commit: str) -> bool:
    """Whether GitHub told of the commit, and its plan was made and is empty."""
    row = session.exec(
        select(GithubGate)
        .join(GithubRepository, col(GithubRepository.id) == col(GithubGate.repository_id))
        .where(GithubRepository.project_id == project.id, GithubGate.head_sha == commit, GithubGate.state != "due")
    ).first()
    return row is not None and row.plan is not None and Plan.model_validate(row.plan).is_empty
