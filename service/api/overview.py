"""A project at a glance."""

from fastapi import APIRouter

from contract.views import Overview
from service.auth import Reader, SettingsDep
from service.database import DatabaseDep
from service.find import project_by_slug
from service.overview import overview_out

router = APIRouter(tags=["projects"])


@router.get("/projects/{project}/overview")
def get_overview(project: str, database: DatabaseDep, settings: SettingsDep, principal: Reader) -> Overview:
    """Every kernel on every class: its newest result on the mainline, what is bad first. And what waits, what runs,
    and which nodes there are."""
    with database.read() as session:
        return overview_out(
            session, project=project_by_slug(session, principal=principal, slug=project), settings=settings
        )
