"""From rows to one conclusion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from contract.api import EvaluationOut
from contract.gate import GateAnswer, GateConclusion, GateRow, GateSubject, RowStatus
from contract.outcomes import Outcome, State
from verdict.gate.anchor import anchor_rows
from verdict.gate.rows import rows_of
from verdict.gate.sentences import sentence_of

_ORDER = list(RowStatus)


def gate(subjects: Sequence[GateSubject]) -> GateAnswer:
    """The answer over all kernels that a commit touches; none of them is a success, and nothing to do.

    What is bad fails at once, whatever is still to come. Something to judge of which nothing was judged is never a
    success.
    """
    rows: list[GateRow] = []
    pending = 0
    for subject in subjects:
        of_kernel, waiting = _subject_rows(subject)
        rows += of_kernel
        pending += waiting
    rows.sort(key=lambda row: (_ORDER.index(row.status), -(row.ratio or 0.0)))
    conclusion = _conclusion(rows, subjects)
    return GateAnswer(
        conclusion=conclusion,
        sentence=sentence_of(conclusion, rows, subjects),
        proven=conclusion is GateConclusion.SUCCESS and all(row.status is not RowStatus.UNPROVEN for row in rows),
        pending=pending,
        rows=tuple(rows),
    )


def _conclusion(rows: Sequence[GateRow], subjects: Sequence[GateSubject]) -> GateConclusion:
    statuses = {row.status for row in rows}
    for status, conclusion in (
        (RowStatus.BAD, GateConclusion.FAILURE),
        (RowStatus.PENDING, GateConclusion.PENDING),
        (RowStatus.CANCELLED, GateConclusion.CANCELLED),
        (RowStatus.MISSING, GateConclusion.NOT_MEASURED),
    ):
        if status in statuses:
            return conclusion
    return GateConclusion.SUCCESS if not subjects or rows else GateConclusion.NOT_MEASURED


def _subject_rows(subject: GateSubject) -> tuple[list[GateRow], int]:
    """A kernel's rows, and how many of its evaluations are to come."""
    suite = subject.suite
    standing = list(_standing(subject.evaluations))
    judged = [each for each in standing if not _for_the_anchor_alone(each, standing, subject)]
    rows = [row for evaluation in judged for row in rows_of(evaluation, subject)]
    rows += anchor_rows(subject, standing)
    present = {evaluation.device_class for evaluation in judged}
    rows += [
        GateRow(
            status=RowStatus.MISSING,
            kernel=suite.kernel,
            said="required, and nothing was measured there",
            device_class=device_class,
        )
        for device_class in suite.policy.required_device_classes
        if device_class not in present
    ]
    if not any(row.status is not RowStatus.UNPROVEN or row.ratio is not None for row in rows):
        # Every class may miss by policy, and every one does.
        rows.append(GateRow(status=RowStatus.MISSING, kernel=suite.kernel, said="touched, and nothing was judged"))
    return rows, sum(_waits(evaluation) for evaluation in standing)


def _standing(evaluations: Sequence[EvaluationOut]) -> Iterator[EvaluationOut]:
    """One for each (revision, class, base): the newest that says something or will; a repeat pools those before it,
    so that one that could not be measured takes nothing back."""
    groups: dict[tuple[str, str, str], list[EvaluationOut]] = {}
    for each in sorted(evaluations, key=lambda each: (each.created_at, each.repeat, each.id)):
        key = (each.revision.id, each.device_class, each.base.id if each.base else "")
        groups.setdefault(key, []).append(each)
    for group in groups.values():
        if _waits(group[-1]):
            yield group[-1]
        else:
            yield next((each for each in reversed(group) if _says_something(each)), group[-1])


def _waits(evaluation: EvaluationOut) -> bool:
    return evaluation.state in {State.QUEUED, State.LEASED}


def _says_something(evaluation: EvaluationOut) -> bool:
    return evaluation.state is State.FINISHED and evaluation.outcome is not Outcome.INFRASTRUCTURE_ERROR


def _for_the_anchor_alone(evaluation: EvaluationOut, standing: Sequence[EvaluationOut], subject: GateSubject) -> bool:
    anchor = subject.suite.policy.anchor
    if anchor is None or evaluation.base is None or evaluation.base.label != anchor.revision:
        return False
    return any(
        other.revision.id == evaluation.revision.id
        and other.device_class is evaluation.device_class
        and (other.base is None or other.base.label != anchor.revision)
        for other in standing
    )
