"""A project's kernels."""

from fastapi import APIRouter

from contract.api import KernelPage
from contract.views import KernelDetail
from service import kernels
from service.auth import Reader
from service.database import DatabaseDep
from service.find import kernel_by_name, project_by_slug
from service.pages import After, Limit

router = APIRouter(tags=["kernels"])


@router.get("/projects/{project}/kernels")
def list_kernels(
    project: str, *, database: DatabaseDep, principal: Reader, after: After = None, limit: Limit = 50
) -> KernelPage:
    """A project's kernels by name: what they are measured on, and how far their history goes."""
    with database.read() as session:
        owner = project_by_slug(session, principal=principal, slug=project)
        return kernels.list_kernels(session, owner, after=after, limit=limit)


@router.get("/projects/{project}/kernels/{kernel}")
def get_kernel(project: str, kernel: str, database: DatabaseDep, principal: Reader) -> KernelDetail:
    """One kernel, and which of its lines stands for it on each class."""
    with database.read() as session:
        owner = project_by_slug(session, principal=principal, slug=project)
        return kernels.kernel_detail(session, owner, kernel_by_name(session, project=owner, name=kernel))
