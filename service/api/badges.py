"""Badges for READMEs."""

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from sqlmodel import Session

from contract.devices import DeviceClass
from contract.names import KernelName, ProjectSlug
from contract.views import Standing
from service.auth import Reader
from service.badges import badge_svg
from service.database import DatabaseDep
from service.etags import is_held
from service.find import kernel_by_name, project_by_slug
from service.models import Standing as StandingRow

SVG = "image/svg+xml"
# What GitHub's image proxy keeps, too.
_KEPT_S = 60

router = APIRouter(tags=["badges"])


@router.get(
    "/badge/{project}/{kernel}/{device_class}.svg",
    response_class=Response,
    responses={200: {"content": {SVG: {"schema": {"type": "string"}}}}},
)
def get_badge(
    project: ProjectSlug,
    kernel: KernelName,
    device_class: Annotated[DeviceClass, Path()],
    *,
    request: Request,
    database: DatabaseDep,
    principal: Reader,
) -> Response:
    """Where the kernel stands on the class. Read like everything else: without a token where reading is public."""
    with database.read() as session:
        owner = project_by_slug(session, principal=principal, slug=project)
        known = kernel_by_name(session, project=owner, name=kernel)
        svg, tag = badge_svg(known.name, device_class, _standing(session, known.id, device_class))
    headers = {"Cache-Control": f"max-age={_KEPT_S}", "ETag": tag, "Cross-Origin-Resource-Policy": "cross-origin"}
    if is_held(tag, request.headers.get("If-None-Match")):
        return Response(status_code=304, headers=headers)
    return Response(svg, media_type=SVG, headers=headers)


def _standing(session: Session, kernel_id: str, device_class: DeviceClass) -> Standing | None:
    row = session.get(StandingRow, (kernel_id, device_class))
    return Standing.model_validate(row.content) if row else None
