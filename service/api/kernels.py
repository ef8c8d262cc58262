"""A project's kernels."""

from fastapi import APIRouter

from contract.api import KernelOut
from contract.views import KernelDetail
from service.auth import Reader
from service.database import DatabaseDep
from service.find import kernel_by_name, project_by_slug
from service.kernels import kernel_detail, kernel_outs

router = APIRouter(tags=["kernels"])


@router.get("/projects/{project}/kernels")
def list_kernels(project: str, database: DatabaseDep, principal: Reader) -> list[KernelOut]:
    """All kernels of a project, by name: what they are measured on, and how far their history goes."""
    with database.read() as session:
        return kernel_outs(session, project_by_slug(session, principal=principal, slug=project))


@router.get("/projects/{project}/kernels/{kernel}")
def get_kernel(project: str, kernel: str, database: DatabaseDep, principal: Reader) -> KernelDetail:
    """One kernel, and which of its lines stands for it on each class."""
    with database.read() as session:
        owner = project_by_slug(session, principal=principal, slug=project)
        return kernel_detail(session, owner, kernel_by_name(session, project=owner, name=kernel))
