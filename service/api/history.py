"""A kernel's history on one device class and case."""

from typing import Annotated

from fastapi import APIRouter, Query

from contract.api import Series
from contract.devices import DeviceClass
from service.auth import Reader
from service.database import DatabaseDep
from service.find import kernel_by_name, project_by_slug
from service.history import series_out

MOST_POINTS = 10_000

router = APIRouter(tags=["kernels"])


@router.get("/projects/{project}/kernels/{kernel}/history")
def get_history(
    project: str,
    kernel: str,
    database: DatabaseDep,
    principal: Reader,
    *,
    device_class: DeviceClass,
    case: Annotated[str, Query(max_length=200, examples=["m=4096,n=4096,k=4096"])],
    metric: Annotated[str, Query(max_length=63, examples=["time"])] = "time",
    limit: Annotated[int, Query(ge=1, le=MOST_POINTS, description="how many points, the newest")] = MOST_POINTS,
    before: Annotated[str | None, Query(max_length=40, description="only points before this revision id")] = None,
    mainline: Annotated[bool, Query(description="without revisions beside the mainline")] = False,
) -> Series:
    """Points in the order of the mainline, oldest first. A revision that failed has an outcome and no value."""
    with database.read() as session:
        owner = project_by_slug(session, principal=principal, slug=project)
        return series_out(
            session,
            project=owner,
            kernel=kernel_by_name(session, project=owner, name=kernel),
            device_class=device_class,
            case_id=case,
            metric=metric,
            limit=limit,
            before=before,
            mainline=mainline,
        )
