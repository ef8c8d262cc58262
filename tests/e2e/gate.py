"""A proxy between workers and the service: it notes what goes through, and holds a request or its answer at will."""

from __future__ import annotations

import contextlib
import http.client
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal

LIMIT_S = 120.0


@dataclass(frozen=True)
class Passed:
    method: str
    path: str
    status: int


@dataclass
class Hold:
    """Stops every request whose path holds `part`: before the service sees it, or after, with its answer kept back."""

    part: str
    where: Literal["before", "after"]
    arrived: list[str] = field(default_factory=list)
    free: threading.Event = field(default_factory=threading.Event)


class Gate:
    """`passed`: what the service answered, oldest first. Where it gives no answer, the worker gets a 502."""

    def __init__(self, port: int) -> None:
        self._service = port
        self.passed: list[Passed] = []
        self._holds: list[Hold] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @contextlib.contextmanager
    def held(self, part: str, where: Literal["before", "after"] = "before") -> Iterator[Hold]:
        hold = Hold(part, where)
        self._holds.append(hold)
        try:
            yield hold
        finally:
            self._holds.remove(hold)
            hold.free.set()

    def statuses(self, part: str) -> list[int]:
        return [each.status for each in list(self.passed) if part in each.path]

    def _wait(self, path: str, where: Literal["before", "after"]) -> None:
        for hold in list(self._holds):
            if hold.part in path and hold.where == where:
                hold.arrived.append(path)
                hold.free.wait(LIMIT_S)

    def _forward(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self._service, timeout=LIMIT_S)
        try:
            connection.request(method, path, body=body, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read(), answer.headers.get("Content-Type", "application/octet-stream")
        except (OSError, http.client.HTTPException):
            return 502, b"", "text/plain"
        finally:
            connection.close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        gate = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _pass(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                names = ("Authorization", "Content-Type", "X-Kernelgate-Lease")
                headers = {name: self.headers[name] for name in names if name in self.headers}
                gate._wait(self.path, "before")
                status, content, kind = gate._forward(self.command, self.path, body, headers)
                gate.passed.append(Passed(self.command, self.path, status))
                gate._wait(self.path, "after")
                with contextlib.suppress(OSError):  # the worker was killed meanwhile
                    self.send_response(status)
                    self.send_header("Content-Type", kind)
                    if status != 204:
                        self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)

            def handle(self) -> None:
                with contextlib.suppress(OSError):
                    super().handle()

            do_GET = do_POST = _pass  # noqa: N815 - http.server's names

            def log_message(self, *_: object) -> None: ...

        return Handler
