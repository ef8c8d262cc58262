"""One evaluation as rows of the gate: what each case, the machine code and the evaluation as a whole say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from contract.api import EvaluationOut
from contract.gate import Acceptance, GateRow, GateSubject, RowStatus
from contract.outcomes import Outcome, Reason, State, Verdict
from contract.report import CaseResult
from contract.statics import by_architecture
from contract.suite import Suite
from contract.verdicts import Judgement
from verdict.gate.statics import applies, excess, unknown
from verdict.words import percent, ratio_in_words

FAILED = frozenset({Outcome.INCORRECT, Outcome.BUILD_FAILED, Outcome.UNTRUSTED})
LEFT_OUT = "left out"
MEASURED = frozenset({Outcome.PASSED, Outcome.SLOWER, Outcome.INCONCLUSIVE})


def rows_of(evaluation: EvaluationOut, subject: GateSubject) -> Iterator[GateRow]:
    suite = subject.suite
    if evaluation.state in {State.QUEUED, State.LEASED}:
        yield _row(evaluation, RowStatus.PENDING, "not finished yet")
    elif evaluation.outcome is None or evaluation.outcome is Outcome.CANCELLED:
        why = "superseded by a newer push" if evaluation.reason is Reason.SUPERSEDED else "cancelled"
        yield _row(evaluation, RowStatus.CANCELLED, why)
    elif evaluation.outcome in FAILED:
        yield _row(evaluation, RowStatus.BAD, evaluation.summary or evaluation.outcome.value.replace("_", " "))
    elif evaluation.outcome is Outcome.INFRASTRUCTURE_ERROR:
        yield _missing(evaluation, suite, evaluation.summary or "could not be measured")
    elif evaluation.outcome is Outcome.BUILT:
        yield _built(evaluation, suite)
        yield from _static_rows(evaluation, suite)
    else:
        yield from _case_rows(evaluation, subject)
        yield from _static_rows(evaluation, suite)


def title_of(suite: Suite, case_id: str) -> str:
    return next((case.title for case in suite.cases if case.id == case_id and case.title), case_id)


def judged_with(suite: Suite, evaluation: EvaluationOut, case: str, judgement: Judgement) -> Verdict:
    """The verdict as this suite has it. An evaluation under another suite was judged with that one's allowed slowdown;
    its interval then decides against this one's."""
    if evaluation.suite_digest == suite.digest or judgement.interval is None:
        return judgement.verdict
    low, high = judgement.interval
    allowed = suite.allowed_slowdown(case, device_class=evaluation.device_class)
    if low > 1.0 + allowed:
        return Verdict.SLOWER
    if high < 1.0 - allowed:
        return Verdict.FASTER
    return Verdict.SAME if 1.0 - allowed < low and high < 1.0 + allowed else Verdict.INCONCLUSIVE


def _case_rows(evaluation: EvaluationOut, subject: GateSubject) -> Iterator[GateRow]:
    results = {each.case: each for each in evaluation.cases}
    if results and all(each.skipped and (evaluation.base is None or each.base_skipped) for each in results.values()):
        yield _missing(evaluation, subject.suite, "every case is left out, so that nothing was measured")
        return
    for case in subject.suite.cases:
        result = results.get(case.id)
        if result is None:
            yield _missing(evaluation, subject.suite, "nothing was reported", case=case.id)
        else:
            yield _case_row(evaluation, subject, result)


def _case_row(evaluation: EvaluationOut, subject: GateSubject, result: CaseResult) -> GateRow:
    suite, base = subject.suite, evaluation.base
    if result.skipped is not None:
        if base is not None and result.base_skipped is None:
            return _row(
                evaluation,
                RowStatus.BAD,
                f"{LEFT_OUT}, which {base.label} supports ({result.skipped})",
                case=result.case,
            )
        return _row(evaluation, RowStatus.GOOD, f"{LEFT_OUT} ({result.skipped})", case=result.case)
    judgement = result.judgement
    if judgement is None:
        if base is None:
            return _row(evaluation, RowStatus.GOOD, "right and measured; no base to compare with", case=result.case)
        if result.base_skipped is not None:
            said = f"right and measured; {base.label} leaves it out"
            return _row(evaluation, RowStatus.GOOD, said, case=result.case)
        return _missing(evaluation, suite, f"not compared with {base.label}", case=result.case)
    return _judged_row(evaluation, subject, result.case, judgement)


def _judged_row(evaluation: EvaluationOut, subject: GateSubject, case: str, judgement: Judgement) -> GateRow:
    suite = subject.suite
    verdict = judged_with(suite, evaluation, case, judgement)
    allowed = suite.allowed_slowdown(case, device_class=evaluation.device_class)
    facts: dict[str, Any] = {
        "case": case,
        "verdict": verdict,
        "ratio": judgement.ratio,
        "interval": judgement.interval,
        "smallest_detectable": judgement.smallest_detectable,
        "allowed_slowdown": allowed,
    }
    said = ratio_in_words(judgement.ratio, judgement.interval)
    if verdict is Verdict.SLOWER:
        forgiven = _forgiven(evaluation, subject, case)
        if forgiven is not None:
            return _row(evaluation, RowStatus.TOLERATED, f"{said}, {forgiven}", tolerated=forgiven, **facts)
        return _row(evaluation, RowStatus.BAD, f"{said} (allowed {percent(allowed)})", **facts)
    if verdict is Verdict.INCONCLUSIVE:
        if judgement.ratio is None:
            return _missing(evaluation, suite, judgement.reason, **facts)
        status = RowStatus.BAD if suite.policy.inconclusive == "fail" else RowStatus.UNPROVEN
        return _row(evaluation, status, f"inconclusive: {judgement.reason}", **facts)
    return _row(evaluation, RowStatus.GOOD, said if verdict is Verdict.FASTER else "same", **facts)


def _forgiven(evaluation: EvaluationOut, subject: GateSubject, case: str) -> str | None:
    if evaluation.base is None:
        return None
    allowance = subject.suite.allowance(
        revision=evaluation.revision.label,
        base=evaluation.base.label,
        case=case,
        device_class=evaluation.device_class,
    )
    if allowance is not None:
        return f"allowed here by the suite: {allowance.reason}"
    accepted = next((each for each in subject.acceptances if _covers(each, evaluation, case)), None)
    return f"accepted by {accepted.who}: {accepted.reason}" if accepted else None


def _covers(acceptance: Acceptance, evaluation: EvaluationOut, case: str) -> bool:
    return acceptance.device_class in {None, evaluation.device_class} and acceptance.case in {None, case}


def _built(evaluation: EvaluationOut, suite: Suite) -> GateRow:
    if evaluation.device_class in suite.policy.build_only_device_classes:
        return _row(evaluation, RowStatus.GOOD, "compiled; the suite asks for no more on this class")
    return _missing(evaluation, suite, "compiled and not measured: no card of the class was at hand")


def _static_rows(evaluation: EvaluationOut, suite: Suite) -> Iterator[GateRow]:
    """A row for each limit that is broken, or can't be decided, on each architecture."""
    heads, bases = by_architecture(evaluation.statics), by_architecture(evaluation.base_statics)
    label = evaluation.base.label if evaluation.base else None
    for limit in suite.policy.static_limits:
        if not applies(limit, device_class=evaluation.device_class, statics=evaluation.statics):
            continue
        for architecture, head in (heads or {"": []}).items():
            base = bases.get(architecture, [])
            where = f" on {architecture}" if len(heads) > 1 else ""
            if (said := excess(limit, head, base)) is not None:
                yield _row(evaluation, RowStatus.BAD, said + where)
            elif (said := unknown(limit, head, base, base_label=label)) is not None:
                yield _missing(evaluation, suite, said + where)


def _missing(evaluation: EvaluationOut, suite: Suite, said: str, **facts: Any) -> GateRow:
    """On a required class something missing always holds a merge back, elsewhere by policy."""
    required = evaluation.device_class in suite.policy.required_device_classes
    held = required or suite.policy.missing == "fail"
    return _row(evaluation, RowStatus.MISSING if held else RowStatus.UNPROVEN, said, **facts)


def _row(evaluation: EvaluationOut, status: RowStatus, said: str, **facts: Any) -> GateRow:
    return GateRow(
        status=status,
        kernel=evaluation.kernel,
        said=said,
        device_class=evaluation.device_class,
        revision=evaluation.revision.label,
        base=evaluation.base.label if evaluation.base else None,
        evaluation=evaluation.id,
        outcome=evaluation.outcome,
        **facts,
    )
