"""Two revisions of a kernel, compared."""

from typing import Annotated

from fastapi import APIRouter, Query

from contract.api import CompareOut
from contract.devices import DeviceClass
from service.auth import Reader
from service.comparing import compare
from service.database import DatabaseDep
from service.find import kernel_by_name, project_by_slug

router = APIRouter(tags=["kernels"])

_Name = Annotated[str, Query(min_length=1, max_length=100, description="a label, a revision id or a digest")]


@router.get("/projects/{project}/kernels/{kernel}/compare")
def get_comparison(
    project: str,
    kernel: str,
    database: DatabaseDep,
    principal: Reader,
    *,
    base: _Name,
    head: _Name,
    device_class: DeviceClass,
) -> CompareOut:
    """Case by case: with a verdict where an evaluation measured exactly these two side by side, else as two separate
    measurements, without one."""
    with database.read() as session:
        owner = project_by_slug(session, principal=principal, slug=project)
        return compare(
            session,
            project=owner,
            kernel=kernel_by_name(session, project=owner, name=kernel),
            base=base,
            head=head,
            device_class=device_class,
        )
