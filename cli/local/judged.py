"""A report that no service has seen, as an evaluation: the same shape and the same words as everywhere."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from cli.text import case_name, many
from contract.api import AttemptOut, BaseRef, EvaluationOut
from contract.job import Job, RevisionRef
from contract.outcomes import OUTCOME_OF, Outcome, State, Verdict
from contract.report import CaseResult, Report
from verdict.words import percent, ratio_in_words


def evaluation_of(job: Job, report: Report, *, node: str, started_at: datetime) -> EvaluationOut:
    ended_at = datetime.now(UTC)
    outcome = outcome_of(job, report)
    failure = report.failure
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
        summary=sentence(job, report, outcome),
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


def outcome_of(job: Job, report: Report) -> Outcome:
    if report.failure is not None:
        return OUTCOME_OF[report.failure.reason]
    if report.built_only:
        return Outcome.BUILT
    if _slower(job, report.cases):
        return Outcome.SLOWER
    verdicts = [result.judgement.verdict for result in report.cases if result.judgement]
    return Outcome.INCONCLUSIVE if Verdict.INCONCLUSIVE in verdicts else Outcome.PASSED


def sentence(job: Job, report: Report, outcome: Outcome) -> str:
    """The outcome's reason in one sentence."""
    if report.failure is not None:
        where = f" ({case_name(report.failure.case)})" if report.failure.case else ""
        return f"{report.failure.reason.value.replace('_', ' ')}{where}"
    if outcome is Outcome.BUILT:
        named = ", ".join(dict.fromkeys(one.architecture for one in report.statics)) or job.device_class.value
        verified = "; right in all checks on small cases" if report.checks else ""
        return f"compiled for {named}{verified}; not measured, as there is no card of the class here"
    if outcome is Outcome.SLOWER:
        worst = max(_slower(job, report.cases), key=lambda result: _ratio(result) or 1.0)
        interval = worst.judgement.interval if worst.judgement else None
        return f"{ratio_in_words(_ratio(worst), interval)} than {_base(job)} at {case_name(worst.case)}"
    compared = [result for result in report.cases if result.judgement]
    if not compared:
        return "verified and measured" + ("" if job.base else "; nothing to compare with (--base PATH)")
    if outcome is Outcome.INCONCLUSIVE:
        open_ones = [result for result in compared if _verdict(result) is Verdict.INCONCLUSIVE]
        return f"{many(len(open_ones), 'case')} could not be told apart from {_base(job)} within the allowed slowdown"
    found = [result.judgement.smallest_detectable for result in compared if result.judgement]
    detectable = max((value for value in found if value is not None), default=None)
    said = f"; the smallest slowdown this run would have found: {percent(detectable)}" if detectable else ""
    return f"nothing is slower than allowed ({percent(job.suite.policy.allowed_slowdown)}{said})"


def _slower(job: Job, results: Iterable[CaseResult]) -> list[CaseResult]:
    """The cases that are slower, allowances apart."""
    return [result for result in results if _verdict(result) is Verdict.SLOWER and not _forgiven(job, result)]


def _forgiven(job: Job, result: CaseResult) -> bool:
    return job.base is not None and bool(
        job.suite.allowance(
            revision=job.revision.label, base=job.base.label, case=result.case, device_class=job.device_class
        )
    )


def _verdict(result: CaseResult) -> Verdict | None:
    return result.judgement.verdict if result.judgement else None


def _ratio(result: CaseResult) -> float | None:
    return result.judgement.ratio if result.judgement else None


def _base(job: Job) -> str:
    return job.base.label if job.base else "its base"


def _base_ref(reference: RevisionRef) -> BaseRef:
    return BaseRef(id=reference.id, label=reference.label, digest=reference.digest)
