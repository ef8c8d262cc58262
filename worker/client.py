"""The worker's one way to the service: HTTP, with a node token, and a lease token once a claim has won."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

import httpx

from contract.api import Problem
from contract.bundle import Files, digest, unpack
from contract.job import Claim, Heartbeat, HeartbeatReply, Job, NodeInfo
from contract.report import Report

LEASE_HEADER = "X-Kernelgate-Lease"
_LEASE_LOST = "urn:kernelgate:problem:lease-lost"
# The service or what stands before it is away for the moment; anything else is an answer.
_TRANSIENT = {408, 425, 429, 500, 502, 503, 504}
_ANSWER_LIMIT_S = 30.0
_FIRST_PAUSE_S = 0.2
_LONGEST_PAUSE_S = 15.0


class LeaseLost(Exception):  # noqa: N818
    """The evaluation isn't this node's any more: finished, cancelled, or given to another."""


class Refused(Exception):  # noqa: N818
    """The service's answer is no, and asking again won't change it."""


class Unreachable(Exception):  # noqa: N818
    """No answer within the time given."""


class ServiceClient:
    """`sleep` and `transport` are for tests."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._http = httpx.Client(
            base_url=f"{url.rstrip('/')}/api/v1",
            headers={"Authorization": f"Bearer {token}"},
            transport=transport,
        )
        self._sleep = sleep

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def claim(self, evaluation_id: str, node: NodeInfo, *, limit_s: float = 60.0) -> Job | None:
        """The job, or None where somebody else has it, it is over, or it is of another class."""
        body = Claim(node=node).model_dump_json()
        try:
            answer = self._send("POST", f"/evaluations/{evaluation_id}/claim", body=body, limit_s=limit_s)
        except Refused as refused:
            if isinstance(refused.__cause__, httpx.HTTPStatusError):
                status = refused.__cause__.response.status_code
                if status in (404, 409):
                    return None
            raise
        return Job.model_validate_json(answer.content)

    def present(self, node: NodeInfo, *, limit_s: float) -> None:
        """Raises Refused, Unreachable."""
        self._send("PUT", f"/nodes/{node.name}", body=node.model_dump_json(), limit_s=limit_s)

    def heartbeat(self, job: Job, beat: Heartbeat, *, limit_s: float = 10.0) -> HeartbeatReply:
        """Raises LeaseLost, Refused, Unreachable."""
        path = f"/evaluations/{job.evaluation_id}/heartbeat"
        answer = self._send("POST", path, body=beat.model_dump_json(), lease=job.lease_token, limit_s=limit_s)
        return HeartbeatReply.model_validate_json(answer.content)

    def bundle(self, wanted: str, job: Job, *, limit_s: float = 120.0) -> Files:
        """The files of a bundle, which are what its digest says."""
        answer = self._send("GET", f"/bundles/{wanted}", lease=job.lease_token, limit_s=limit_s)
        files = unpack(answer.content)
        if digest(files) != wanted:
            raise Refused(f"the service sent other files than those of bundle {wanted}")
        return files

    def report(self, job: Job, report: Report, *, limit_s: float) -> None:
        """Raises LeaseLost, Refused, Unreachable. Offered again and again for `limit_s`: it took a card's time."""
        path = f"/evaluations/{job.evaluation_id}/report"
        self._send("POST", path, body=report.model_dump_json(), lease=job.lease_token, limit_s=limit_s)

    def _send(
        self, method: str, path: str, *, body: str | None = None, lease: str | None = None, limit_s: float
    ) -> httpx.Response:
        headers = {} if body is None else {"Content-Type": "application/json"}
        if lease is not None:
            headers[LEASE_HEADER] = lease
        timeout = httpx.Timeout(min(_ANSWER_LIMIT_S, limit_s), connect=5.0)
        ends_at = time.monotonic() + limit_s
        pause = _FIRST_PAUSE_S
        while True:
            asked = ""
            try:
                answer = self._http.request(method, path, content=body, headers=headers, timeout=timeout)
                if answer.status_code not in _TRANSIENT:
                    return _accepted(answer)
                problem, asked = f"status {answer.status_code}", answer.headers.get("Retry-After", "")
            except httpx.TransportError as error:
                problem = f"{type(error).__name__}: {error}"
            # Full jitter, so that all nodes don't come back at once.
            wait = min(float(asked), _LONGEST_PAUSE_S) if asked.isdigit() else random.uniform(pause / 2, pause)  # noqa: S311
            if time.monotonic() + wait > ends_at:
                raise Unreachable(f"{method} {path}: {problem}")
            self._sleep(wait)
            pause = min(pause * 2, _LONGEST_PAUSE_S)


def _accepted(answer: httpx.Response) -> httpx.Response:
    if answer.is_success:
        return answer
    try:
        problem = Problem.model_validate_json(answer.content)
    except ValueError:
        problem = Problem(type="about:blank", title=answer.reason_phrase, status=answer.status_code, detail="")
    message = (
        f"{answer.request.method} {answer.request.url.path}: {answer.status_code} {problem.title} {problem.detail}"
    )
    if problem.type == _LEASE_LOST:
        raise LeaseLost(message)
    raise Refused(message) from httpx.HTTPStatusError(message, request=answer.request, response=answer)
