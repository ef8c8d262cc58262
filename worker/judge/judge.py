"""One evaluation: verify, then measure. Everything that goes wrong ends as a Failure with its reason."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Literal

from contract.base import Model
from contract.layout import Dtype, lay_out
from contract.names import CaseId
from contract.outcomes import Reason, Stage
from contract.report import CaseResult, Check, Environment, Failure
from contract.suite import Case
from verdict import same_artifact
from worker.judge.bursts import Subject
from worker.judge.case import CaseRun
from worker.judge.device import Arena, Device
from worker.judge.faults import OWN, FaultError
from worker.judge.measure import Measurement, arena_bytes
from worker.judge.secret import SecretRandom
from worker.judge.sides import Baseline, Revision
from worker.judge.verify import DETERMINISM_FAMILY, Verified, verify_case
from worker.launch.patience import Patience
from worker.operators import operator_of_suite
from worker.operators.base import Numerics, tolerances_of
from worker.operators.own import OwnOperatorFailed
from worker.protocol import JudgeChecked, JudgeDone, JudgeJob, JudgeMeasured, JudgeProgress, JudgeStage

Emit = Callable[[Model], None]
_MESSAGE = 4000
_TELL_EVERY_S = 30.0


class Judge:
    """Holds the secrets of one job. `emit` gets every JudgeSays but the last, which `run` returns."""

    def __init__(self, job: JudgeJob, device: Device, emit: Emit, *, against_itself: bool = False) -> None:
        """`against_itself`: measure the same artifact on both sides, to learn what identical code is apart."""
        self._job, self._device, self._tell = job, device, emit
        self._told_at = 0.0
        self._last: JudgeProgress | None = None
        self._against_itself = against_itself
        self._random = SecretRandom(job.seed)
        self._operator = operator_of_suite(job.suite)
        self._dtype: Dtype = "fp16" if job.suite.dtype == "fp16" else "fp32"
        tolerances = tolerances_of(self._operator, job.suite.tolerances)
        work = device.reference_dtype if self._dtype == "fp16" else device.xp.float64
        self._how = Numerics(
            xp=device.xp,
            dtype=self._dtype,
            work=work,
            products=device.products(work),
            tolerances=tolerances,
            scratch_bytes=device.scratch_bytes,
        )
        self._verified = Verified(deterministic={}, workspace_bytes={})
        self._libraries: dict[str, str] = {}
        self._stage = Stage.VERIFY
        self._runs: list[CaseRun] = []

    def run(self) -> JudgeDone:
        failure: Failure | None = None
        try:
            with ExitStack() as resources:
                self._judge(resources)
        except FaultError as fault:
            failure = self._failure(fault)
        except OwnOperatorFailed as error:
            failure = Failure(reason=Reason.OPERATOR_FAILED, stage=self._stage, message=str(error)[:_MESSAGE])
        except MemoryError as error:
            failure = Failure(reason=Reason.OUT_OF_MEMORY, stage=self._stage, message=f"the judge: {error}")
        return JudgeDone(failure=failure, environment=self._environment())

    def _judge(self, resources: ExitStack) -> None:
        job, device = self._job, self._device
        arena = device.arena(arena_bytes(device, [self._size(case) for case in self._all_cases()]))
        resources.callback(arena.close)

        def revision(name: str) -> Revision | None:
            side = job.head if name == "head" else job.base
            if side is None:
                return None
            return Revision(
                name,
                side,
                device=device,
                arena=arena,
                run_as=job.run_as,
                call_limit_s=job.call_limit_s,
                patience=Patience(job.calls_limit_s, self._heard),
            )

        head, base = revision("head"), revision("base")
        if head is None:
            raise FaultError(Reason.INTERNAL_ERROR, "a job without a head", side="judge")
        same = base is not None and base.side.artifact_digest == head.side.artifact_digest
        if same and not self._against_itself:
            base = None
        baseline = None
        if job.measure and any(head.refuses(case.id) is None for case in job.suite.cases):
            # Now, as its imports take longer than most verifications.
            baseline = Baseline(device, arena, self._operator, job.suite.operator_source)
            resources.callback(baseline.close)
        if job.verify:
            with self._staged(Stage.VERIFY):
                self._verify(head, base, arena)
        if job.measure:
            with self._staged(Stage.MEASURE):
                self._skip_refused(head)
                if baseline is not None:
                    self._measure(head, base, baseline, arena)

    def _emit(self, message: Model) -> None:
        self._told_at = time.monotonic()
        if isinstance(message, JudgeProgress | JudgeStage):
            self._last = message if isinstance(message, JudgeProgress) else None
        self._tell(message)

    def _heard(self) -> None:
        """A side has answered: whoever waits for the judge should know that it is at work, however slow the side is."""
        if self._last is not None and time.monotonic() - self._told_at > _TELL_EVERY_S:
            self._emit(self._last)

    # ------------------------------------------------------------ verify

    def _verify(self, head: Revision, base: Revision | None, arena: Arena) -> None:
        cases = [case for case in self._all_cases() if head.refuses(case.id) is None]
        try:
            self._verify_side(head, cases, arena, families=self._operator.families)
        except FaultError as fault:
            # What both sides show is not this change's doing.
            if base is not None and fault.case is not None and base.refuses(fault.case) is None:
                self._blame_base(fault, base, [case for case in cases if case.id == fault.case], arena)
            raise
        if base is not None:
            timed = [case for case in self._job.suite.cases if base.refuses(case.id) is None]
            self._verify_side(base, timed, arena, families=(DETERMINISM_FAMILY,))

    def _verify_side(self, revision: Revision, cases: list[Case], arena: Arena, *, families: tuple[str, ...]) -> None:
        """Raises FaultError with the first check that failed, once its case is through."""
        head = revision.name == "head"
        launcher = revision.start()
        try:
            for done, case in enumerate(cases):
                if head:
                    self._progress("verify", done, len(cases), case.id)
                failed: Check | None = None
                for check in verify_case(
                    self._subject(case),
                    revision,
                    launcher,
                    arena,
                    tensors=self._operator.tensors(case.dims, self._dtype),
                    families=families,
                    random=self._random,
                    verified=self._verified if head else Verified(deterministic={}, workspace_bytes={}),
                ):
                    if head:
                        self._emit(JudgeChecked(check=check))
                    failed = failed or (None if check.passed else check)
                if failed is not None:
                    raise FaultError(
                        failed.reason or Reason.WRONG_VALUES,
                        f"{failed.message} (inputs: {failed.family})",
                        side=revision.name,
                        case=case.id,
                    )
        finally:
            launcher.close()
            self._device.release_scratch()
        if head:
            self._progress("verify", len(cases), len(cases), "")

    def _blame_base(self, fault: FaultError, base: Revision, cases: list[Case], arena: Arena) -> None:
        try:
            self._verify_side(base, cases, arena, families=self._operator.families)
        except FaultError as same:
            if same.reason is fault.reason and same.side == "base":
                raise same from fault

    # ------------------------------------------------------------ measure

    def _skip_refused(self, head: Revision) -> None:
        for case in self._job.suite.cases:
            if (refusal := head.refuses(case.id)) is not None:
                self._emit(JudgeMeasured(result=CaseResult(case=case.id, skipped=refusal)))

    def _measure(self, head: Revision, base: Revision | None, baseline: Baseline, arena: Arena) -> None:
        self._runs = [self._case_run(case, base) for case in self._job.suite.cases if not head.refuses(case.id)]
        measurement = Measurement(
            device=self._device,
            arena=arena,
            head=head,
            base=base,
            baseline=baseline,
            random=self._random,
            max_processes=self._job.max_processes,
            progress=self._emit,
        )
        try:
            measurement.run(self._runs)
            self._progress("measure", len(self._runs), len(self._runs), "")
            for run in self._runs:
                run.audit()
        finally:
            self._libraries.update(baseline.libraries)
            for run in self._runs:
                if run.done:
                    self._emit(JudgeMeasured(result=run.result()))

    def _case_run(self, case: Case, base: Revision | None) -> CaseRun:
        same = self._job.base is not None and base is None
        base_skipped = base.refuses(case.id) if base is not None else None
        return CaseRun(
            subject=self._subject(case),
            tensors=self._operator.tensors(case.dims, self._dtype),
            allowed_slowdown=self._job.suite.allowed_slowdown(case.id, device_class=self._job.device_class),
            seed=0,
            against_base=base is not None and base_skipped is None,
            base_skipped=base_skipped,
            same_artifact=same,
            spreads=self._job.spreads,
            judgement=same_artifact() if same else None,
            deterministic=self._verified.deterministic.get(case.id),
            workspace_bytes=self._verified.workspace_bytes.get(case.id, 0),
        )

    # ------------------------------------------------------------ what both need

    def _all_cases(self) -> list[Case]:
        found: dict[CaseId, Case] = {case.id: case for case in (*self._job.suite.cases, *self._job.suite.verify_cases)}
        return list(found.values())

    def _subject(self, case: Case) -> Subject:
        return Subject(
            device=self._device,
            operator=self._operator,
            case=case.id,
            dims=case.dims,
            how=self._how,
            call_limit_s=self._job.call_limit_s,
        )

    def _size(self, case: Case) -> tuple[int, float]:
        """Bytes of a slot, and the least microseconds of a call."""
        least = self._device.roofline_us(
            flops=self._operator.flops(case.dims),
            bytes_moved=self._operator.bytes_moved(case.dims, self._dtype),
            dtype=self._dtype,
        )
        return lay_out(self._operator.tensors(case.dims, self._dtype)).slot_bytes, least

    def _progress(self, stage: Literal["verify", "measure"], done: int, total: int, detail: str) -> None:
        self._emit(JudgeProgress(stage=stage, done=done, total=total, detail=detail[:300]))

    @contextmanager
    def _staged(self, stage: Stage) -> Iterator[None]:
        self._stage = stage
        name: Literal["verify", "measure"] = "verify" if stage is Stage.VERIFY else "measure"
        self._emit(JudgeStage(stage=name, event="began"))
        try:
            yield
        finally:
            self._emit(JudgeStage(stage=name, event="ended"))

    def _failure(self, fault: FaultError) -> Failure:
        reason = fault.reason
        if reason not in OWN:
            if fault.side == "base":
                reason = Reason.BASE_FAILED
            elif fault.side == "baseline":
                reason = Reason.BASELINE_FAILED
        message = fault.message if fault.side == "head" else f"{fault.side}: {fault.message}"
        return Failure(reason=reason, stage=self._stage, message=message[:_MESSAGE], case=fault.case)

    def _environment(self) -> Environment:
        found = self._device.environment()
        return found.model_copy(
            update={"libraries": {**found.libraries, **self._libraries}, "sandbox": bool(self._job.run_as)}
        )
