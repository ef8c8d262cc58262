"""One-sided bounds and p-values on the mean of the pairs' values.

Both guards must hold: Student's t on the spread that the pairs show, and the normal on the floor. If the true spread
is at most the floor the second keeps the error under alpha, else the first does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from scipy.special import ndtr, ndtri, stdtr, stdtrit

from verdict.alpha import (
    IDENTICAL_FLOOR_ALPHA,
    OUTGROWN_ALPHA,
    OUTGROWN_BY,
    POWER,
    STRETCH,
    STRETCHED_BY,
    identical_alpha,
)
from verdict.evidence import Evidence

# ln of about the largest float.
LARGEST = 700.0


@dataclass(frozen=True)
class Guard:
    """The one-sided errors of a bound: by the spread that the pairs show, and by the floor, `stretch` times over."""

    spread: float
    floor: float
    stretch: float = 1.0

    @classmethod
    def of(cls, alpha: float) -> Guard:
        return cls(spread=alpha, floor=alpha)

    def shared(self, divisor: int) -> Guard:
        return replace(self, spread=self.spread / divisor, floor=self.floor / divisor)


def half_width(evidence: Evidence, guard: Guard) -> float:
    """Distance from the mean to its one-sided bound, in ln(ratio)."""
    if evidence.sd is None or evidence.processes < 2:
        return math.inf
    by_spread = -float(stdtrit(evidence.processes - 1, guard.spread)) * evidence.sd
    by_floor = -float(ndtri(guard.floor)) * guard.stretch * evidence.floor
    return max(by_spread, by_floor) / math.sqrt(evidence.processes)


def needed_above(evidence: Evidence, limit: float, guard: Guard) -> float:
    """What multiple of the guard's errors puts the lower bound at `limit`; one minus the p-values tests below."""
    if evidence.sd is None or evidence.processes < 2:
        return 1.0 / guard.spread
    distance = (evidence.mean - limit) * math.sqrt(evidence.processes)
    by_floor = float(ndtr(-distance / (guard.stretch * evidence.floor))) / guard.floor
    if evidence.sd == 0.0:
        return by_floor
    by_spread = float(stdtr(evidence.processes - 1, -distance / evidence.sd)) / guard.spread
    # The two disagree on which is stricter on either side of the limit; above it the larger one counts.
    return max(by_spread, by_floor)


def _departures(evidence: Evidence, guard: Guard, margin: float) -> tuple[tuple[float, Guard], ...]:
    """Limits that the mean must be beyond, and with what error, to be `slower`: the margin, by `guard`; and 0, because
    where the margin is small beside the spread 5 % at the margin would still be too many alarms on identical code."""
    identical = Guard(spread=identical_alpha(evidence.processes), floor=IDENTICAL_FLOOR_ALPHA)
    stretched, outgrown = replace(identical, stretch=STRETCH), Guard.of(OUTGROWN_ALPHA)
    return (margin, guard), (0.0, identical), (-STRETCHED_BY * margin, stretched), (-OUTGROWN_BY * margin, outgrown)


def departure_half_width(evidence: Evidence, guard: Guard, *, divisor: int, margin: float) -> float:
    """The half width for `slower` and `faster`, of which the strictest limit has the say."""
    limits = _departures(evidence, guard, margin)
    return max(half_width(evidence, each.shared(divisor)) + limit for limit, each in limits) - margin


def departure_needs(evidence: Evidence, guard: Guard, *, margin: float) -> float:
    """What multiple of its errors it takes to call the evidence slower: 1 is enough for one case."""
    return max(needed_above(evidence, limit, each) for limit, each in _departures(evidence, guard, margin))


def smallest_detectable(evidence: Evidence, guard: Guard, *, divisor: int, margin: float) -> float | None:
    """The slowdown, as a fraction, that evidence of this spread calls `slower` with the power that alpha.py names."""
    width = departure_half_width(evidence, guard, divisor=divisor, margin=margin)
    if not math.isfinite(width):
        return None
    # t on both sides: the bound itself moves with the spread that the samples happen to show.
    by_chance = float(stdtrit(evidence.processes - 1, POWER)) * evidence.spread / math.sqrt(evidence.processes)
    reach = margin + width + by_chance
    return math.expm1(min(reach, LARGEST))
