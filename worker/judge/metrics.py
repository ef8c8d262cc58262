"""From what the processes showed to metrics with intervals: one value a process, Student's t over their logarithms."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Literal

from contract.report import Metric

# Two-sided 95 % points of Student's t, by degrees of freedom; beyond the table the normal distribution's serves.
_T975 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)


def of_processes(
    name: str, unit: str, values: Sequence[float], *, better: Literal["lower", "higher"] | None = None
) -> Metric:
    """The geometric mean of positive values, with its 95 % interval from two processes on."""
    logarithms = [math.log(value) for value in values]
    centre = statistics.fmean(logarithms)
    metric = Metric(name=name, unit=unit, value=math.exp(centre), better=better, samples=tuple(values))
    freedom = len(values) - 1
    if not freedom:
        return metric
    t = _T975[freedom - 1] if freedom <= len(_T975) else 1.96
    half = t * statistics.stdev(logarithms) / math.sqrt(len(values))
    return metric.model_copy(update={"low": math.exp(centre - half), "high": math.exp(centre + half)})


def inverted(
    metric: Metric, name: str, unit: str, factor: float, *, better: Literal["lower", "higher"] | None = "higher"
) -> Metric:
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


def plain(name: str, unit: str, value: float, *, better: Literal["lower", "higher"] | None = None) -> Metric:
    return Metric(name=name, unit=unit, value=value, better=better)
