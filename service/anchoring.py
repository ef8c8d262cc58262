"""How a revision stands against its policy's anchor: the product of the comparisons on the way there."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import sqlalchemy as sa
from sqlmodel import Session, col, select

from contract.devices import DeviceClass
from contract.gate import Anchored
from contract.outcomes import Outcome, State
from contract.suite import Suite
from service.models import Comparison, Evaluation, Revision

_MEASURED = (Outcome.PASSED, Outcome.SLOWER, Outcome.INCONCLUSIVE)
# Further back nobody remembers why; a comparison with the anchor itself is better evidence anyway.
_LONGEST_CHAIN = 200


@dataclass
class _Sum:
    """Of ln(ratio) over the steps, with the squares of their intervals' half widths: steps share no process."""

    log: float = 0.0
    squares: float = 0.0
    gap: str | None = None

    def add(self, step: str, ratio: float | None, low: float | None, high: float | None) -> None:
        if ratio is None or ratio <= 0.0:
            self.gap = self.gap or f"{step} was not compared"
            return
        self.log += math.log(ratio)
        if low is not None and high is not None and low > 0.0:
            self.squares += (math.log(high / low) / 2) ** 2


def anchored(
    session: Session, *, suite: Suite, head: Revision, device_classes: Iterable[DeviceClass]
) -> tuple[Anchored, ...]:
    """One a class and case of the suite; empty without an anchor in the policy, and for the anchor itself."""
    anchor = suite.policy.anchor
    if anchor is None or head.label == anchor.revision:
        return ()
    return tuple(
        each
        for device_class in dict.fromkeys(device_classes)
        for each in _on_class(session, suite, anchor.revision, head=head, device_class=device_class)
    )


def _on_class(
    session: Session, suite: Suite, anchor: str, *, head: Revision, device_class: DeviceClass
) -> list[Anchored]:
    sums = {case.id: _Sum() for case in suite.cases}
    current, seen = head, {head.id}
    while current.label != anchor:
        evaluation = _newest_comparison(session, current, device_class)
        base = session.get(Revision, evaluation.base_id) if evaluation and evaluation.base_id else None
        if evaluation is None or base is None or base.id in seen or len(seen) > _LONGEST_CHAIN:
            gap = f"the comparisons lead back to {current.label} and no further"
            return [Anchored(device_class=device_class, case=case, gap=gap) for case in sums]
        rows = session.execute(
            sa.select(col(Comparison.case), col(Comparison.ratio), col(Comparison.low), col(Comparison.high)).where(
                col(Comparison.evaluation_id) == evaluation.id
            )
        )
        found = {row.case: row for row in rows}
        for case, total in sums.items():
            row = found.get(case)
            step = f"{current.label} with {base.label}"
            total.add(step, row.ratio if row else None, row.low if row else None, row.high if row else None)
        current = base
        seen.add(current.id)
    return [_anchored(device_class, case, total) for case, total in sums.items()]


def _anchored(device_class: DeviceClass, case: str, total: _Sum) -> Anchored:
    if total.gap is not None:
        return Anchored(device_class=device_class, case=case, gap=total.gap)
    reach = math.sqrt(total.squares)
    return Anchored(
        device_class=device_class,
        case=case,
        ratio=math.exp(total.log),
        interval=(math.exp(total.log - reach), math.exp(total.log + reach)),
    )


def _newest_comparison(session: Session, revision: Revision, device_class: DeviceClass) -> Evaluation | None:
    return session.exec(
        select(Evaluation)
        .where(
            Evaluation.revision_id == revision.id,
            Evaluation.device_class == device_class,
            Evaluation.state == State.FINISHED,
            col(Evaluation.outcome).in_(_MEASURED),
            col(Evaluation.base_id).is_not(None),
            Evaluation.base_id != revision.id,
        )
        .order_by(col(Evaluation.id).desc())
        .limit(1)
    ).first()
