"""Tells the service every half minute that an idle node is there; one at work says so with its heartbeats."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from contract.job import NodeInfo
from worker.client import Refused, ServiceClient, Unreachable
from worker.settings import WorkerSettings
from worker.turn import busy

EVERY_S = 30.0
_ANSWER_LIMIT_S = 10.0
_log = logging.getLogger(__name__)


class Presence:
    """A thread of Celery's parent process: the pool's processes come and go, and are busy when they are there."""

    def __init__(
        self,
        settings: WorkerSettings,
        *,
        client: ServiceClient,
        about: Callable[[], NodeInfo],
        learning: Callable[[], bool] = lambda: False,
        every_s: float = EVERY_S,
    ) -> None:
        """`learning`: whether the node is busy for itself alone; then what it last said of itself is said again."""
        self._settings = settings
        self._client = client
        self._about = about
        self._learning = learning
        self._last: NodeInfo | None = None
        self._every_s = every_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="presence", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """At once, unless it is just speaking: the process may end with that."""
        self._over.set()

    def _run(self) -> None:
        while not self._over.is_set():
            # Asking a card how it is, or a core for an answer, must not disturb what is measured on it.
            if not busy(self._settings):
                self._tell(anew=True)
            elif self._learning():
                self._tell(anew=False)
            self._over.wait(self._every_s)

    def _tell(self, *, anew: bool) -> None:
        try:
            if anew or self._last is None:
                self._last = self._about()
            self._client.present(self._last, limit_s=_ANSWER_LIMIT_S)
        except (Refused, Unreachable) as error:
            _log.warning("the service was not told that this node is here: %s", error)
        except Exception:  # noqa: BLE001 - a thread that ended would leave an idle node looking lost
            _log.exception("the service was not told that this node is here")
