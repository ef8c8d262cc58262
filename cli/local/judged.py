"""A report that no service has seen, as an evaluation: the same shape and the same words as everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from contract.api import AttemptOut, BaseRef, EvaluationOut
from contract.job import Job, RevisionRef
from contract.outcomes import Outcome, State
from contract.report import CaseResult, Report
from verdict.summaries import outcome_of, summarise, summarise_built, summarise_failure


def evaluation_of(job: Job, report: Report, *, node: str, started_at: datetime) -> EvaluationOut:
    ended_at = datetime.now(UTC)
    failure = report.failure
    cases = [_case(job, result) for result in report.cases]
    outcome = outcome_of(failure.reason if failure else None, cases, built_only=report.built_only)
    return EvaluationOut(
        id=job.evaluation_id,
        project=job.project,
        kernel=job.kernel,
        revision=_base_ref(job.revision),
        base=_base_ref(job.base) if job.base else None,
        device_class=job.device_class,
        suite_digest=job.suite.digest,
        protocol_version=report.protocol_version,
        repeat=job.repeat,
        build_only=job.build_only,
        profile=job.profile,
        state=State.FINISHED,
        outcome=outcome,
        reason=failure.reason if failure else None,
        message=failure.message if failure else None,
        summary=_sentence(report, outcome, cases),
        stage=None,
        progress=None,
        created_at=started_at,
        leased_at=started_at,
        finished_at=ended_at,
        attempts=(AttemptOut(node=node, started_at=started_at, ended_at=ended_at, end="reported"),),
        stages=report.stages,
        left_out=report.left_out,
        environment=report.environment,
        statics=report.statics,
        base_statics=report.base_statics,
        checks=report.checks,
        cases=report.cases,
    )


@dataclass(frozen=True)
class _Case:
    """A case of the report, as the one sentence wants it."""

    result: CaseResult
    allowed_slowdown: float | None
    allowance: str | None

    @property
    def case(self) -> str:
        return self.result.case

    @property
    def skipped(self) -> str | None:
        return self.result.skipped

    @property
    def verdict(self) -> str | None:
        return self.result.judgement.verdict if self.result.judgement else None

    @property
    def ratio(self) -> float | None:
        return self.result.judgement.ratio if self.result.judgement else None

    @property
    def low(self) -> float | None:
        return self._interval[0]

    @property
    def high(self) -> float | None:
        return self._interval[1]

    @property
    def _interval(self) -> tuple[float | None, float | None]:
        return (self.result.judgement.interval if self.result.judgement else None) or (None, None)

    @property
    def smallest_detectable(self) -> float | None:
        return self.result.judgement.smallest_detectable if self.result.judgement else None

    @property
    def reason(self) -> str | None:
        return self.result.judgement.reason if self.result.judgement else None


def _case(job: Job, result: CaseResult) -> _Case:
    found = job.base and job.suite.allowance(
        revision=job.revision.label, base=job.base.label, case=result.case, device_class=job.device_class
    )
    allowed = job.suite.allowed_slowdown(result.case, device_class=job.device_class)
    return _Case(result, allowed_slowdown=allowed, allowance=found.reason if found else None)


def _sentence(report: Report, outcome: Outcome, cases: Sequence[_Case]) -> str:
    failure = report.failure
    if failure is not None:
        return summarise_failure(outcome=outcome, reason=failure.reason, message=failure.message, case=failure.case)
    if outcome is Outcome.BUILT:
        return summarise_built([one.architecture for one in report.statics], verified=bool(report.checks))
    return summarise(outcome, cases)


def _base_ref(reference: RevisionRef) -> BaseRef:
    return BaseRef(id=reference.id, label=reference.label, digest=reference.digest)
