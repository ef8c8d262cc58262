"""From what the processes showed to metrics with intervals: one value a process, and the median over them.

Intervals are made of order statistics (the sign test turned round): they assume nothing of how times are distributed,
and one burst that the machine disturbed moves neither the value nor, from 8 processes on, much of the interval.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Literal

from contract.report import Metric

_CONFIDENCE = 0.95
Better = Literal["lower", "higher"] | None


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """The narrowest pair of order statistics that holds the median with 95 %; fewer than 6 values give their range."""
    ordered = sorted(values)
    count = len(ordered)
    rank, outside = 0, 2 * 0.5**count
    while rank < (count - 1) // 2:
        outside += 2 * math.comb(count, rank + 1) * 0.5**count
        if 1 - outside < _CONFIDENCE:
            break
        rank += 1
    return ordered[rank], ordered[count - 1 - rank]


def of_processes(name: str, unit: str, values: Sequence[float], *, better: Better = None) -> Metric:
    """`values`: one a process."""
    low, high = median_interval(values) if len(values) > 1 else (None, None)
    return Metric(
        name=name,
        unit=unit,
        value=statistics.median(values),
        low=low,
        high=high,
        better=better,
        samples=tuple(values),
    )


def inverted(metric: Metric, name: str, unit: str, factor: float, *, better: Better = "higher") -> Metric:
    """factor / metric: a rate from a time."""
    return Metric(
        name=name,
        unit=unit,
        value=factor / metric.value,
        low=None if metric.high is None else factor / metric.high,
        high=None if metric.low is None else factor / metric.low,
        better=better,
        samples=tuple(factor / sample for sample in metric.samples),
    )


def plain(name: str, unit: str, value: float, *, better: Better = None) -> Metric:
    return Metric(name=name, unit=unit, value=value, better=better)
