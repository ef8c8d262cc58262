"""Projects and their suites."""

from sqlmodel import Session, col, select

from contract.api import ProjectIn, ProjectOut, ProjectPage, SuiteOut
from contract.suite import Suite
from contract.text import one_line
from service import find
from service.auth import Principal
from service.bases import position_of
from service.models import Kernel, Project, Revision
from service.models import Suite as SuiteRow
from service.pages import cut
from service.problems import ProblemError
from service.standings import refresh_all_standings
from service.text import clean_json


def create_project(session: Session, *, principal: Principal, wanted: ProjectIn) -> ProjectOut:
    if principal.project is not None:
        raise ProblemError(403, "forbidden", "a token bound to a project can't make another one")
    if session.exec(select(Project).where(Project.slug == wanted.slug)).first():
        raise ProblemError(409, "project-exists", f"there is a project {wanted.slug} already", field="slug")
    project = Project(slug=wanted.slug, name=one_line(wanted.name, 200))
    session.add(project)
    return _project_out(project)


def list_projects(session: Session, *, principal: Principal, after: str | None, limit: int) -> ProjectPage:
    query = select(Project).order_by(Project.slug).limit(limit + 1)
    if principal.project is not None:
        query = query.where(Project.id == principal.project)
    if after is not None:
        query = query.where(Project.slug > after)
    rows, following = cut(session.exec(query).all(), limit, lambda row: row.slug)
    return ProjectPage(items=tuple(map(_project_out, rows)), next=following)


def get_project(session: Session, *, principal: Principal, slug: str) -> ProjectOut:
    return _project_out(find.project_by_slug(session, principal=principal, slug=slug))


def put_suite(session: Session, *, principal: Principal, slug: str, kernel_name: str, suite: Suite) -> SuiteOut:
    """Make `suite` the kernel's current one; the kernel is made where it is missing."""
    if suite.kernel != kernel_name:
        raise ProblemError(422, "invalid-request", f"kernel: the suite is {suite.kernel}'s", field="kernel")
    project = find.project_by_slug(session, principal=principal, slug=slug)
    query = select(Kernel).where(Kernel.project_id == project.id, Kernel.name == kernel_name).with_for_update()
    kernel = session.exec(query).first() or Kernel(project_id=project.id, name=kernel_name)
    if kernel.operator and kernel.operator != suite.operator:
        raise ProblemError(
            409,
            "operator-changed",
            f"kernel {kernel_name} computes {kernel.operator}; another operator needs another kernel",
            field="operator",
        )
    kernel.operator = suite.operator
    kernel.summary = one_line(suite.summary, 1000)
    kernel.listed = list(suite.revisions)
    session.add(kernel)
    session.flush()
    row = keep_suite(session, kernel=kernel, suite=suite)
    kernel.suite_id = row.id
    for revision in session.exec(select(Revision).where(Revision.kernel_id == kernel.id)).all():
        if revision.origin == "submitted":
            revision.position = position_of(revision.label, kernel.listed)
            session.add(revision)
    refresh_all_standings(session, kernel)
    return _suite_out(project, kernel, row)


def get_suite(session: Session, *, principal: Principal, slug: str, kernel_name: str) -> SuiteOut:
    project = find.project_by_slug(session, principal=principal, slug=slug)
    kernel = find.kernel_by_name(session, project=project, name=kernel_name)
    return _suite_out(project, kernel, find.current_suite(session, kernel))


def suite_of(row: SuiteRow, kernel: Kernel) -> Suite:
    """The suite as an author writes it: this version's content with the kernel's list of revisions."""
    return Suite.model_validate({**row.content, "revisions": kernel.listed})


def keep_suite(session: Session, *, kernel: Kernel, suite: Suite) -> SuiteRow:
    """The row of this version of the suite; it does not become the kernel's current one."""
    query = select(SuiteRow).where(SuiteRow.kernel_id == kernel.id, col(SuiteRow.digest) == suite.digest)
    row = session.exec(query).first()
    if row is None:
        content = clean_json(suite.model_dump(mode="json", exclude={"revisions"}))
        row = SuiteRow(kernel_id=kernel.id, digest=suite.digest, content=content)
        session.add(row)
        session.flush()
    return row


def _project_out(project: Project) -> ProjectOut:
    return ProjectOut(slug=project.slug, name=project.name, created_at=project.created_at)


def _suite_out(project: Project, kernel: Kernel, row: SuiteRow) -> SuiteOut:
    return SuiteOut(project=project.slug, suite=suite_of(row, kernel), digest=row.digest, created_at=row.created_at)
