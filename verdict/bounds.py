"""One-sided bounds and p-values on the mean of the pairs' values.

Both guards must hold: Student's t on the spread that the pairs show, and the normal on the floor. If the true spread
is at most the floor the second keeps the error under alpha, else the first does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import ndtr, ndtri, stdtr, stdtrit

from verdict.alpha import IDENTICAL_ALPHA, IDENTICAL_FLOOR_ALPHA, POWER
from verdict.evidence import Evidence

# ln of about the largest float.
LARGEST = 700.0


@dataclass(frozen=True)
class Guard:
    """The one-sided errors of a bound: by the spread that the pairs show, and by the floor."""

    spread: float
    floor: float

    @classmethod
    def of(cls, alpha: float) -> Guard:
        return cls(spread=alpha, floor=alpha)

    def shared(self, divisor: int) -> Guard:
        return Guard(spread=self.spread / divisor, floor=self.floor / divisor)


IDENTICAL = Guard(spread=IDENTICAL_ALPHA, floor=IDENTICAL_FLOOR_ALPHA)


def half_width(evidence: Evidence, guard: Guard) -> float:
    """Distance from the mean to its one-sided bound, in ln(ratio)."""
    if evidence.sd is None or evidence.processes < 2:
        return math.inf
    by_spread = -float(stdtrit(evidence.processes - 1, guard.spread)) * evidence.sd
    by_floor = -float(ndtri(guard.floor)) * evidence.floor
    return max(by_spread, by_floor) / math.sqrt(evidence.processes)


def needed_above(evidence: Evidence, limit: float, guard: Guard) -> float:
    """What multiple of the guard's errors puts the lower bound at `limit`; one minus the p-values tests below."""
    if evidence.sd is None or evidence.processes < 2:
        return 1.0 / guard.spread
    distance = (evidence.mean - limit) * math.sqrt(evidence.processes)
    by_floor = float(ndtr(-distance / evidence.floor)) / guard.floor
    if evidence.sd == 0.0:
        return by_floor
    by_spread = float(stdtr(evidence.processes - 1, -distance / evidence.sd)) / guard.spread
    # The two disagree on which is stricter on either side of the limit; above it the larger one counts.
    return max(by_spread, by_floor)


def departure_half_width(evidence: Evidence, guard: Guard, *, divisor: int, margin: float) -> float:
    """The half width for `slower` and `faster`: bounds beyond the margin by `guard`, and beyond 0 by `IDENTICAL`.

    The second matters where the margin is small beside the spread: there 5 % at the margin would still be too many
    alarms on identical code.
    """
    identical = half_width(evidence, IDENTICAL.shared(divisor))
    return max(half_width(evidence, guard.shared(divisor)), identical - margin)


def smallest_detectable(evidence: Evidence, guard: Guard, *, divisor: int, margin: float) -> float | None:
    """The slowdown, as a fraction, that evidence of this spread calls `slower` with the power that alpha.py names."""
    width = departure_half_width(evidence, guard, divisor=divisor, margin=margin)
    if not math.isfinite(width):
        return None
    # t on both sides: the bound itself moves with the spread that the samples happen to show.
    by_chance = float(stdtrit(evidence.processes - 1, POWER)) * evidence.spread / math.sqrt(evidence.processes)
    reach = margin + width + by_chance
    return math.expm1(min(reach, LARGEST))
