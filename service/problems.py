"""Errors as RFC 9457 problem details. `type` is stable; the words may change."""

from collections.abc import Sequence
from typing import Any, cast

from fastapi import FastAPI, Request, status
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from sqlalchemy.exc import DataError, IntegrityError
from starlette.exceptions import HTTPException

from contract.api import Problem

MEDIA_TYPE = "application/problem+json"
_NAMES = {404: "not-found", 405: "method-not-allowed", 413: "request-too-large"}


class ProblemError(Exception):
    """What was wrong, where, and what to do. `name`: kebab-case, the end of the problem's type."""

    def __init__(self, status: int, name: str, detail: str, *, field: str | None = None) -> None:
        super().__init__(detail)
        self.problem = Problem(
            type=f"urn:kernelgate:problem:{name}",
            title=name.replace("-", " ").capitalize(),
            status=status,
            detail=detail,
            field=field,
        )


def not_found(what: str, name: str, *, field: str | None = None) -> ProblemError:
    """404 `unknown-<what>`, e.g. what="kernel"."""
    return ProblemError(404, f"unknown-{what}", f"there is no {what} {name!r}", field=field)


def too_large(detail: str) -> ProblemError:
    return ProblemError(413, "request-too-large", detail)


def install(app: FastAPI) -> None:
    app.add_exception_handler(ProblemError, _problem)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(IntegrityError, _conflict)
    app.add_exception_handler(DataError, _no_value)
    app.add_exception_handler(Exception, _unexpected)


def respond(error: ProblemError, headers: dict[str, str] | None = None) -> JSONResponse:
    problem = error.problem
    if problem.status == 401:
        headers = {"WWW-Authenticate": "Bearer", **(headers or {})}
    content = problem.model_dump(exclude_none=True)
    return JSONResponse(content, status_code=problem.status, media_type=MEDIA_TYPE, headers=headers)


def _problem(_request: Request, error: Exception) -> JSONResponse:
    return respond(cast("ProblemError", error))


def _invalid(_request: Request, error: Exception) -> JSONResponse:
    return respond(invalid_request(cast("RequestValidationError", error).errors()))


def invalid_request(errors: Sequence[Any]) -> ProblemError:
    """The first of pydantic's errors, said with its field; and how many more there are."""
    first = errors[0]
    field = ".".join(str(part) for part in first["loc"] if part not in {"body", "query", "path", "header"})
    if first["type"] == "json_invalid":
        return ProblemError(422, "invalid-json", f"the body is no JSON: {first.get('ctx', {}).get('error', '')}")
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        message = "is not a field of this resource"
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return ProblemError(422, "invalid-request", f"{field or 'body'}: {message}{more}", field=field or None)


def _http(request: Request, raised: Exception) -> JSONResponse:
    error = cast("HTTPException", raised)
    detail, path = str(error.detail), request.url.path[:200]
    if error.status_code == status.HTTP_404_NOT_FOUND:
        detail = f"there is nothing at {path!r}; /api/v1/docs lists what there is"
    elif error.status_code == status.HTTP_405_METHOD_NOT_ALLOWED:
        detail = f"{request.method} is no method of {path!r}; /api/v1/docs lists what there is"
    name = _NAMES.get(error.status_code, f"http-{error.status_code}")
    return respond(ProblemError(error.status_code, name, detail), dict(error.headers or {}))


def _conflict(_request: Request, _error: Exception) -> JSONResponse:
    return respond(ProblemError(409, "conflict", "another request changed the same at the same moment; try again"))


def _no_value(_request: Request, _error: Exception) -> JSONResponse:
    return respond(ProblemError(422, "invalid-request", "something in it is nothing that the database can hold"))


def _unexpected(_request: Request, _error: Exception) -> JSONResponse:
    # What went wrong is in the log; a client learns nothing of the service's insides.
    return respond(ProblemError(500, "internal-error", "the service failed; its log says why"))
