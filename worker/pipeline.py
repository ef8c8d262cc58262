"""One evaluation from bundles to report, without the network: each stage but fetch and report.

`kernelgate run` and the agent both call `evaluate`. What a side does wrong comes back as the report's failure; the
base's is never the head's fault.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from contract.bundle import Files
from contract.devices import DeviceClass
from contract.job import PROTOCOL_VERSION, Job, Progress
from contract.outcomes import Reason, Stage
from contract.report import (
    MAX_LOG_BYTES,
    MAX_MESSAGE,
    CaseResult,
    Check,
    Environment,
    Failure,
    LeftOut,
    Metric,
    Report,
    StageTime,
)
from contract.statics import FunctionStatics
from worker import node
from worker.building import BuiltSide, digest_of
from worker.builds import Builds
from worker.cache import Cache
from worker.examining import Examiner, NotExaminedError
from worker.failure import Failed
from worker.interpreting import interpret
from worker.judging import Judged, judge
from worker.process import Cancelled, DiskFull
from worker.protocol import CpuArtifact, Side
from worker.recording import RecordedSide, record_side
from worker.room import Room, open_room
from worker.sandbox import Sandbox, choose
from worker.settings import WorkerSettings
from worker.statics import statics_of
from worker.targets import Target, left_out

__all__ = ["Cancelled", "evaluate"]

# The report must be on its way before the lease ends.
_REPORT_MARGIN_S = 30.0
# What looks at the calls afterwards must not take the evaluation beyond its limit.
_EXAMINE_MARGIN_S = 5.0


def evaluate(
    job: Job,
    bundles: dict[str, Files],
    *,
    settings: WorkerSettings,
    on_progress: Callable[[Progress], None],
    cancelled: Callable[[], bool],
    sandbox: Sandbox | None = None,
) -> Report:
    """`bundles` by digest: the head's, and the base's where there is one. Raises Cancelled, with every child killed."""
    run = _Run(job, settings=settings, on_progress=on_progress, cancelled=cancelled)
    chosen = sandbox or choose(settings)
    try:
        _check_trust(job, bundles, chosen, settings)
        with open_room(
            settings.work_dir, sandbox=chosen, check=run.check, disk_bytes=settings.sandbox_disk_bytes
        ) as room:
            run.whole(bundles, room)
    except Failed as error:
        run.failure = error.failure
    except DiskFull as error:
        run.failure = Failure(reason=Reason.INTERNAL_ERROR, stage=Stage.FETCH, message=str(error))
    finally:
        run.reached = chosen.close()
    return run.report(sandbox=chosen)


def _check_trust(job: Job, bundles: dict[str, Files], sandbox: Sandbox, settings: WorkerSettings) -> None:
    # To compile for a card that isn't here nothing of an operator is run.
    own = job.suite.operator_source is not None and not job.build_only
    if own and not settings.runs_operators_of(job.project):
        raise Failed(
            Reason.OPERATOR_REFUSED,
            Stage.FETCH,
            f"the suite brings its own operator, {job.suite.operator}, which runs in the judge with this node's rights:"
            f" KERNELGATE_OWN_OPERATORS of {settings.node_name} does not name the project {job.project}",
        )
    if (refusal := sandbox.refuses(bundles)) is not None:
        raise Failed(Reason.SANDBOX_MISSING, Stage.FETCH, refusal)


@dataclass
class _Run:
    """What has come of an evaluation so far."""

    job: Job
    settings: WorkerSettings
    on_progress: Callable[[Progress], None]
    cancelled: Callable[[], bool]
    stages: list[StageTime] = field(default_factory=list)
    statics: tuple[FunctionStatics, ...] = ()
    base_statics: tuple[FunctionStatics, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    built_only: bool = False
    judged: Judged = field(default_factory=Judged)
    failure: Failure | None = None
    artifact_digest: str | None = None
    toolchain: dict[str, str] = field(default_factory=dict)
    log: str = ""
    reached: str = ""
    _stop: threading.Event = field(default_factory=threading.Event)
    _stage: Stage = Stage.FETCH

    def __post_init__(self) -> None:
        left = (self.job.deadline - datetime.now(UTC)).total_seconds() - _REPORT_MARGIN_S
        self._ends_at = time.monotonic() + min(left, self.settings.evaluation_limit_s)

    def check(self) -> None:
        """Called while a child runs: raising ends it."""
        if self._stop.is_set() or self.cancelled():
            raise Cancelled
        if time.monotonic() > self._ends_at:
            raise Failed(Reason.DEADLINE_PASSED, self._stage, "the evaluation reached its time limit and was ended")

    def whole(self, bundles: dict[str, Files], room: Room) -> None:
        job, settings = self.job, self.settings
        cache = Cache(settings.cache_dir, max_bytes=settings.cache_bytes)
        builds = Builds(job=job, bundles=bundles, room=room, cache=cache, settings=settings, stopping=self._stopping)
        targets = builds.targets()
        if job.build_only or not targets[0].at_hand:
            self._only_build(targets, builds, room)
            return
        with self._timed(Stage.BUILD) as stage:
            head, base = builds.both()
            stage.cached = head.cached and (base is None or base.cached)
        self.toolchain, self.log = head.built.toolchain, head.built.log
        self._check_refusals(head, base)
        recorded = self._record(head, base, room, cache) if job.device_class != DeviceClass.CPU else {}
        with self._timed(Stage.INSPECT):
            self.statics = statics_of(head, recorded.get("head"))
            self.base_statics = statics_of(base, recorded.get("base")) if base else ()
            sides = {role: _side(side, recorded.get(role)) for role, side in (("head", head), ("base", base)) if side}
        self.artifact_digest = sides["head"].artifact_digest
        judge(
            sides["head"],
            sides.get("base"),
            suite=job.suite,
            device_class=job.device_class,
            room=room,
            settings=settings,
            into=self.judged,
            on_progress=self._progress,
        )
        self.failure = self.judged.failure
        if self.failure is None:
            self._examine(sides["head"], room)

    def _examine(self, head: Side, room: Room) -> None:
        """After all that is judged. What can't be looked at here changes nothing; a finding of the sanitizer does."""
        job = self.job
        examiner = Examiner(
            side=head,
            suite=job.suite,
            device_class=job.device_class,
            room=room,
            settings=self.settings,
            on_progress=self._progress,
            left_s=lambda: self._ends_at - _EXAMINE_MARGIN_S - time.monotonic(),
        )
        metrics: dict[str, tuple[Metric, ...]] = {}

        def profile() -> str:
            examiner.profile(metrics)
            return f"counters of {len(metrics)} cases"

        # Host code that is its own kernel is no matter for either.
        if job.suite.sanitize and job.device_class != DeviceClass.CPU:
            self._optional(Stage.SANITIZE, examiner.sanitize)
        if job.profile and self.failure is None:
            self._optional(Stage.PROFILE, profile)
        self.judged.cases = [
            case.model_copy(update={"metrics": (*case.metrics, *metrics.get(case.case, ()))})
            for case in self.judged.cases
        ]

    def _optional(self, stage: Stage, act: Callable[[], str]) -> None:
        self._progress(stage, 0, 0, "")
        began, detail = datetime.now(UTC), ""
        try:
            detail = act()
        except NotExaminedError as error:
            self.left_out += (LeftOut(stage=stage, why=str(error)[:1000]),)
            return
        except Failed as error:
            if error.failure.reason != Reason.SANITIZER_FINDING:
                self.left_out += (LeftOut(stage=stage, why=error.failure.message[:1000]),)
                return
            self.failure = error.failure
        self.judged.stages.append(
            StageTime(stage=stage, started_at=began, ended_at=datetime.now(UTC), detail=detail[:300])
        )

    def report(self, *, sandbox: Sandbox) -> Report:
        job, failure = self.job, self.failure
        if failure is not None and self.reached:
            failure = failure.model_copy(update={"message": f"{failure.message}\n{self.reached}"[-MAX_MESSAGE:]})
        environment = self.judged.environment or Environment(device=self._device())
        logs = (f"sandbox: {sandbox.caps}", self.reached, self.log, self.judged.log)
        return Report(
            protocol_version=PROTOCOL_VERSION,
            device_class=job.device_class,
            artifact_digest=self.artifact_digest,
            failure=failure,
            built_only=self.built_only and self.failure is None,
            stages=(*self.stages, *self.judged.stages),
            left_out=self.left_out,
            statics=self.statics,
            base_statics=self.base_statics,
            checks=tuple(self.judged.checks),
            cases=tuple(self.judged.cases),
            environment=environment.model_copy(
                update={"toolchain": {**environment.toolchain, **self.toolchain}, "sandbox": sandbox.isolates}
            ),
            log="\n".join(filter(None, logs)).strip()[: MAX_LOG_BYTES // 4],
        )

    def _device(self) -> str:
        """For a report that no judge has had a part in."""
        on_cpu = self.job.build_only or self.job.device_class == DeviceClass.CPU
        return node.cpu_model() if on_cpu else str(self.job.device_class)

    def _only_build(self, targets: tuple[Target, ...], builds: Builds, room: Room) -> None:
        """For devices that are not here; Triton is verified all the same, by its interpreter."""
        job = self.job
        self.built_only = True
        with self._timed(Stage.BUILD) as stage:
            sides = builds.each(targets)
            bases, apart = _bases(builds, sides)
            stage.cached = all(side.cached for side in (*sides, *bases))
        head = sides[0]
        self.toolchain = head.built.toolchain
        self.log = "\n".join(side.built.log for side in sides)
        with self._timed(Stage.INSPECT):
            self.statics, self.base_statics = (
                tuple(function for side in built for function in statics_of(side, None)) for built in (sides, bases)
            )
        self._check_refusals(head, None)
        unverified: str | None = f"{head.manifest.language} code runs on a card alone"
        if head.manifest.language == "triton" and not job.build_only:
            unverified = interpret(
                head,
                suite=job.suite,
                room=room,
                settings=self.settings,
                into=self.judged,
                on_progress=self._progress,
            )
            self.failure = self.judged.failure
        self.left_out = (*apart, *left_out(head.manifest, job, unverified=unverified))

    def _record(self, head: BuiltSide, base: BuiltSide | None, room: Room, cache: Cache) -> dict[str, RecordedSide]:
        """One after the other: they share the card."""
        recorded: dict[str, RecordedSide] = {}
        with self._timed(Stage.RECORD) as stage:
            driver = _driver()
            for role, side in (("head", head), ("base", base)):
                if side is None:
                    continue
                if role == "base" and side.key == head.key and side.refused == head.refused:
                    recorded[role] = recorded["head"]
                    continue

                def on_case(done: int, total: int, case: str, role: str = role) -> None:
                    self._progress(Stage.RECORD, done, total, f"{role} {case}")

                try:
                    recorded[role] = record_side(
                        side,
                        suite=self.job.suite,
                        device_class=self.job.device_class,
                        driver=driver,
                        room=room,
                        cache=cache,
                        settings=self.settings,
                        on_case=on_case,
                    )
                except Failed as error:
                    raise (error.as_base(side.ref.label) if role == "base" else error) from error
            stage.cached = all(side.cached for side in recorded.values())
        return recorded

    def _check_refusals(self, head: BuiltSide, base: BuiltSide | None) -> None:
        """A revision may not lose cases that its base has; and it must have some."""
        lost = {case: why for case, why in head.refused.items() if base is not None and case not in base.refused}
        nothing_left = all(case.id in head.refused for case in self.job.suite.cases)
        if not lost and not nothing_left:
            return
        against = f"which the base {base.ref.label} supports" if lost and base else "and no other case is left"
        refused = lost or head.refused
        for case, why in refused.items():
            check = Check(case=case, family="constraints", passed=False, reason=Reason.CASE_REFUSED, message=why)
            self.judged.checks.append(check)
        case, why = next(iter(refused.items()))
        self.judged.cases += [
            CaseResult(case=c.id, skipped=refused[c.id]) for c in self.job.suite.cases if c.id in refused
        ]
        raise Failed(Reason.CASE_REFUSED, Stage.VERIFY, f"its constraints refuse {case} ({why}), {against}", case=case)

    @contextmanager
    def _stopping(self) -> Iterator[None]:
        """Whatever ends this block early (a time limit of Celery's among others) ends what runs beside it."""
        try:
            yield
        except BaseException:
            self._stop.set()
            raise

    @contextmanager
    def _timed(self, stage: Stage) -> Iterator[_Stamp]:
        self._stage = stage
        self._progress(stage, 0, 0, "")
        began, stamp = datetime.now(UTC), _Stamp()
        try:
            yield stamp
        finally:
            ended = datetime.now(UTC)
            self.stages.append(StageTime(stage=stage, started_at=began, ended_at=ended, cached=stamp.cached))

    def _progress(self, stage: Stage, done: int, total: int, detail: str) -> None:
        self._stage = stage
        self.on_progress(Progress(stage=stage, done=done, total=total, detail=detail[:300], at=datetime.now(UTC)))


@dataclass
class _Stamp:
    cached: bool = False


def _bases(builds: Builds, heads: tuple[BuiltSide, ...]) -> tuple[tuple[BuiltSide, ...], tuple[LeftOut, ...]]:
    """The base's builds beside the head's; or why its machine code is not compared, which is not the head's fault."""
    try:
        return builds.base_beside(heads), ()
    except Failed as error:
        if error.failure.reason is Reason.DEADLINE_PASSED:
            raise
        why = f"the base's machine code is not compared ({error.failure.reason}): {error.failure.message}"
        return (), (LeftOut(stage=Stage.INSPECT, why=why[:1000]),)


def _side(side: BuiltSide, recorded: RecordedSide | None) -> Side:
    if recorded is not None:
        return Side(
            label=side.ref.label, artifact_digest=recorded.digest, artifact=recorded.artifact, refused=side.refused
        )
    library = str(side.file(side.built.library or ""))
    return Side(
        label=side.ref.label,
        artifact_digest=digest_of(side),
        artifact=CpuArtifact(library=library, entry=side.built.entry),
        refused=side.refused,
    )


def _driver() -> str:
    gpu, problem = node.known_gpu()
    if gpu is None:
        raise Failed(Reason.DEVICE_UNHEALTHY, Stage.RECORD, problem or "this node has no GPU")
    return gpu.driver
