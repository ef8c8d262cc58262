"""Slow boil: slowdowns that were each allowed, added up since the policy's anchor."""

from __future__ import annotations

from collections.abc import Sequence

from contract.api import EvaluationOut
from contract.gate import Anchored, GateRow, GateSubject, RowStatus
from contract.suite import Anchor, Suite
from verdict.gate.rows import MEASURED
from verdict.words import percent, ratio_in_words


def anchor_rows(subject: GateSubject, standing: Sequence[EvaluationOut]) -> list[GateRow]:
    """Rows for what is beyond the cumulative allowance, or can't be told. A comparison with the anchor itself comes
    before a chain of comparisons."""
    anchor = subject.suite.policy.anchor
    if anchor is None:
        return []
    measured = [
        Anchored(device_class=each.device_class, case=case.case, ratio=judged.ratio, interval=judged.interval)
        for each in standing
        if each.outcome in MEASURED and each.base is not None and each.base.label == anchor.revision
        for case in each.cases
        if (judged := case.judgement) is not None
    ]
    direct = {(each.device_class, each.case) for each in measured}
    known = [*measured, *(each for each in subject.anchored if (each.device_class, each.case) not in direct)]
    return [row for each in known if (row := _row(subject.suite, anchor, each)) is not None]


def _row(suite: Suite, anchor: Anchor, anchored: Anchored) -> GateRow | None:
    # Neither way of not knowing is evidence: what the policy says of the undecided counts.
    undecided = RowStatus.BAD if suite.policy.inconclusive == "fail" else RowStatus.UNPROVEN
    limit = 1.0 + anchor.allowed_slowdown
    low = anchored.interval[0] if anchored.interval else anchored.ratio
    allowed = f"{percent(anchor.allowed_slowdown)} allowed in all"
    if anchored.ratio is None or low is None:
        status = undecided
        said = f"not to be told from the anchor {anchor.revision}: {anchored.gap or 'nothing was measured'}"
    elif low > limit:
        status = RowStatus.BAD
        said = f"{ratio_in_words(anchored.ratio, anchored.interval)} than the anchor {anchor.revision} ({allowed})"
    elif anchored.ratio > limit:
        status = undecided
        said = f"perhaps {ratio_in_words(anchored.ratio)} than the anchor {anchor.revision} ({allowed})"
    else:
        return None
    return GateRow(
        status=status,
        kernel=suite.kernel,
        said=said,
        device_class=anchored.device_class,
        case=anchored.case,
        base=anchor.revision,
        ratio=anchored.ratio,
        interval=anchored.interval,
        allowed_slowdown=anchor.allowed_slowdown,
    )
