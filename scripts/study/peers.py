"""What others decide with, on the same samples. Each rule says whether head is slower than base, as published:

- github-action-benchmark: one value a run; alert where current / previous is over a threshold (200 % as shipped).
- LNT: the least sample of either run; nothing under 1 % or 0.01 units; then a U test at 5 %, then 2.576 standard
  deviations of the current samples.
- rustc-perf: one value a commit; significant where the change is over the third quartile plus three interquartile
  ranges of the changes between earlier commits.
- benchstat: a U test over the samples at 5 %.
- Otava: the split of a series of one value a commit with the largest energy distance; a change point where Student's t
  between its sides has p < 0.001.
- nvbench_compare: the difference of the means is over the smaller of the two relative standard deviations.
- Welch's t test over the samples at 5 %.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

import numpy as np
from scipy import stats

from contract.samples import Round

HISTORY = 30
AFTER = 10


@dataclass(frozen=True)
class Given:
    """What a rule may look at. `runs`: all samples of each pair of processes of the evaluation; `before`, `after`: one
    value a commit, of base and of head, each from a process of its own."""

    runs: Sequence[Round]
    before: Sequence[float]
    after: Sequence[float]

    @property
    def first(self) -> Round:
        return self.runs[0]

    @property
    def pooled(self) -> Round:
        return Round.model_construct(
            base=tuple(value for run in self.runs for value in run.base),
            head=tuple(value for run in self.runs for value in run.head),
        )


Rule = Callable[[Given], bool]


def ratio_over(threshold: float) -> Rule:
    return lambda given: fmean(given.first.head) / fmean(given.first.base) > threshold


def lnt(run: Round) -> bool:
    current = min(run.head)
    nearest = min(run.base, key=lambda value: abs(current - value))
    change = current - nearest
    if change / nearest < 0.01 or change < 0.01:
        return False
    if stats.mannwhitneyu(run.head, run.base, method="asymptotic").pvalue >= 0.05:
        return False
    return change > 2.576 * stdev(run.head)


def u_test(run: Round) -> bool:
    found = stats.mannwhitneyu(run.head, run.base, method="asymptotic")
    return bool(found.pvalue < 0.05) and bool(np.median(run.head) > np.median(run.base))


def welch(run: Round) -> bool:
    found = stats.ttest_ind(run.head, run.base, equal_var=False)
    return bool(found.pvalue < 0.05 and found.statistic > 0)


def nvbench(run: Round) -> bool:
    base, head = fmean(run.base), fmean(run.head)
    return (head - base) / base > min(stdev(run.base) / base, stdev(run.head) / head)


def rustc(given: Given) -> bool:
    values = np.asarray(given.before)
    changes = np.abs(np.diff(values) / values[:-1])
    first, third = np.percentile(changes, (25, 75))
    return bool(given.after[0] / given.before[-1] - 1.0 > third + 3.0 * (third - first))


def otava(given: Given) -> bool:
    series = np.asarray((*given.before, *given.after))
    split = _energy_split(series)
    before, after = series[:split], series[split:]
    found = stats.ttest_ind_from_stats(
        after.mean(), after.std(), len(after), before.mean(), before.std(), len(before), equal_var=True
    )
    return bool(found.pvalue < 0.001 and found.statistic > 0)


def _energy_split(series: np.ndarray[Any, Any]) -> int:
    """The place that maximises mn / (m + n) times the energy distance between what lies before and after it."""
    apart = np.abs(series[:, None] - series[None, :])
    best, place = -np.inf, 1
    for split in range(1, len(series)):
        m, n = split, len(series) - split
        between = apart[:split, split:].mean()
        within = _mean_of_pairs(apart[:split, :split]) + _mean_of_pairs(apart[split:, split:])
        distance = m * n / (m + n) * (2.0 * between - within)
        if distance > best:
            best, place = distance, split
    return place


def _mean_of_pairs(apart: np.ndarray[Any, Any]) -> float:
    count = len(apart)
    return float(apart.sum() / (count * (count - 1))) if count > 1 else 0.0


RULES: Mapping[str, Rule] = {
    "github-action-benchmark, 200 % as shipped": ratio_over(2.0),
    "github-action-benchmark, threshold 100.5 %": ratio_over(1.005),
    "LNT, one process a side": lambda given: lnt(given.first),
    "LNT, eight processes pooled": lambda given: lnt(given.pooled),
    "rustc-perf": rustc,
    "benchstat, one process a side": lambda given: u_test(given.first),
    "benchstat, eight processes pooled": lambda given: u_test(given.pooled),
    "Otava": otava,
    "nvbench_compare, one process a side": lambda given: nvbench(given.first),
    "nvbench_compare, eight processes pooled": lambda given: nvbench(given.pooled),
    "Welch, one process a side": lambda given: welch(given.first),
    "Welch, eight processes pooled": lambda given: welch(given.pooled),
}


def given(
    rng: np.random.Generator, runs: Sequence[Round], levels: np.ndarray[Any, Any], *, ratio: float, processes: int = 8
) -> Given:
    """An evaluation for the rules: drawn as ours are (scripts/study/ours.py)."""
    drawn = []
    for place in rng.integers(len(runs), size=processes).tolist():
        run = runs[place]
        base, head = (run.base, run.head) if rng.random() < 0.5 else (run.head, run.base)
        drawn.append(Round.model_construct(base=base, head=tuple(value * ratio for value in head)))
    return Given(
        runs=drawn,
        before=rng.choice(levels, HISTORY).tolist(),
        after=(rng.choice(levels, AFTER) * ratio).tolist(),
    )
