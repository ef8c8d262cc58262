"""One-sided bounds and p-values on the mean of the pairs' values.

Both guards must hold: Student's t on the spread that the pairs show, and the normal on the floor. If the true spread
is at most the floor the second keeps the error under alpha, else the first does.
"""

from __future__ import annotations

import math

from scipy.special import ndtr, ndtri, stdtr, stdtrit

from verdict.alpha import IDENTICAL_ALPHA, POWER
from verdict.evidence import Evidence

# ln of about the largest float.
LARGEST = 700.0


def half_width(evidence: Evidence, alpha: float) -> float:
    """Distance from the mean to its one-sided bound at `alpha`, in ln(ratio)."""
    if evidence.sd is None or evidence.processes < 2:
        return math.inf
    by_spread = -float(stdtrit(evidence.processes - 1, alpha)) * evidence.sd
    by_floor = -float(ndtri(alpha)) * evidence.floor
    return max(by_spread, by_floor) / math.sqrt(evidence.processes)


def p_above(evidence: Evidence, limit: float) -> float:
    """The smallest alpha whose lower bound is above `limit`; one minus it tests below."""
    if evidence.sd is None or evidence.processes < 2:
        return 1.0
    distance = (evidence.mean - limit) * math.sqrt(evidence.processes)
    by_floor = float(ndtr(-distance / evidence.floor))
    if evidence.sd == 0.0:
        return by_floor
    by_spread = float(stdtr(evidence.processes - 1, -distance / evidence.sd))
    # The two disagree on which is stricter on either side of the limit; above it the larger one counts.
    return max(by_spread, by_floor)


def departure_half_width(evidence: Evidence, *, alpha: float, identical_alpha: float, margin: float) -> float:
    """The half width for `slower` and `faster`: bounds beyond the margin at `alpha`, and beyond 0 at `identical_alpha`.

    The second matters where the margin is small beside the spread: there 5 % at the margin would still be too many
    alarms on identical code.
    """
    return max(half_width(evidence, alpha), half_width(evidence, identical_alpha) - margin)


def smallest_detectable(evidence: Evidence, *, alpha: float, divisor: int, margin: float) -> float | None:
    """The slowdown, as a fraction, that evidence of this spread calls `slower` with the power that alpha.py names."""
    width = departure_half_width(
        evidence, alpha=alpha / divisor, identical_alpha=IDENTICAL_ALPHA / divisor, margin=margin
    )
    if not math.isfinite(width):
        return None
    # t on both sides: the bound itself moves with the spread that the samples happen to show.
    by_chance = float(stdtrit(evidence.processes - 1, POWER)) * evidence.spread / math.sqrt(evidence.processes)
    reach = margin + width + by_chance
    return math.expm1(min(reach, LARGEST))
