"""A project's kernels."""

from fastapi import APIRouter

from contract.api import KernelOut
from service.auth import Reader
from service.database import DatabaseDep
from service.find import kernel_by_name, project_by_slug
from service.kernels import kernel_outs

router = APIRouter(tags=["kernels"])


@router.get("/projects/{project}/kernels")
def list_kernels(project: str, database: DatabaseDep, principal: Reader) -> list[KernelOut]:
    """All kernels of a project, by name: what they are measured on, and how far their history goes."""
    with database.read() as session:
        return kernel_outs(session, project_by_slug(session, principal=principal, slug=project))


@router.get("/projects/{project}/kernels/{kernel}")
def get_kernel(project: str, kernel: str, database: DatabaseDep, principal: Reader) -> KernelOut:
    with database.read() as session:
        owner = project_by_slug(session, principal=principal, slug=project)
        known = kernel_by_name(session, project=owner, name=kernel)
        return kernel_outs(session, owner, only=known.name)[0]
