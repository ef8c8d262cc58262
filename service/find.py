"""Rows by the names that clients use: ProblemError 404 where there is none, 403 where the token is another's."""

from typing import TypeVar

from sqlmodel import Session, SQLModel, select

from service.auth import Principal
from service.models import Evaluation, Kernel, Project, Revision, Suite
from service.problems import ProblemError, not_found

_Row = TypeVar("_Row", bound=SQLModel)


def project_by_slug(session: Session, *, principal: Principal, slug: str) -> Project:
    project = session.exec(select(Project).where(Project.slug == slug)).first()
    if project is None:
        raise not_found("project", slug, field="project")
    principal.allow(project)
    return project


def kernel_by_name(session: Session, *, project: Project, name: str, lock: bool = False) -> Kernel:
    """`lock`: no other transaction changes this kernel's revisions and evaluations until this one ends."""
    query = select(Kernel).where(Kernel.project_id == project.id, Kernel.name == name)
    kernel = session.exec(query.with_for_update() if lock else query).first()
    if kernel is None:
        raise ProblemError(
            404,
            "unknown-kernel",
            f"project {project.slug} has no kernel {name!r}; bring its suite first",
            field="kernel",
        )
    return kernel


def current_suite(session: Session, kernel: Kernel) -> Suite:
    suite = session.get(Suite, kernel.suite_id) if kernel.suite_id else None
    if suite is None:
        raise ProblemError(
            409, "kernel-without-suite", f"kernel {kernel.name} was imported and has no suite yet; bring one first"
        )
    return suite


def revision_by_id(session: Session, *, principal: Principal, revision_id: str) -> tuple[Project, Kernel, Revision]:
    revision = session.get(Revision, revision_id)
    if revision is None:
        raise not_found("revision", revision_id, field="revision")
    kernel = existing(session, Kernel, revision.kernel_id)
    project = existing(session, Project, kernel.project_id)
    principal.allow(project)
    return project, kernel, revision


def evaluation_by_id(session: Session, *, principal: Principal, evaluation_id: str, lock: bool = False) -> Evaluation:
    query = select(Evaluation).where(Evaluation.id == evaluation_id)
    evaluation = session.exec(query.with_for_update() if lock else query).first()
    if evaluation is None:
        raise not_found("evaluation", evaluation_id)
    principal.allow(existing(session, Project, existing(session, Kernel, evaluation.kernel_id).project_id))
    return evaluation


def existing(session: Session, table: type[_Row], key: str) -> _Row:
    """A row that a foreign key promises."""
    row = session.get(table, key)
    if row is None:
        raise LookupError(f"{table.__name__} {key} is gone")
    return row
