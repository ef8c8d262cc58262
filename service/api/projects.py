from typing import Annotated

from fastapi import APIRouter, Body, status

from contract.api import ProjectIn, ProjectOut, ProjectPage, SuiteOut
from contract.suite import Suite
from service import projects
from service.api import examples
from service.auth import Maintainer, Reader
from service.database import DatabaseDep
from service.pages import After, Limit

router = APIRouter(tags=["projects"])


@router.post("/projects", status_code=status.HTTP_201_CREATED)
def create_project(
    wanted: Annotated[ProjectIn, Body(examples=[examples.PROJECT])], database: DatabaseDep, principal: Maintainer
) -> ProjectOut:
    """Make a project. Needs a token of scope `maintain` that is bound to no project."""
    with database.write() as session:
        return projects.create_project(session, principal=principal, wanted=wanted)


@router.get("/projects")
def list_projects(*, database: DatabaseDep, principal: Reader, after: After = None, limit: Limit = 50) -> ProjectPage:
    """By slug."""
    with database.read() as session:
        return projects.list_projects(session, principal=principal, after=after, limit=limit)


@router.get("/projects/{project}")
def get_project(project: str, database: DatabaseDep, principal: Reader) -> ProjectOut:
    with database.read() as session:
        return projects.get_project(session, principal=principal, slug=project)


@router.put("/projects/{project}/kernels/{kernel}/suite", tags=["suites"])
def put_suite(
    project: str,
    kernel: str,
    suite: Annotated[Suite, Body(examples=[examples.SUITE])],
    database: DatabaseDep,
    principal: Maintainer,
) -> SuiteOut:
    """Bring a kernel's suite; the kernel is made where it is missing. Revisions judged before keep the suite that they
    were judged by. Appending to `revisions` leaves the digest as it is."""
    with database.write() as session:
        return projects.put_suite(session, principal=principal, slug=project, kernel_name=kernel, suite=suite)


@router.get("/projects/{project}/kernels/{kernel}/suite", tags=["suites"])
def get_suite(project: str, kernel: str, database: DatabaseDep, principal: Reader) -> SuiteOut:
    with database.read() as session:
        return projects.get_suite(session, principal=principal, slug=project, kernel_name=kernel)
