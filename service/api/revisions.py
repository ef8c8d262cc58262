from typing import Annotated, Any

from fastapi import APIRouter, Header, Request, Response, status
from sqlalchemy import desc
from sqlmodel import col, select
from starlette.concurrency import run_in_threadpool

from contract import bundle
from contract.api import RevisionIn, RevisionOut, RevisionPage
from contract.text import clean
from contract.views import SourceFiles
from service import find, submitting
from service.api import examples
from service.api.state import Services, ServicesDep
from service.api.submissions import read_submission
from service.auth import Principal, Reader, Submitter
from service.database import DatabaseDep
from service.dispatch import wake_of
from service.models import Kernel, Revision
from service.pages import After, Limit, cut
from service.presenting import revision_outs
from service.problems import ProblemError
from service.submitting import Submission, check_submission

router = APIRouter(tags=["revisions"])

# What it refers to (DeviceClass) is among the document's components already.
_JSON = RevisionIn.model_json_schema(ref_template="#/components/schemas/{model}")
_JSON.pop("$defs")
_FORM: dict[str, Any] = {
    "type": "object",
    "required": ["project", "kernel", "bundle"],
    "properties": {
        "bundle": {"type": "string", "format": "binary", "description": "a tar.gz: kernel.toml and its sources"},
        **{name: {"type": "string"} for name in ("project", "kernel", "commit", "branch", "base")},
        "device_classes": {"type": "array", "items": {"type": "string"}},
        **{name: {"type": "boolean"} for name in ("build_only", "profile")},
    },
}
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": _JSON,
                "example": examples.REVISION,
            },
            "multipart/form-data": {"schema": _FORM},
        },
    }
}
IdempotencyKey = Annotated[
    str | None,
    Header(min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$", description="the same key, the same answer"),
]


@router.post(
    "/revisions",
    status_code=status.HTTP_201_CREATED,
    openapi_extra=_BODY,
    responses={200: {"description": "It was submitted before", "model": RevisionOut}},
)
async def submit_revision(
    request: Request,
    response: Response,
    services: ServicesDep,
    principal: Submitter,
    idempotency_key: IdempotencyKey = None,
) -> RevisionOut:
    """Submit a revision: its files, what to compare it with, and where. The same bundle, commit and kernel again
    answers the same revision (200); new device classes or another base add evaluations to it."""
    wanted, files = await read_submission(request)
    return await run_in_threadpool(
        _submit, services, principal, response, check_submission(wanted, files), idempotency_key
    )


def _submit(
    services: Services, principal: Principal, response: Response, submission: Submission, key: str | None
) -> RevisionOut:
    with services.database.read() as session:
        submitting.check_target(session, principal=principal, submission=submission)
    archive = bundle.pack(submission.files)
    services.store.put_bundle(submission.digest, archive)
    with services.database.write() as session:
        submitted = submitting.submit(
            session,
            principal=principal,
            submission=submission,
            archive_bytes=len(archive),
            idempotency_key=key,
            settings=services.settings,
        )
        [answer] = revision_outs(session, [submitted.revision])
    services.dispatcher.publish_soon([wake_of(evaluation) for evaluation in submitted.queued])
    response.headers["Location"] = f"/api/v1/revisions/{answer.id}"
    if not submitted.created:
        response.status_code = status.HTTP_200_OK
    return answer


@router.get("/revisions/{revision_id}")
def get_revision(revision_id: str, database: DatabaseDep, principal: Reader) -> RevisionOut:
    with database.read() as session:
        _, _, revision = find.revision_by_id(session, principal=principal, revision_id=revision_id)
        [answer] = revision_outs(session, [revision])
        return answer


@router.get("/revisions/{revision_id}/files")
def get_files(revision_id: str, services: ServicesDep, principal: Reader) -> SourceFiles:
    """The bundle as text. 404 `no-files` for a revision that was imported."""
    with services.database.read() as session:
        _, _, revision = find.revision_by_id(session, principal=principal, revision_id=revision_id)
    archive = services.store.bundle(revision.digest) if revision.digest else None
    if archive is None:
        raise ProblemError(404, "no-files", f"revision {revision.label} has no files here")
    files = {path: clean(data.decode(errors="replace")) for path, data in bundle.unpack(archive).items()}
    return SourceFiles(revision=revision.id, label=revision.label, files=files)


@router.get("/revisions")
def list_revisions(
    *,
    project: str,
    database: DatabaseDep,
    principal: Reader,
    kernel: str | None = None,
    after: After = None,
    limit: Limit = 50,
) -> RevisionPage:
    """A project's revisions, newest first."""
    with database.read() as session:
        owner = find.project_by_slug(session, principal=principal, slug=project)
        query = select(Revision).join(Kernel, col(Kernel.id) == Revision.kernel_id)
        query = query.where(Kernel.project_id == owner.id)
        if kernel is not None:
            query = query.where(Kernel.name == kernel)
        if after is not None:
            query = query.where(col(Revision.id) < after)
        found = session.exec(query.order_by(desc(col(Revision.id))).limit(limit + 1)).all()
        rows, following = cut(found, limit, lambda row: row.id)
        return RevisionPage(items=tuple(revision_outs(session, rows)), next=following)
