"""POST /revisions speaks JSON and multipart; this reads both into one shape."""

import json
from typing import Any

from fastapi import Request, status
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException

from contract.api import RevisionIn
from contract.bundle import Files
from service.archives import read_archive
from service.problems import ProblemError

_LISTS = frozenset({"device_classes"})


async def read_submission(request: Request) -> tuple[RevisionIn, Files]:
    """Raises RequestValidationError or ProblemError, each naming the field."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json":
        wanted = _validate(_json(await request.body()))
        return wanted, {name: _encode(name, text) for name, text in wanted.files.items()}
    if kind == "multipart/form-data":
        fields, archive = await _form(request)
        files = await run_in_threadpool(read_archive, archive)
        return _validate({**fields, "files": {}}), files
    raise ProblemError(
        415, "unsupported-media-type", "send application/json with inline files, or multipart/form-data with a tar.gz"
    )


async def _form(request: Request) -> tuple[dict[str, Any], bytes]:
    fields: dict[str, Any] = {}
    archive: bytes | None = None
    try:
        async with request.form(max_files=1, max_fields=32) as form:
            for name, value in form.multi_items():
                if isinstance(value, UploadFile):
                    if name != "bundle":
                        detail = f"{name}: the file's field is called bundle"
                        raise ProblemError(422, "invalid-request", detail, field=name)
                    archive = await value.read()
                elif name in _LISTS:
                    fields.setdefault(name, []).extend(part.strip() for part in value.split(",") if part.strip())
                else:
                    fields[name] = value
    except HTTPException as error:
        if error.status_code != status.HTTP_400_BAD_REQUEST:
            raise
        raise ProblemError(422, "invalid-request", f"the form can't be read: {error.detail}") from error
    if archive is None:
        raise ProblemError(422, "bundle-no-files", "bundle: the tar.gz of the files is missing", field="bundle")
    return fields, archive


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ProblemError(422, "invalid-json", f"the body is no JSON: {error}") from error


def _validate(data: Any) -> RevisionIn:
    try:
        return RevisionIn.model_validate(data)
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from error


def _encode(name: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ProblemError(422, "invalid-request", f"files: {name!r} is no text: {error}", field="files") from error
