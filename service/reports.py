"""A worker's report becomes measurements, comparisons and an outcome: once, in one transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlmodel import Session, select

from contract.devices import DeviceClass
from contract.outcomes import Outcome, Reason, Stage, State, Verdict
from contract.report import CaseResult, Check, Failure, Report
from contract.suite import Suite
from contract.text import clean, one_line
from service import find, states
from service.auth import Principal
from service.doubts import check_subject, hidden_failure
from service.judging import DifferenceError, Judged, earlier_pairs, judge
from service.leases import held_evaluation
from service.metrics import TRUSTED
from service.models import (
    CheckResult,
    Comparison,
    Evaluation,
    Kernel,
    Measurement,
    Revision,
    Series,
)
from service.models import Suite as SuiteRow
from service.processes import process_medians
from service.projects import suite_of
from service.regressions.watching import observe
from service.standings import refresh_standings
from service.statics import add_static_measurements
from service.text import clean_json
from verdict.summaries import outcome_of, summarise, summarise_built, summarise_failure


@dataclass(frozen=True, kw_only=True)
class Context:
    """What the report is about. `base`: None where there is nothing to compare with."""

    evaluation: Evaluation
    suite: Suite
    head: Revision
    base: Revision | None


def take_report(
    session: Session, *, principal: Principal, evaluation_id: str, lease: str, report: Report, log_digest: str | None
) -> None:
    """Raises 409 `lease-lost` for a late or second report and 422 `report-mismatch` for one about something else;
    neither changes anything."""
    evaluation, _ = held_evaluation(session, principal=principal, evaluation_id=evaluation_id, lease=lease)
    # Two reports of one kernel at once would each make its missing series.
    kernel = session.exec(select(Kernel).where(Kernel.id == evaluation.kernel_id).with_for_update()).one()
    context = Context(
        evaluation=evaluation,
        suite=suite_of(find.existing(session, SuiteRow, evaluation.suite_id or ""), kernel),
        head=find.existing(session, Revision, evaluation.revision_id),
        base=find.existing(session, Revision, evaluation.base_id) if evaluation.base_id else None,
    )
    check_subject(report, evaluation=evaluation, suite=context.suite)
    _keep_facts(evaluation, report, log_digest)
    if evaluation.cancel_requested or _reason_of(report) in {Reason.BY_REQUEST, Reason.SUPERSEDED}:
        message = "cancelled while a node worked on it"
        states.end_cancelled(session, evaluation, message=message, reason=_reason_of(report))
        return
    failure = report.failure or hidden_failure(
        report, suite=context.suite, build_only=evaluation.build_only, units=_units(session, evaluation)
    )
    judged: Mapping[str, Judged] = {}
    if failure is None and not report.built_only:
        try:
            judged = judge(
                context.suite,
                report.cases,
                earlier_pairs(session, evaluation),
                device_class=DeviceClass(evaluation.device_class),
            )
        except DifferenceError as error:
            failure = Failure(reason=Reason.INTERNAL_ERROR, stage=Stage.REPORT, message=str(error)[:8000])
    comparisons = [
        _comparison(context, case, place, judged.get(case.case), compare=failure is None and not report.built_only)
        for place, case in enumerate(report.cases)
    ]
    outcome = outcome_of(failure.reason if failure else None, comparisons, built_only=report.built_only)
    session.add_all(comparisons)
    session.add_all(_checks(evaluation, report.checks))
    _add_measurements(session, context, report.cases, trusted=outcome in TRUSTED)
    add_static_measurements(session, evaluation, report.statics, trusted=outcome in TRUSTED)
    evaluation.outcome = outcome
    if failure is not None:
        evaluation.reason = failure.reason
        evaluation.message = clean(failure.message)
        evaluation.summary = summarise_failure(
            outcome=outcome, reason=failure.reason, message=failure.message, case=failure.case
        )
    elif outcome is Outcome.BUILT:
        evaluation.summary = summarise_built(
            [each.architecture for each in report.statics], verified=bool(report.checks)
        )
    else:
        evaluation.summary = summarise(outcome, comparisons)
    states.end_attempt(session, evaluation, end="reported")
    states.move(session, evaluation, State.FINISHED)
    refresh_standings(session, kernel, [evaluation.device_class])
    observe(session, evaluation)


def _reason_of(report: Report) -> Reason | None:
    return report.failure.reason if report.failure else None


def _keep_facts(evaluation: Evaluation, report: Report, log_digest: str | None) -> None:
    evaluation.artifact_digest = report.artifact_digest
    evaluation.log_digest = log_digest
    evaluation.stages = clean_json([stage.model_dump(mode="json") for stage in report.stages])
    evaluation.left_out = clean_json([each.model_dump(mode="json") for each in report.left_out])
    evaluation.statics = clean_json([each.model_dump(mode="json") for each in report.statics])
    evaluation.base_statics = clean_json([each.model_dump(mode="json") for each in report.base_statics])
    evaluation.environment = (
        clean_json(report.environment.model_dump(mode="json", exclude_none=True)) if report.environment else None
    )


def _comparison(context: Context, case: CaseResult, place: int, judged: Judged | None, *, compare: bool) -> Comparison:
    row = Comparison(
        evaluation_id=context.evaluation.id,
        position=place,
        case=case.case,
        skipped=_optional(case.skipped),
        base_skipped=_optional(case.base_skipped),
        baseline=one_line(case.baseline, 300) if case.baseline else None,
        same_artifact=case.same_artifact,
        spread_floor=case.spread_floor,
        held_s=case.held_s,
        pairs=clean_json([pair.model_dump(mode="json") for pair in case.pairs]),
        processes=process_medians(case.pairs),
        measured="pairs" if case.pairs else "none",
    )
    if not compare or context.base is None:
        return row
    row.allowed_slowdown = context.suite.allowed_slowdown(
        case.case, device_class=DeviceClass(context.evaluation.device_class)
    )
    if judged is None:
        if case.skipped is None and case.base_skipped is None:
            # Silence about one case must not pass for "nothing is slower".
            row.verdict = Verdict.INCONCLUSIVE
            row.reason = "it was not compared with the base"
        return row
    judgement = judged.judgement
    row.verdict = judgement.verdict
    row.ratio = judgement.ratio
    row.low, row.high = judgement.interval or (None, None)
    row.smallest_detectable = judgement.smallest_detectable
    row.reason = clean(judgement.reason)
    row.pooled_pairs = judged.pooled
    allowance = context.suite.allowance(
        revision=context.head.label,
        base=context.base.label,
        case=case.case,
        device_class=DeviceClass(context.evaluation.device_class),
    )
    row.allowance = clean(allowance.reason) if allowance and judgement.verdict is Verdict.SLOWER else None
    return row


def _checks(evaluation: Evaluation, checks: Sequence[Check]) -> list[CheckResult]:
    return [
        CheckResult(
            evaluation_id=evaluation.id,
            position=place,
            **clean_json(check.model_dump(mode="json")),
        )
        for place, check in enumerate(checks)
    ]


def _series(session: Session, evaluation: Evaluation) -> dict[tuple[str, str], Series]:
    query = select(Series).where(
        Series.kernel_id == evaluation.kernel_id, Series.device_class == evaluation.device_class
    )
    return {(row.case, row.metric): row for row in session.exec(query).all()}


def _units(session: Session, evaluation: Evaluation) -> dict[tuple[str, str], str]:
    return {name: row.unit for name, row in _series(session, evaluation).items()}


def _add_measurements(session: Session, context: Context, cases: Sequence[CaseResult], *, trusted: bool) -> None:
    evaluation = context.evaluation
    series = _series(session, evaluation)
    for case, metric in [(each, metric) for each in cases for metric in each.metrics]:
        value, low, high = clean_json([metric.value, metric.low, metric.high])
        if value is None:
            continue
        line = series.get((case.case, metric.name))
        if line is None:
            line = Series(
                kernel_id=evaluation.kernel_id,
                device_class=evaluation.device_class,
                case=case.case,
                metric=metric.name,
                unit=metric.unit,
                better=metric.better,
            )
            series[case.case, metric.name] = line
            session.add(line)
            session.flush()
        if line.unit != metric.unit:
            continue  # hidden_failure has said so
        session.add(
            Measurement(
                series_id=line.id,
                revision_id=evaluation.revision_id,
                evaluation_id=evaluation.id,
                value=value,
                low=low,
                high=high,
                samples=[sample for sample in clean_json(metric.samples) if sample is not None],
                trusted=trusted,
            )
        )


def _optional(text: str | None) -> str | None:
    return None if text is None else clean(text)
