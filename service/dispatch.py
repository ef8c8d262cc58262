"""Queued rows -> Celery. The service is a producer only: the message is a wake-up, the database is the truth."""

import logging
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

from celery import Celery
from sqlalchemy import update
from sqlmodel import col

from contract.outcomes import State
from service.columns import now
from service.database import Database
from service.models import Evaluation
from service.settings import Settings

log = logging.getLogger(__name__)

TASK = "kernelgate.evaluate"


@dataclass(frozen=True, kw_only=True)
class Wake:
    """A message to be: which evaluation, on which queue."""

    evaluation_id: str
    queue: str


def wake_of(evaluation: Evaluation) -> Wake:
    queue = "build.normal" if evaluation.build_only else f"{evaluation.device_class}.{evaluation.priority}"
    return Wake(evaluation_id=evaluation.id, queue=queue)


class Publisher(Protocol):
    def publish(self, wake: Wake) -> None:
        """Raises an exception where the broker didn't take it, within a bounded time."""

    def reachable(self) -> bool: ...

    def close(self) -> None: ...


def celery_app(settings: Settings) -> Celery:
    app = Celery("kernelgate", broker=settings.redis_url, set_as_current=False)
    retries = settings.publish_retries
    app.conf.update(
        task_serializer="json",
        accept_content=["json"],
        task_ignore_result=True,
        task_publish_retry=retries > 0,
        # Finite: a publish while the broker is down must fail soon; the reconciler makes up for it.
        task_publish_retry_policy={
            "max_retries": retries,
            "interval_start": 0.0,
            "interval_step": 0.1,
            "interval_max": 0.2,
        },
        broker_connection_timeout=settings.publish_timeout_s,
        broker_connection_max_retries=retries,
        broker_transport_options={
            "socket_timeout": settings.publish_timeout_s,
            "socket_connect_timeout": settings.publish_timeout_s,
            "socket_keepalive": True,
            "health_check_interval": 25,
            "max_retries": retries,
            "interval_start": 0.0,
            "interval_step": 0.1,
            "interval_max": 0.2,
        },
    )
    return app


class CeleryPublisher:
    def __init__(self, settings: Settings) -> None:
        self._app = celery_app(settings)
        self._timeout_s = settings.publish_timeout_s

    def publish(self, wake: Wake) -> None:
        self._app.send_task(TASK, kwargs={"evaluation_id": wake.evaluation_id}, queue=wake.queue, ignore_result=True)

    def reachable(self) -> bool:
        try:
            with self._app.connection_for_write(connect_timeout=self._timeout_s) as connection:
                connection.ensure_connection(max_retries=1, interval_start=0, interval_step=0, timeout=self._timeout_s)
        except Exception:  # noqa: BLE001 - whatever kombu, redis or the socket raise: it isn't reachable
            return False
        return True

    def close(self) -> None:
        self._app.close()


class Dispatcher:
    """Publishes after the commit, on a thread of its own: no request waits for the broker, and none fails with it."""

    def __init__(self, *, database: Database, publisher: Publisher) -> None:
        self._database = database
        self._publisher = publisher
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="dispatch")

    def publish_soon(self, wakes: Sequence[Wake]) -> None:
        if wakes:
            self._thread.submit(self.publish, wakes)

    def publish(self, wakes: Sequence[Wake]) -> bool:
        """False where the broker didn't take all of them; the rest is left to the reconciler, at once."""
        for place, wake in enumerate(wakes):
            try:
                self._publisher.publish(wake)
            except Exception as error:  # noqa: BLE001 - kombu, redis and sockets have no common one
                log.warning("evaluation %s: not published (%s); the reconciler will", wake.evaluation_id, error)
                self._due_now(rest.evaluation_id for rest in wakes[place:])
                return False
        return True

    def reachable(self) -> bool:
        return self._publisher.reachable()

    def close(self) -> None:
        self._thread.shutdown(wait=True, cancel_futures=True)
        self._publisher.close()

    def _due_now(self, evaluation_ids: Iterable[str]) -> None:
        due: Any = update(Evaluation).where(
            col(Evaluation.id).in_(list(evaluation_ids)), col(Evaluation.state) == State.QUEUED
        )
        try:
            with self._database.write() as session:
                session.exec(due.values(publish_due_at=now()))
        except Exception:
            log.exception("unpublished evaluations stay due at their time")
