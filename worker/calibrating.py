"""An idle node learns its spreads: it measures kernels that ship against themselves, through the same launchers.

One case at a time, within a budget of seconds a day, and given up at once when an evaluation wants the node.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from contract.bundle import MANIFEST, Files, digest
from contract.devices import DeviceClass
from contract.job import PROTOCOL_VERSION, Job, RevisionRef
from contract.manifest import parse_manifest, parse_suite
from contract.own_operator import FILE as OWN_OPERATOR
from contract.report import CaseResult
from contract.samples import Comparison
from contract.spreads import Spread
from contract.suite import Case, Policy, Suite
from verdict.evidence import gather
from worker import pipeline, spreads, turn
from worker.operators import operator_of_suite
from worker.process import Cancelled
from worker.settings import WorkerSettings

PROCESSES = 8
# So small that no look decides: every case has all its processes.
_UNDECIDABLE = 1e-9
_IDLE_S = 60.0
_EVERY_S = 30.0
_LIMIT_S = 300.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Subject:
    """The last revision of a shipped kernel, and one of its cases."""

    suite: Suite
    case: Case
    folder: Path


class Calibration:
    """A thread of the worker's parent process, beside Presence."""

    def __init__(self, settings: WorkerSettings, *, idle_s: float = _IDLE_S, every_s: float = _EVERY_S) -> None:
        self._settings, self._idle_s, self._every_s = settings, idle_s, every_s
        self._over = threading.Event()
        self.at_work = False
        self._thread = threading.Thread(target=self._run, name="calibration", daemon=True)

    def start(self) -> None:
        if self._settings.calibration_s_a_day > 0:
            self._thread.start()

    def stop(self) -> None:
        self._over.set()

    def _run(self) -> None:
        while not self._over.wait(self._every_s):
            try:
                with turn.taken_if_idle(self._settings, since_s=self._idle_s) as idle:
                    self.at_work = idle
                    if idle:
                        learn(self._settings, over=self._over)
            except Exception:  # noqa: BLE001 - the node serves all the same
                _log.exception("this node could not learn its spreads")
            finally:
                self.at_work = False


def learn(settings: WorkerSettings, *, over: threading.Event) -> Spread | None:
    """Measure the case that is due, if the day's budget has anything left. The caller has the node."""
    known, day = spreads.stored(settings), datetime.now(UTC).date()
    subject = _due(settings, known)
    if subject is None or known.spent_on(day) >= settings.calibration_s_a_day:
        return None
    began, found = time.monotonic(), None
    name = spreads.key(subject.suite.kernel, subject.case.id)
    in_vain = [name]  # what can't be measured here must not keep the others from their turn
    try:
        found = measure(subject, settings=settings, over=over)
        in_vain = [] if found else [name]
    except Cancelled:
        in_vain = []
        _log.info("learning gave way to an evaluation")
    finally:
        spent_s = time.monotonic() - began
        after = known.after(day=day, spent_s=spent_s, found=[found] if found else [], in_vain=in_vain)
        spreads.store(settings, after)
    return found


def measure(subject: Subject, *, settings: WorkerSettings, over: threading.Event) -> Spread | None:
    """Raises Cancelled where the node is wanted for something else."""
    files = _files(subject.folder)
    itself = RevisionRef(id="itself", label=subject.folder.name.partition("_")[0], digest=digest(files))
    job = Job(
        evaluation_id=f"calibration-{subject.suite.kernel}",
        lease_token="",
        deadline=datetime.now(UTC) + timedelta(seconds=_LIMIT_S),
        heartbeat_s=_EVERY_S,
        project="local",
        kernel=subject.suite.kernel,
        device_class=settings.device_class,
        revision=itself,
        base=itself,
        suite=subject.suite.model_copy(
            update={
                "cases": (subject.case.model_copy(update={"allowed_slowdown": None, "allowed_slowdown_on": {}}),),
                "verify_cases": (),
                "policy": Policy(allowed_slowdown=_UNDECIDABLE),
                "allowances": (),
                "predictions": (),
                "sanitize": (),
            }
        ),
        protocol_version=PROTOCOL_VERSION,
        repeat=1,
    )
    report = pipeline.evaluate(
        job,
        {itself.digest: files},
        settings=settings.model_copy(
            update={"judge": (*settings.judge, "--against-itself"), "max_processes": PROCESSES}
        ),
        on_progress=lambda _: None,
        cancelled=lambda: over.is_set() or turn.wanted(settings),
    )
    if report.failure is not None:
        _log.warning("%s against itself: %s", subject.suite.kernel, report.failure.message)
        return None
    return next((_spread(subject, case) for case in report.cases if len(case.pairs) > 1), None)


def _spread(subject: Subject, case: CaseResult) -> Spread:
    evidence = gather(Comparison(unit="us", allowed_slowdown=_UNDECIDABLE, pairs=case.pairs))
    suite = subject.suite
    return Spread(
        kernel=suite.kernel,
        case=case.case,
        time_us=next(metric.value for metric in case.metrics if metric.name == "time"),
        bytes_a_call=operator_of_suite(suite).bytes_moved(
            subject.case.dims, "fp16" if suite.dtype == "fp16" else "fp32"
        ),
        capped=case.power_capped,
        sd=evidence.sd or 0.0,
        pairs=len(case.pairs),
        measured_at=datetime.now(UTC),
    )


def _due(settings: WorkerSettings, known: spreads.Learnt) -> Subject | None:
    """The case that was measured longest ago, or never."""
    newest = known.newest()
    never = datetime.min.replace(tzinfo=UTC)
    return min(
        subjects(settings.shipped_kernels, settings.device_class),
        key=lambda subject: newest.get(spreads.key(subject.suite.kernel, subject.case.id), never),
        default=None,
    )


def subjects(folder: Path | None, device_class: DeviceClass) -> Iterator[Subject]:
    if folder is None:
        return
    for file in sorted(folder.glob("*/suite.toml")):
        if (file.parent / OWN_OPERATOR).exists():
            continue
        suite = parse_suite(file.read_text(encoding="utf-8"))
        listed = [file.parent / name for name in suite.revisions]
        if device_class in suite.device_classes and listed and listed[-1].is_dir():
            yield from (Subject(suite, case, listed[-1]) for case in suite.cases)


def _files(folder: Path) -> Files:
    files = {file.name: file.read_bytes() for file in sorted(folder.iterdir()) if file.is_file()}
    shared = parse_manifest(files[MANIFEST].decode()).shared
    return files | {name: (folder.parent / name).read_bytes() for name in shared}
