"""Histories that were measured elsewhere."""

from typing import Annotated

from fastapi import APIRouter, Body

from contract.api import ImportIn, ImportOut
from service.api import examples
from service.auth import Maintainer
from service.database import DatabaseDep
from service.find import project_by_slug
from service.importing import import_history

router = APIRouter(tags=["kernels"])


@router.post("/projects/{project}/imports")
def post_import(
    project: str,
    wanted: Annotated[ImportIn, Body(examples=[examples.IMPORT])],
    database: DatabaseDep,
    principal: Maintainer,
) -> ImportOut:
    """Bring a history: its revisions have neither bundle nor commit and stand in the file's order. The same file with
    the same provenance again adds nothing. A file with an error is refused as a whole."""
    with database.write() as session:
        return import_history(
            session,
            project=project_by_slug(session, principal=principal, slug=project),
            csv=wanted.csv,
            provenance=wanted.provenance,
            margin=wanted.margin,
        )
