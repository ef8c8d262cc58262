"""Two revisions of a kernel, compared."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response
from sqlmodel import Session

from contract.api import CompareOut
from contract.devices import DeviceClass
from service.auth import Principal, Reader
from service.comparing import compare
from service.database import DatabaseDep
from service.find import kernel_by_name, project_by_slug
from service.tables import CSV, attachment, comparison_csv

router = APIRouter(tags=["kernels"])

_Name = Annotated[str, Query(min_length=1, max_length=100, description="a label, a revision id or a digest")]
_Download = Annotated[bool, Query(description="as a file to keep")]


@dataclass(frozen=True, kw_only=True)
class _Two:
    """What is compared."""

    project: str
    kernel: str
    base: _Name
    head: _Name
    device_class: DeviceClass

    def read(self, session: Session, principal: Principal) -> CompareOut:
        owner = project_by_slug(session, principal=principal, slug=self.project)
        return compare(
            session,
            project=owner,
            kernel=kernel_by_name(session, project=owner, name=self.kernel),
            base=self.base,
            head=self.head,
            device_class=self.device_class,
        )


@router.get("/projects/{project}/kernels/{kernel}/compare")
def get_comparison(
    two: Annotated[_Two, Depends()],
    database: DatabaseDep,
    principal: Reader,
    response: Response,
    *,
    download: _Download = False,
) -> CompareOut:
    """Case by case: with a verdict where an evaluation measured exactly these two side by side, else as two separate
    measurements, without one."""
    if download:
        response.headers.update(attachment(two.kernel, two.device_class, two.base, two.head, ending="json"))
    with database.read() as session:
        return two.read(session, principal)


@router.get(
    "/projects/{project}/kernels/{kernel}/compare.csv",
    response_class=Response,
    responses={200: {"content": {CSV: {"schema": {"type": "string"}}}}},
)
def get_comparison_csv(two: Annotated[_Two, Depends()], database: DatabaseDep, principal: Reader) -> Response:
    """The same cases as a table: one line a case, with a header."""
    with database.read() as session:
        compared = two.read(session, principal)
    headers = attachment(two.kernel, two.device_class, compared.base.label, compared.head.label, ending="csv")
    return Response(comparison_csv(compared), media_type=CSV, headers=headers)
