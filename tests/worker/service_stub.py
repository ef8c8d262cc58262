"""A small HTTP service that speaks the worker's part of the API, on a port of its own."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from contract.bundle import Files, digest, pack
from contract.job import Heartbeat, HeartbeatReply, Job, NodeInfo
from contract.outcomes import Stage
from contract.report import Report


class Stub:
    """`jobs` by evaluation id may be claimed once each. What came in is kept in `claims`, `beats`,
    `reports` and `present` (nodes)."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self.bundles: dict[str, bytes] = {}
        self.claims: list[dict[str, Any]] = []
        self.beats: list[Heartbeat] = []
        self.reports: list[tuple[str, Report]] = []
        self.reached: set[tuple[str, Stage]] = set()
        self.present: list[NodeInfo] = []
        self.cancel = False
        self.lost = False
        self.refuse_reports = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def offer(self, job: Job, *sides: Files) -> None:
        self.jobs[job.evaluation_id] = job
        self.bundles |= {digest(files): pack(files) for files in sides}

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        *_, noun, name, verb = ["", *path.split("/")] if method == "POST" else ["", *path.split("/"), ""]
        if noun == "nodes":
            self.present.append(NodeInfo.model_validate_json(body))
            return 204, b""
        if noun == "bundles":
            return (200, self.bundles[name]) if name in self.bundles else (404, _problem(404, "unknown"))
        if verb == "claim":
            self.claims.append(json.loads(body))
            job = self.jobs.pop(name, None)
            return (200, job.model_dump_json().encode()) if job else (409, _problem(409, "not-claimable"))
        if self.lost:
            return 409, _problem(409, "lease-lost")
        if verb == "heartbeat":
            self.beats.append(Heartbeat.model_validate_json(body))
            self.reached |= {(name, progress.stage) for progress in self.beats[-1].progress}
            reply = HeartbeatReply(cancel=self.cancel, deadline=datetime.now(UTC) + timedelta(hours=1))
            return 200, reply.model_dump_json().encode()
        if self.refuse_reports:
            self.refuse_reports -= 1
            return 422, _problem(422, "invalid-report")
        self.reports.append((name, Report.model_validate_json(body)))
        return 204, b""

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def _do(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                status, content = stub.answer(self.command, self.path, body)
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PUT = _do  # noqa: N815 - the base class's names

            def log_message(self, *_: object) -> None: ...

        return Handler


def _problem(status: int, name: str) -> bytes:
    body = {"type": f"urn:kernelgate:problem:{name}", "title": name, "status": status, "detail": "why"}
    return json.dumps(body).encode()
