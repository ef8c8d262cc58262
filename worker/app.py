"""The Celery app and its one task. A message is only a wake-up; the database holds the truth, the lease redelivers.

    python -m worker

starts it, with everything from the settings. Nothing here or below imports torch, CuPy or Triton: children do.
"""

from __future__ import annotations

import ctypes
import signal
import sys
from typing import Any

from celery import Celery
from celery.signals import worker_process_init, worker_ready, worker_shutting_down
from kombu import Queue

from worker.agent import Agent
from worker.calibrating import Calibration
from worker.client import ServiceClient
from worker.nanny import PR_SET_PDEATHSIG
from worker.presence import Presence
from worker.settings import WorkerSettings


def make_app(settings: WorkerSettings) -> Celery:
    app = Celery("kernelgate", broker=settings.redis_url, set_as_current=False)
    app.conf.update(
        task_serializer="json",
        accept_content=["json"],
        task_ignore_result=True,
        task_store_errors_even_if_ignored=False,
        task_acks_late=False,  # a lease covers redelivery
        worker_pool="prefork",
        worker_concurrency=1,
        worker_prefetch_multiplier=1,
        worker_disable_prefetch=True,  # a message must not wait behind a long job while another node is idle
        worker_max_tasks_per_child=200,
        worker_send_task_events=False,
        worker_hijack_root_logger=False,
        worker_soft_shutdown_timeout=settings.soft_shutdown_s,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        task_soft_time_limit=settings.soft_limit_s,
        task_time_limit=settings.hard_limit_s,
        task_default_queue=settings.queues[-1],
        task_queues=[Queue(name) for name in settings.queues],
        task_create_missing_queues=True,
        task_publish_retry_policy={"max_retries": 3, "interval_start": 0.1, "interval_step": 0.2, "interval_max": 0.5},
        broker_connection_timeout=4,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,  # a broker that is away for an hour finds its workers again
        broker_transport_options={
            # Longer than any message stays unacknowledged; the shortest of all apps on a broker counts.
            "visibility_timeout": 2 * settings.hard_limit_s,
            "queue_order_strategy": "priority",  # in the order of task_queues: the gate's first
            "socket_timeout": 10.0,
            "socket_connect_timeout": 4.0,
            "socket_keepalive": True,
            "health_check_interval": 10,
            "retry_on_timeout": True,
        },
    )
    return app


app = make_app(WorkerSettings())


@app.task(name="kernelgate.evaluate", ignore_result=True)  # type: ignore[untyped-decorator]
def evaluate(evaluation_id: str) -> None:
    settings = WorkerSettings()
    with _client(settings) as client:
        Agent(settings, client).attempt(evaluation_id)


def _client(settings: WorkerSettings) -> ServiceClient:
    return ServiceClient(settings.service_url, settings.node_token.get_secret_value())


@worker_process_init.connect  # type: ignore[untyped-decorator]
def _die_with_the_worker(**_: Any) -> None:
    """A worker that is killed must not leave a process that goes on measuring beside its successor."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


@worker_ready.connect  # type: ignore[untyped-decorator]
def _tell_that_it_is_here(**_: Any) -> None:
    settings = WorkerSettings()
    client = _client(settings)
    calibration = Calibration(settings)
    presence = Presence(
        settings,
        client=client,
        about=lambda: Agent(settings, client).about(),
        learning=lambda: calibration.at_work,
    )
    worker_shutting_down.connect(lambda **_: presence.stop(), weak=False)
    presence.start()
    worker_shutting_down.connect(lambda **_: calibration.stop(), weak=False)
    calibration.start()


def command(*, log_level: str = "INFO") -> list[str]:
    """The command line that runs this node's worker; the environment carries the settings."""
    return [sys.executable, "-m", "worker", "--loglevel", log_level]
