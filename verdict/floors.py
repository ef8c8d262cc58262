"""The least spread between process pairs that a verdict assumes: what a node has learnt of trusted code like it, or
else a default.

Standard deviations of ln(head/base) between pairs of fresh processes of identical code on an H200, record / launch:
0.16 % for 2 to 3 us, 0.06 % (GEMM) and 0.28 % (copy) around 10 us, 0.10 % at 100 us; long-lived processes at 2.3 ms
show 0.01 %, to which fresh ones add (docs/measurement.md, 'Timing'). A duration doesn't tell copies from compute, so
that short calls are given what lies between the two, and the shortest, whose spread few pairs have shown, more than
was seen; what the samples themselves show can always widen an interval.
"""

import math
from collections.abc import Sequence

from contract.spreads import Spread

_US: dict[str, float] = {"ns": 1e-3, "us": 1.0, "µs": 1.0, "ms": 1e3, "s": 1e6}
# (calls shorter than this many microseconds, floor). What is promised from 5 and from 40 us on is promised of kernels
# of about that, too.
_BY_DURATION_US: tuple[tuple[float, float], ...] = (
    (4.0, 0.0030),
    (36.0, 0.0020),
    (500.0, 0.0010),
    (float("inf"), 0.0005),
)
_WITHOUT_DURATION = 0.0010
# What else the rounds of a pair say while they are apart as they seldom are: copies of under 40 us are 0.28 % apart
# between pairs, and power-capped calls 0.18 %.
COPY, _COPY_UNREST, _COPY_BELOW_US = 0.0028, 0.0025, 40.0
CAPPED, _CAPPED_UNREST = 0.0018, 0.005
# Below the resolution of every clock in use; keeps identical samples from claiming certainty.
LEAST = 1e-5


def default_floor(unit: str, value: float, *, unrest: float = 0.0) -> float:
    """The floor for calls of `value` in `unit`; a unit that isn't a time gets one for middling calls. `unrest`: the
    standard deviation of a pair's rounds, where that many are known."""
    scale = _US.get(unit)
    floor = _WITHOUT_DURATION
    if scale is not None:
        floor = next(floor for limit, floor in _BY_DURATION_US if value * scale < limit or limit == float("inf"))
        if value * scale < _COPY_BELOW_US and unrest > _COPY_UNREST:
            floor = max(floor, COPY)
    return max(floor, CAPPED) if unrest > _CAPPED_UNREST else floor


# Calls are alike whose times, and whose bytes, differ by less than these factors.
_TIMES_ALIKE, _BYTES_ALIKE = 3.0, 8.0
_LEAST_FREEDOM = 7


def learnt_floor(spreads: Sequence[Spread], *, time_us: float, bytes_a_call: float, capped: bool) -> float | None:
    """The spread of trusted code like this on the same node, its measurements pooled by their degrees of freedom; None
    while there are fewer than of 8 pairs."""
    alike = [
        each
        for each in spreads
        if each.capped == capped
        and _within(each.time_us, time_us, _TIMES_ALIKE)
        and _within(each.bytes_a_call, bytes_a_call, _BYTES_ALIKE)
    ]
    freedom = sum(each.pairs - 1 for each in alike)
    if freedom < _LEAST_FREEDOM:
        return None
    return max(math.sqrt(sum((each.pairs - 1) * each.sd**2 for each in alike) / freedom), LEAST)


def _within(one: float, other: float, factor: float) -> bool:
    return one < other * factor and other < one * factor
