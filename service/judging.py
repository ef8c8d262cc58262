"""Evidence -> verdicts: the worker's judgement checked, then judged again with the evidence of earlier repeats."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sqlmodel import Session, col, select

from contract.devices import DeviceClass
from contract.outcomes import Outcome, State, Verdict
from contract.report import CaseResult
from contract.samples import Comparison, Pair
from contract.suite import Suite
from contract.verdicts import Judgement
from service.models import Comparison as ComparisonRow
from service.models import Evaluation
from verdict import LOOKS, decide_all, same_artifact

TIME_UNIT = "us"
# The same NumPy on another machine may add in another order.
_TOLERANCE = 1e-6

Look = Literal[1, 2, 3]


@dataclass(frozen=True, kw_only=True)
class Judged:
    """The verdict of one case; `pooled`: how many pairs of earlier repeats it rests on beside its own."""

    judgement: Judgement
    pooled: int


class DifferenceError(Exception):
    """The worker's judgement isn't what its own samples say."""


def judge(
    suite: Suite, cases: Sequence[CaseResult], earlier: Mapping[str, Sequence[Pair]], *, device_class: DeviceClass
) -> dict[str, Judged]:
    """The verdicts of the cases that were compared. `earlier`: the pairs of earlier repeats, by case, oldest first.

    Raises DifferenceError.
    """
    own = {case.case: _comparison(suite, case, (), device_class) for case in cases if case.pairs}
    alone = decide_all(own, one_clock=True)
    for case in cases:
        if case.pairs and case.judgement is not None:
            _check_same(case.case, case.judgement, alone[case.case])
        elif case.judgement is not None and not case.same_artifact:
            raise DifferenceError(
                f"{case.case}: a verdict ({case.judgement.verdict.value}) without a pair of processes"
            )
    judgements = alone
    if any(earlier.get(name) for name in own):
        pooled = {
            case.case: _comparison(suite, case, earlier.get(case.case, ()), device_class)
            for case in cases
            if case.pairs
        }
        judgements = decide_all(pooled, one_clock=True)
    judged = {
        name: Judged(judgement=judgement, pooled=len(earlier.get(name, ()))) for name, judgement in judgements.items()
    }
    for case in cases:
        if case.same_artifact and not case.pairs:
            judged[case.case] = Judged(judgement=same_artifact(), pooled=0)
    return judged


def earlier_pairs(session: Session, evaluation: Evaluation) -> dict[str, list[Pair]]:
    """The pairs of every earlier evaluation of the same (revision, base, class) and protocol, by case, oldest first."""
    query = (
        select(Evaluation.id, ComparisonRow.case, ComparisonRow.pairs)
        .join(Evaluation, col(Evaluation.id) == ComparisonRow.evaluation_id)
        .where(
            Evaluation.revision_id == evaluation.revision_id,
            Evaluation.base_key == evaluation.base_key,
            Evaluation.device_class == evaluation.device_class,
            Evaluation.protocol_version == evaluation.protocol_version,
            Evaluation.id != evaluation.id,
            Evaluation.state == State.FINISHED,
            col(Evaluation.outcome).in_((Outcome.PASSED, Outcome.SLOWER, Outcome.INCONCLUSIVE)),
        )
    )
    found: dict[str, list[Pair]] = {}
    for evaluation_id, case, pairs in session.exec(query.order_by(Evaluation.id)).all():
        found.setdefault(case, []).extend(_of_evaluation(Pair.model_validate(pair), evaluation_id) for pair in pairs)
    return found


def _of_evaluation(pair: Pair, evaluation_id: str) -> Pair:
    """Processes of two evaluations are never the same ones, whatever their workers called them."""
    named = {side: getattr(pair, side) for side in ("base_process", "head_process")}
    return pair.model_copy(update={side: name and f"{evaluation_id} {name}" for side, name in named.items()})


def look_of(pairs: int) -> Look | None:
    """The look at which a worker stops with so many pairs; None (final) where its limit lies between two looks."""
    looks: tuple[Look, ...] = (1, 2, 3)
    return next((look for look, enough in zip(looks, LOOKS, strict=True) if pairs == enough), None)


def _comparison(suite: Suite, case: CaseResult, earlier: Sequence[Pair], device_class: DeviceClass) -> Comparison:
    pairs = (*earlier, *case.pairs)
    return Comparison(
        unit=TIME_UNIT,
        allowed_slowdown=suite.allowed_slowdown(case.case, device_class=device_class),
        pairs=pairs,
        spread_floor=case.spread_floor,
        # Looked at before: each time more may not spend more than the last look alone.
        look=3 if earlier else look_of(len(pairs)),
    )


def _check_same(case: str, theirs: Judgement, ours: Judgement) -> None:
    numbers = [(theirs.ratio, ours.ratio)]
    numbers += zip(theirs.interval or (None, None), ours.interval or (None, None), strict=True)
    if theirs.verdict is not ours.verdict or not all(_close(one, other) for one, other in numbers):
        raise DifferenceError(
            f"{case}: the worker says {_said(theirs)}, its samples say {_said(ours)}; is its verdict/ another version?"
        )


def _close(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=_TOLERANCE)


def _said(judgement: Judgement) -> str:
    ratio = "" if judgement.ratio is None else f" ({judgement.ratio:.6g})"
    return f"{Verdict(judgement.verdict).value}{ratio}"
