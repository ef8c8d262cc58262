"""One attempt at one evaluation: claim, fetch, run the pipeline under heartbeats, report."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol

from celery.exceptions import SoftTimeLimitExceeded

from contract.bundle import BundleError, Files
from contract.job import PROTOCOL_VERSION, Job, NodeInfo, Progress
from contract.outcomes import Reason, Stage
from contract.report import MAX_MESSAGE, Failure, Report, StageTime
from worker import node, pipeline, turn
from worker.client import LeaseLost, Refused, ServiceClient, Unreachable
from worker.heartbeats import Heartbeats
from worker.sandbox import Sandbox, choose
from worker.settings import WorkerSettings

_log = logging.getLogger(__name__)


class Evaluate(Protocol):
    """`pipeline.evaluate`, or a test's."""

    def __call__(
        self,
        job: Job,
        bundles: dict[str, Files],
        *,
        settings: WorkerSettings,
        on_progress: Callable[[Progress], None],
        cancelled: Callable[[], bool],
        sandbox: Sandbox | None = None,
    ) -> Report: ...


class Agent:
    def __init__(
        self,
        settings: WorkerSettings,
        client: ServiceClient,
        *,
        evaluate: Evaluate = pipeline.evaluate,
        sandbox: Sandbox | None = None,
    ) -> None:
        self._settings = settings
        self._client = client
        self._evaluate = evaluate
        self._sandbox = sandbox or choose(settings)

    def about(self, *, idle: bool = False) -> NodeInfo:
        return node.describe(self._settings, sandbox=self._sandbox, idle=idle)

    def attempt(self, evaluation_id: str) -> None:
        """Whatever happens, the evaluation is reported, or left to its lease's end: never the kernel's fault."""
        with turn.taken(self._settings):
            about = self.about(idle=True)
            if not about.healthy:
                _log.error("%s takes nothing: %s", about.name, about.problem)
            try:
                job = self._client.claim(evaluation_id, about)
            except (Refused, Unreachable) as error:
                # The database still has it queued; the reconciler sends another message.
                _log.warning("claim of %s: %s", evaluation_id, error)
                return
            if job is not None:
                self._work(job, about)

    def _work(self, job: Job, about: NodeInfo) -> None:
        try:
            with Heartbeats(self._client, job, node=lambda: about) as heartbeats:
                report = self._report_of(job, heartbeats)
                if report is not None:
                    self._deliver(job, report)
                elif heartbeats.why:
                    _log.info("%s dropped: %s", job.evaluation_id, heartbeats.why)
        except LeaseLost as error:
            _log.warning("%s dropped: %s", job.evaluation_id, error)

    def _report_of(self, job: Job, heartbeats: Heartbeats) -> Report | None:
        """None where nobody waits for one."""
        began = datetime.now(UTC)
        try:
            heartbeats.tell(Progress(stage=Stage.FETCH, at=began))
            digests = {ref.digest for ref in (job.revision, job.base) if ref is not None}
            bundles = {digest: self._client.bundle(digest, job) for digest in digests}
            fetched = StageTime(stage=Stage.FETCH, started_at=began, ended_at=datetime.now(UTC))
            report = self._evaluate(
                job,
                bundles,
                settings=self._settings,
                on_progress=heartbeats.tell,
                cancelled=heartbeats.over,
                sandbox=self._sandbox,
            )
            now = datetime.now(UTC)
            sending = StageTime(stage=Stage.REPORT, started_at=now, ended_at=now)
            heartbeats.tell(Progress(stage=Stage.REPORT, at=now))
            return report.model_copy(update={"stages": (fetched, *report.stages, sending)})
        except (pipeline.Cancelled, LeaseLost):
            return None
        except SoftTimeLimitExceeded:
            return _failed(job, Reason.DEADLINE_PASSED, "the worker's time limit for one evaluation was reached")
        except (Refused, Unreachable, BundleError) as error:
            return _failed(job, Reason.INTERNAL_ERROR, f"the bundles could not be fetched: {error}")
        except Exception as error:  # noqa: BLE001 - logged, and told to the service
            _log.exception("%s failed in the worker", job.evaluation_id)
            return _failed(job, Reason.INTERNAL_ERROR, f"the worker failed: {type(error).__name__}: {error}")

    def _deliver(self, job: Job, report: Report) -> None:
        try:
            self._client.report(job, report, limit_s=self._settings.report_limit_s)
        except Refused as error:
            # What the service can't take must not leave the evaluation without an end.
            _log.error("report of %s refused: %s", job.evaluation_id, error)
            substitute = _failed(job, Reason.INTERNAL_ERROR, f"the service refused the report: {error}")
            with contextlib.suppress(Refused, Unreachable):
                self._client.report(job, substitute, limit_s=self._settings.report_limit_s)
        except Unreachable as error:
            _log.error("report of %s not delivered: %s", job.evaluation_id, error)


def _failed(job: Job, reason: Reason, message: str) -> Report:
    return Report(
        protocol_version=PROTOCOL_VERSION,
        device_class=job.device_class,
        failure=Failure(reason=reason, stage=Stage.REPORT, message=message[:MAX_MESSAGE]),
    )
