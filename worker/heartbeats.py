"""The thread that keeps a lease alive, carries progress out, and brings cancellation back."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from contract.job import Heartbeat, Job, NodeInfo, Progress
from worker.client import LeaseLost, Refused, ServiceClient, Unreachable

_log = logging.getLogger(__name__)
_BATCH = 64
_LEAST_PAUSE_S = 0.5


class Heartbeats:
    """Beats every `job.heartbeat_s`, and sooner when there is progress to tell."""

    def __init__(self, client: ServiceClient, job: Job, *, node: Callable[[], NodeInfo]) -> None:
        self._client = client
        self._job = job
        self._node = node
        self._news: list[Progress] = []
        self._changed = threading.Condition()
        self._ended = False
        self._over = threading.Event()
        self.why = ""
        self._thread = threading.Thread(target=self._beat, name="heartbeats", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify()
        self._thread.join()

    def over(self) -> bool:
        """Whether the evaluation is to stop: cancelled, or the lease is lost. `why` says which."""
        return self._over.is_set()

    def tell(self, progress: Progress) -> None:
        with self._changed:
            self._news = [*self._news, progress][-_BATCH:]
            self._changed.notify()

    def _beat(self) -> None:
        last = 0.0
        while not self.over():
            with self._changed:
                self._changed.wait_for(lambda: self._ended or bool(self._news), timeout=self._job.heartbeat_s)
                pause = max(0.0, last + _LEAST_PAUSE_S - time.monotonic())
                self._changed.wait_for(lambda: self._ended, timeout=pause)
                if self._ended:
                    return
                news, self._news = tuple(self._news), []
            last = time.monotonic()
            self._send(news)

    def _send(self, news: tuple[Progress, ...]) -> None:
        try:
            beat = Heartbeat(node=self._node(), progress=news)
            reply = self._client.heartbeat(self._job, beat, limit_s=self._job.heartbeat_s)
            if reply.cancel:
                self._stop("cancelled")
        except (LeaseLost, Refused) as error:
            self._stop(str(error))
        except Unreachable as error:
            # The lease may outlive the service's absence: the report's fate decides.
            _log.warning("heartbeat of %s: %s", self._job.evaluation_id, error)

    def _stop(self, why: str) -> None:
        self.why = why
        self._over.set()
