"""A body that is too large is refused before it is read into memory."""

from collections.abc import Mapping

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.problems import respond, too_large


class BodyLimit:
    """ASGI middleware: 413 `request-too-large` past `limit` bytes, by Content-Length or, without one, by counting.
    `at`: paths that take another amount."""

    def __init__(self, app: ASGIApp, *, limit: int, at: Mapping[str, int]) -> None:
        self.app = app
        self.limit = limit
        self.at = at

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        limit = self.at.get(scope.get("path", ""), self.limit)
        declared = dict(scope.get("headers", ())).get(b"content-length", b"0")
        if declared.isdigit() and int(declared) > limit:
            await respond(too_large(f"a request's body may have {limit} bytes at most"))(scope, receive, send)
            return
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > limit:
                # Of this class, as FastAPI takes any other for a body that can't be parsed.
                raise HTTPException(413, f"a request's body may have {limit} bytes at most")
            return message

        await self.app(scope, counted, send)
