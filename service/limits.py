"""A body that is too large is refused before it is read into memory."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.problems import ProblemError, respond


class _TooLargeError(Exception):
    pass


class BodyLimit:
    """ASGI middleware: 413 `request-too-large` past `limit` bytes, by Content-Length or by counting."""

    def __init__(self, app: ASGIApp, *, limit: int) -> None:
        self.app = app
        self.limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if declared.isdigit() and int(declared) > self.limit:
            await self._refuse(scope, receive, send)
            return
        received = 0
        started = False

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self.limit:
                raise _TooLargeError
            return message

        async def noted(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self.app(scope, counted, noted)
        except _TooLargeError:
            if started:
                raise
            await self._refuse(scope, receive, send)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        error = ProblemError(413, "request-too-large", f"a request's body may have {self.limit} bytes at most")
        await respond(error)(scope, receive, send)
