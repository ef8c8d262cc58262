"""A kernel's history on one device class and case, as JSON and as CSV; and its scaling over a case family."""

import hashlib
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from sqlmodel import Session

from contract.api import Series
from contract.devices import DeviceClass
from contract.names import MetricName
from contract.views import Scaling
from service.auth import Principal, Reader
from service.database import DatabaseDep
from service.etags import is_held
from service.find import kernel_by_name, project_by_slug
from service.history import series_out
from service.kept import Kept, version_of
from service.models import Kernel, Project
from service.scaling import scaling_out
from service.tables import CSV, attachment, scaling_csv, series_csv

MOST_POINTS = 10_000
# A thinned line is some 300 kB.
_ANSWERS: Kept[bytes] = Kept(128)

router = APIRouter(tags=["kernels"])

Case = Annotated[str, Query(max_length=200, examples=["m=4096,n=4096,k=4096"], description="empty: of no case")]
Metric = Annotated[MetricName, Query(examples=["time"])]
Limit = Annotated[int, Query(ge=1, le=MOST_POINTS, description="how many points, the newest")]
Before = Annotated[str | None, Query(max_length=40, description="only points before this revision id")]
After = Annotated[str | None, Query(max_length=40, description="only points after this revision id")]
Mainline = Annotated[bool, Query(description="without revisions beside the mainline")]
Points = Annotated[
    int | None,
    Query(
        ge=4,
        le=MOST_POINTS,
        description="thin the line to about so many points: the first, last, least and greatest of each stretch (M4)"
        " stay, and every revision that failed or is faster or slower than its base",
    ),
]
Named = Annotated[
    str | None, Query(max_length=100, description="a label, an id or a digest; by default the newest measured")
]
ScalingMetric = Annotated[MetricName, Query(examples=["throughput"])]
Family = Annotated[str | None, Query(max_length=200, description="by default every family of the suite")]
Download = Annotated[bool, Query(description="as a file to keep")]


@dataclass(frozen=True, kw_only=True)
class _Line:
    """A series of a kernel, and which of its points."""

    project: str
    kernel: str
    device_class: DeviceClass
    case: Case
    metric: Metric = "time"
    limit: Limit = MOST_POINTS
    before: Before = None
    after: After = None
    mainline: Mainline = False

    def find(self, session: Session, principal: Principal) -> tuple[Project, Kernel]:
        owner = project_by_slug(session, principal=principal, slug=self.project)
        return owner, kernel_by_name(session, project=owner, name=self.kernel)

    @property
    def points(self) -> dict[str, Any]:
        return {
            "device_class": self.device_class,
            "case_id": self.case,
            "metric": self.metric,
            "limit": self.limit,
            "before": self.before,
            "after": self.after,
            "mainline": self.mainline,
        }

    def attachment(self, *, ending: str) -> dict[str, str]:
        return attachment(self.kernel, self.device_class, self.case, self.metric, ending=ending)


@dataclass(frozen=True, kw_only=True)
class _Curves:
    """One revision of a kernel over its case families."""

    project: str
    kernel: str
    device_class: DeviceClass
    revision: Named = None
    family: Family = None
    metric: ScalingMetric = "throughput"

    def read(self, session: Session, principal: Principal) -> Scaling:
        owner = project_by_slug(session, principal=principal, slug=self.project)
        return scaling_out(
            session,
            project=owner,
            kernel=kernel_by_name(session, project=owner, name=self.kernel),
            device_class=self.device_class,
            revision=self.revision,
            family=self.family,
            metric=self.metric,
        )


@router.get("/projects/{project}/kernels/{kernel}/history", response_model=Series)
def get_history(
    line: Annotated[_Line, Depends()],
    database: DatabaseDep,
    principal: Reader,
    *,
    points: Points = None,
    download: Download = False,
    request: Request,
) -> Response:
    """Points in the order of the mainline, oldest first. A revision that failed has an outcome and no value. The
    answer's `ETag` changes with the history."""
    asked = {**line.points, "points": points}
    with database.read() as session:
        owner, kernel = line.find(session, principal)
        version = version_of(session, kernel_id=kernel.id, device_class=line.device_class)
        key = (version, *asked.values())
        tag = f'"{hashlib.sha256(repr(key).encode()).hexdigest()[:32]}"'
        headers = {"Cache-Control": "private, no-cache"}
        if version is not None:
            headers["ETag"] = tag
            if is_held(tag, request.headers.get("If-None-Match")):
                return Response(status_code=304, headers=headers)
        body = _ANSWERS.get(key) if version is not None else None
        if body is None:
            series = series_out(session, project=owner, kernel=kernel, version=version, **asked)
            body = series.model_dump_json().encode()
            if version is not None:
                _ANSWERS.put(key, body)
    if download:
        headers |= line.attachment(ending="json")
    return Response(body, media_type="application/json", headers=headers)


@router.get(
    "/projects/{project}/kernels/{kernel}/history.csv",
    response_class=Response,
    responses={200: {"content": {CSV: {"schema": {"type": "string"}}}}},
)
def get_history_csv(line: Annotated[_Line, Depends()], database: DatabaseDep, principal: Reader) -> Response:
    """The same points as a table: one line a revision, with a header."""
    with database.read() as session:
        owner, kernel = line.find(session, principal)
        series = series_out(session, project=owner, kernel=kernel, **line.points)
    return Response(series_csv(series), media_type=CSV, headers=line.attachment(ending="csv"))


@router.get("/projects/{project}/kernels/{kernel}/scaling")
def get_scaling(
    curves: Annotated[_Curves, Depends()],
    database: DatabaseDep,
    principal: Reader,
    response: Response,
    *,
    download: Download = False,
) -> Scaling:
    """One revision over the sizes of its case families, beside the baseline."""
    if download:
        headers = attachment(curves.kernel, curves.device_class, "scaling", curves.metric, ending="json")
        response.headers.update(headers)
    with database.read() as session:
        return curves.read(session, principal)


@router.get(
    "/projects/{project}/kernels/{kernel}/scaling.csv",
    response_class=Response,
    responses={200: {"content": {CSV: {"schema": {"type": "string"}}}}},
)
def get_scaling_csv(curves: Annotated[_Curves, Depends()], database: DatabaseDep, principal: Reader) -> Response:
    """The same curves as a table: one line a case, with a header."""
    with database.read() as session:
        scaling = curves.read(session, principal)
    headers = attachment(curves.kernel, curves.device_class, "scaling", scaling.label, curves.metric, ending="csv")
    return Response(scaling_csv(scaling), media_type=CSV, headers=headers)
