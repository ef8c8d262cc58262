"""The one HTTP client: every command that talks to the service goes through it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

import httpx
from pydantic import BaseModel, TypeAdapter, ValidationError

from cli.errors import CliError, Exit, ProblemError
from contract.api import Problem
from contract.text import clean, one_line

_T = TypeVar("_T")
_Item_co = TypeVar("_Item_co", covariant=True)

API = "/api/v1"
CONNECT_S = 5.0
# Longer than the service's own limits, so that the client is never the one who gives up first.
ANSWER_S = 60.0
LONG_POLL_S = 30
# The most that the service gives.
PAGE = 200

_HINTS = {
    "unauthorised": "set KERNELGATE_TOKEN to a token of this service (`kernelgate token create` makes one)",
    "forbidden": "use a token of a wider scope (`kernelgate token create --scope …`)",
    "unknown-kernel": "push its suite first: `kernelgate suite push PATH`",
    "unknown-project": "check the name after --project; `local` is the one that `kernelgate up` makes",
}


class _Page(Protocol[_Item_co]):
    @property
    def items(self) -> tuple[_Item_co, ...]: ...

    @property
    def next(self) -> str | None: ...


class Client:
    """Requests to /api/v1 with the token; problems become ProblemError, answers become contract models."""

    def __init__(self, url: str, token: str | None = None, *, transport: httpx.BaseTransport | None = None) -> None:
        self.url = url.rstrip("/")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._http = httpx.Client(
            base_url=self.url,
            headers=headers,
            timeout=httpx.Timeout(ANSWER_S, connect=CONNECT_S),
            transport=transport,
            trust_env=not self.url.startswith(("http://127.0.0.1", "http://localhost")),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def get(self, path: str, answer: type[_T], **query: Any) -> _T:
        return self._parse(self.send("GET", path, params=_given(query)), answer)

    def items(self, path: str, answer: type[_Page[_T]], **query: Any) -> Iterator[_T]:
        """What a list has, page by page: the next one is asked for when it is come to."""
        after: str | None = None
        while True:
            page = self.get(path, answer, after=after, limit=PAGE, **query)
            yield from page.items
            after = page.next
            if after is None:
                return

    def post(
        self, path: str, answer: type[_T], body: BaseModel | None = None, *, idempotency_key: str | None = None
    ) -> _T:
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
        return self._parse(self.send("POST", path, body=body, headers=headers), answer)

    def put(self, path: str, answer: type[_T], body: BaseModel) -> _T:
        return self._parse(self.send("PUT", path, body=body), answer)

    def patch(self, path: str, answer: type[_T], body: BaseModel) -> _T:
        return self._parse(self.send("PATCH", path, body=body), answer)

    def delete(self, path: str) -> None:
        self.send("DELETE", path)

    def send(
        self,
        method: str,
        path: str,
        *,
        body: BaseModel | None = None,
        params: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
    ) -> httpx.Response:
        content = body.model_dump_json(exclude_none=True).encode() if body is not None else None
        sent = dict(headers or {})
        if content is not None:
            sent["Content-Type"] = "application/json"
        try:
            response = self._http.request(method, API + path, content=content, params=params, headers=sent)
        except httpx.HTTPError as error:
            raise self.unreachable(error) from error
        raise_for_problem(response)
        return response

    @contextmanager
    def stream(self, path: str, *, headers: dict[str, str], read_s: float) -> Iterator[httpx.Response]:
        """A response whose body is read as it comes; `read_s`: the longest silence."""
        timeout = httpx.Timeout(ANSWER_S, connect=CONNECT_S, read=read_s)
        with self._http.stream("GET", API + path, headers=headers, timeout=timeout) as response:
            if response.is_error:
                response.read()
                raise_for_problem(response)
            yield response

    def unreachable(self, error: httpx.HTTPError) -> CliError:
        return CliError(
            f"the service at {self.url} does not answer: {one_line(str(error)) or type(error).__name__}",
            hint="start one with `kernelgate up`, or set KERNELGATE_URL to one that runs",
            code=Exit.NOT_MEASURED,
        )

    def _parse(self, response: httpx.Response, answer: type[_T]) -> _T:
        try:
            return TypeAdapter(answer).validate_json(response.content)
        except ValidationError as error:
            problem = error.errors()[0]
            where = ".".join(str(part) for part in problem["loc"])
            raise CliError(
                f"{response.request.url.path}: the answer is not understood ({where}: {problem['msg']})",
                hint="it may be of another version than this command, or KERNELGATE_URL is not where it begins",
                code=Exit.NOT_MEASURED,
            ) from error


def raise_for_problem(response: httpx.Response) -> None:
    """Raise ProblemError where `response` is an error, whether or not its body is a problem document."""
    if not response.is_error:
        return
    code = Exit.NOT_MEASURED if response.status_code >= 500 else Exit.USAGE
    try:
        data = json.loads(response.content)
        problem = Problem.model_validate({name: data[name] for name in Problem.model_fields if name in data})
    except (ValueError, TypeError, KeyError):
        where = f"{response.request.method} {response.request.url.path}"
        raise ProblemError(
            f"{where}: HTTP {response.status_code} {one_line(response.text)}",
            kind="",
            status=response.status_code,
            hint="is this a Kernelgate service?" if code is Exit.USAGE else "look at the service's log",
            code=code,
        ) from None
    kind = problem.type.rpartition(":")[2]
    message = clean(problem.detail or problem.title)
    if problem.field and problem.field not in message:
        message = f"{clean(problem.field)}: {message}"
    raise ProblemError(message, kind=kind, status=response.status_code, hint=_HINTS.get(kind), code=code)


def _given(query: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in query.items() if value is not None}
