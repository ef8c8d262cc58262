"""From samples to evidence: one value a pair of processes, and how many processes stand behind them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import count
from statistics import median_low

import numpy as np
import numpy.typing as npt

from contract.samples import Comparison, Pair, Round
from verdict.floors import LEAST, default_floor

Values = npt.NDArray[np.float64]

# Of samples from elsewhere: two revisions of one kernel differ by less; a factor of a thousand is a changed unit.
_SUSPICIOUS_RATIO = 500.0
_ROUNDS_THAT_TELL = 3


class UnusableError(ValueError):
    """Samples that say nothing; the message says why."""


@dataclass(frozen=True)
class Evidence:
    """`values`: ln(time_head / time_base), one a pair of processes. `processes`: distinct ones a side.

    `mean` and `sd` are of the values (sd None with one value), `floor` is the least sd assumed.
    """

    values: Values
    processes: int
    mean: float
    sd: float | None
    floor: float

    @property
    def spread(self) -> float:
        return max(self.sd or 0.0, self.floor)


def gather(comparison: Comparison, *, one_clock: bool = False) -> Evidence:
    """The evidence of a comparison; raises UnusableError where a sample is missing or is no positive number, or, unless
    one clock timed both sides, where their units seem to differ."""
    if not comparison.pairs:
        raise UnusableError("there are no pairs of processes")
    rounds = [_round_values(pair, place) for place, pair in enumerate(comparison.pairs, start=1)]
    # The median over a pair's rounds: a round is balanced, so drift cancels inside it.
    values = np.array([float(np.median(each)) for each in rounds])
    if comparison.better == "higher":
        values = -values
    furthest = float(values[np.argmax(np.abs(values))])
    if not one_clock and abs(furthest) > math.log(_SUSPICIOUS_RATIO):
        raise UnusableError(f"a ratio of {math.exp(min(furthest, 700.0)):.3g} looks like a changed unit")
    floor = comparison.spread_floor
    if floor is None or not math.isfinite(floor):
        typical = median_low(sample for pair in comparison.pairs for sample in pair.rounds[0].base)
        floor = default_floor(comparison.unit, typical, unrest=_unrest(rounds))
    return _pooled(values, comparison.pairs, max(floor, LEAST))


def _unrest(rounds: list[Values]) -> float:
    """What rounds of one pair are apart: the standard deviation inside the pairs, in the median of those that tell."""
    inside = [float(each.std(ddof=1)) for each in rounds if len(each) >= _ROUNDS_THAT_TELL]
    return float(np.median(inside)) if inside else 0.0


def _round_values(pair: Pair, place: int) -> Values:
    """ln(head/base) of each round."""
    if not pair.rounds:
        raise UnusableError(f"pair {place} has no rounds")
    base = _round_levels(pair.rounds, "base", place)
    head = _round_levels(pair.rounds, "head", place)
    return head - base


def _round_levels(rounds: tuple[Round, ...], side: str, place: int) -> Values:
    """ln of each round's level on one side: the interquartile mean of its samples' logarithms, which with two or three
    samples is their mean."""
    rows: list[tuple[float, ...]] = [getattr(each, side) for each in rounds]
    lengths = {len(row) for row in rows}
    if 0 in lengths:
        raise UnusableError(f"pair {place}, round {[len(row) for row in rows].index(0) + 1}: no samples of the {side}")
    levels = np.empty(len(rows))
    for length in lengths:
        chosen = [index for index, row in enumerate(rows) if len(row) == length]
        samples = np.sort(np.array([rows[index] for index in chosen], dtype=np.float64), axis=1)
        good = np.isfinite(samples) & (samples > 0)
        if not good.all():
            row = int(np.argmin(good.all(axis=1)))
            wrong = samples[row][~good[row]][0]
            raise UnusableError(f"pair {place}, round {chosen[row] + 1}: a sample of the {side} is {wrong:g}")
        trimmed = length // 4
        levels[chosen] = np.log(samples[:, trimmed : length - trimmed]).mean(axis=1)
    return levels


def _pooled(values: Values, pairs: tuple[Pair, ...], floor: float) -> Evidence:
    """Count distinct processes, not pairs: what a process brings along is in every pair that it is part of.

    Pairs of the same two processes are first averaged. With shares c of each process in the k remaining values, the
    variance of their mean is (sum c_base^2 + sum c_head^2) / 2 of one pair's, so that 2 over that sum is the number
    of processes a side that it is worth; and as their values are correlated by r on average, their sample variance
    falls short by 1 - r. A process that serves as base here and as head there counts once (half a process a side).
    """
    identities = _identities(pairs)
    by_pair: dict[tuple[str, str], list[float]] = {}
    for identity, value in zip(identities, values.tolist(), strict=True):
        by_pair.setdefault(identity, []).append(value)
    merged = np.array([float(np.mean(group)) for group in by_pair.values()])
    k = len(merged)
    squares = sum(
        sum((side.count(process) / k) ** 2 for process in set(side))
        for side in (tuple(base for base, _ in by_pair), tuple(head for _, head in by_pair))
    )
    worth = min(2.0 / squares, len({process for pair in by_pair for process in pair}) / 2)
    sd: float | None = None
    if k > 1:
        correlation = (k / worth - 1.0) / (k - 1.0)
        variance = float(np.var(merged, ddof=1)) / max(1.0 - correlation, 1.0 / k)
        sd = math.sqrt(variance)
    # 2 / (1/n + ... ) lands a rounding error below a whole number.
    return Evidence(values=merged, processes=math.floor(worth + 1e-9), mean=float(merged.mean()), sd=sd, floor=floor)


def _identities(pairs: tuple[Pair, ...]) -> list[tuple[str, str]]:
    """(base, head) process of each pair. A process without an id is a fresh one."""
    fresh = count()
    # One process can't be both sides of a pair: where ids repeat like that they count each side on its own.
    own_names = any(pair.base_process is not None and pair.base_process == pair.head_process for pair in pairs)
    base_prefix, head_prefix = ("base ", "head ") if own_names else ("", "")

    def name(process: str | None, prefix: str) -> str:
        return f"fresh {next(fresh)}" if process is None else f"id {prefix}{process}"

    return [(name(pair.base_process, base_prefix), name(pair.head_process, head_prefix)) for pair in pairs]
