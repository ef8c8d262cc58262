"""Two revisions of a kernel, compared."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from contract.api import CompareOut
from contract.devices import DeviceClass
from service.auth import Reader
from service.comparing import compare
from service.database import DatabaseDep
from service.find import kernel_by_name, project_by_slug
from service.tables import CSV, attachment, comparison_csv

router = APIRouter(tags=["kernels"])

_Name = Annotated[str, Query(min_length=1, max_length=100, description="a label, a revision id or a digest")]


_Download = Annotated[bool, Query(description="as a file to keep")]


@router.get("/projects/{project}/kernels/{kernel}/compare")
def get_comparison(
    project: str,
    kernel: str,
    database: DatabaseDep,
    principal: Reader,
    response: Response,
    *,
    base: _Name,
    head: _Name,
    device_class: DeviceClass,
    download: _Download = False,
) -> CompareOut:
    """Case by case: with a verdict where an evaluation measured exactly these two side by side, else as two separate
    measurements, without one."""
    if download:
        response.headers.update(attachment(kernel, device_class, base, head, ending="json"))
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


@router.get(
    "/projects/{project}/kernels/{kernel}/compare.csv",
    response_class=Response,
    responses={200: {"content": {CSV: {"schema": {"type": "string"}}}}},
)
def get_comparison_csv(
    project: str,
    kernel: str,
    database: DatabaseDep,
    principal: Reader,
    *,
    base: _Name,
    head: _Name,
    device_class: DeviceClass,
) -> Response:
    """The same cases as a table: one line a case, with a header."""
    with database.read() as session:
        owner = project_by_slug(session, principal=principal, slug=project)
        compared = compare(
            session,
            project=owner,
            kernel=kernel_by_name(session, project=owner, name=kernel),
            base=base,
            head=head,
            device_class=device_class,
        )
    headers = attachment(kernel, device_class, compared.base.label, compared.head.label, ending="csv")
    return Response(comparison_csv(compared), media_type=CSV, headers=headers)
