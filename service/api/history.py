"""A kernel's history on one device class and case, as JSON and as CSV; and its scaling over a case family."""

import hashlib
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from contract.api import Series
from contract.devices import DeviceClass
from contract.names import MetricName
from contract.views import Scaling
from service.auth import Reader
from service.database import DatabaseDep
from service.find import kernel_by_name, project_by_slug
from service.history import series_out
from service.kept import Kept, version_of
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


@router.get("/projects/{project}/kernels/{kernel}/history", response_model=Series)
def get_history(
    project: str,
    kernel: str,
    database: DatabaseDep,
    principal: Reader,
    *,
    device_class: DeviceClass,
    case: Case,
    metric: Metric = "time",
    limit: Limit = MOST_POINTS,
    before: Before = None,
    after: After = None,
    mainline: Mainline = False,
    points: Points = None,
    download: Download = False,
    request: Request,
) -> Response:
    """Points in the order of the mainline, oldest first. A revision that failed has an outcome and no value. The
    answer's `ETag` changes with the history."""
    asked: dict[str, Any] = {
        "device_class": device_class,
        "case_id": case,
        "metric": metric,
        "limit": limit,
        "before": before,
        "after": after,
        "mainline": mainline,
        "points": points,
    }
    with database.read() as session:
        owner = project_by_slug(session, principal=principal, slug=project)
        known = kernel_by_name(session, project=owner, name=kernel)
        version = version_of(session, kernel_id=known.id, device_class=device_class)
        key = (version, *asked.values())
        tag = f'"{hashlib.sha256(repr(key).encode()).hexdigest()[:32]}"'
        headers = {"Cache-Control": "private, no-cache"}
        if version is not None:
            headers["ETag"] = tag
            if request.headers.get("If-None-Match") == tag:
                return Response(status_code=304, headers=headers)
        body = _ANSWERS.get(key) if version is not None else None
        if body is None:
            series = series_out(session, project=owner, kernel=known, version=version, **asked)
            body = series.model_dump_json().encode()
            if version is not None:
                _ANSWERS.put(key, body)
    if download:
        headers |= attachment(kernel, device_class, case, metric, ending="json")
    return Response(body, media_type="application/json", headers=headers)


@router.get(
    "/projects/{project}/kernels/{kernel}/history.csv",
    response_class=Response,
    responses={200: {"content": {CSV: {"schema": {"type": "string"}}}}},
)
def get_history_csv(
    project: str,
    kernel: str,
    database: DatabaseDep,
    principal: Reader,
    *,
    device_class: DeviceClass,
    case: Case,
    metric: Metric = "time",
    limit: Limit = MOST_POINTS,
    before: Before = None,
    after: After = None,
    mainline: Mainline = False,
) -> Response:
    """The same points as a table: one line a revision, with a header."""
    with database.read() as session:
        owner = project_by_slug(session, principal=principal, slug=project)
        series = series_out(
            session,
            project=owner,
            kernel=kernel_by_name(session, project=owner, name=kernel),
            device_class=device_class,
            case_id=case,
            metric=metric,
            limit=limit,
            before=before,
            after=after,
            mainline=mainline,
        )
    headers = attachment(kernel, device_class, case, metric, ending="csv")
    return Response(series_csv(series), media_type=CSV, headers=headers)


@router.get("/projects/{project}/kernels/{kernel}/scaling")
def get_scaling(
    project: str,
    kernel: str,
    database: DatabaseDep,
    principal: Reader,
    response: Response,
    *,
    device_class: DeviceClass,
    revision: Named = None,
    family: Family = None,
    metric: ScalingMetric = "throughput",
    download: Download = False,
) -> Scaling:
    """One revision over the sizes of its case families, beside the baseline."""
    if download:
        response.headers.update(attachment(kernel, device_class, "scaling", metric, ending="json"))
    with database.read() as session:
        owner = project_by_slug(session, principal=principal, slug=project)
        return scaling_out(
            session,
            project=owner,
            kernel=kernel_by_name(session, project=owner, name=kernel),
            device_class=device_class,
            revision=revision,
            family=family,
            metric=metric,
        )


@router.get(
    "/projects/{project}/kernels/{kernel}/scaling.csv",
    response_class=Response,
    responses={200: {"content": {CSV: {"schema": {"type": "string"}}}}},
)
def get_scaling_csv(
    project: str,
    kernel: str,
    database: DatabaseDep,
    principal: Reader,
    *,
    device_class: DeviceClass,
    revision: Named = None,
    family: Family = None,
    metric: ScalingMetric = "throughput",
) -> Response:
    """The same curves as a table: one line a case, with a header."""
    with database.read() as session:
        owner = project_by_slug(session, principal=principal, slug=project)
        scaling = scaling_out(
            session,
            project=owner,
            kernel=kernel_by_name(session, project=owner, name=kernel),
            device_class=device_class,
            revision=revision,
            family=family,
            metric=metric,
        )
    headers = attachment(kernel, device_class, "scaling", scaling.label, metric, ending="csv")
    return Response(scaling_csv(scaling), media_type=CSV, headers=headers)
