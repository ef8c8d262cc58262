"""One stretch of points that may be compared with each other, and the search for a step in it.

Two stages. A CUSUM of standardised, clipped deviations from the level (Page 1954; clipped so that one outlier can't
raise it over the limit) says when to look, at the price of one addition a point. Whether what it points at is a step
is then decided by four conditions on the points before and after the best split, all of which must hold:

- at least `FEWEST_AFTER` points at the new level;
- the medians differ by the least change that matters;
- Fisher's exact test: how many of either side lie beyond the middle of the two medians. It needs no model of the
  noise: where the points before visited the other level too, as with a benchmark of two levels, it takes a run that
  chance would not bring;
- the means differ by `LEAST_Z` standard errors, with neighbours' likeness taken into account.

Constants are tuned by tests/verdict/history/test_false_steps.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean

import numpy as np
import numpy.typing as npt

from verdict.history.chance import TWO_SIDED_95, tail_of_hypergeometric, worth_of_neighbours

Values = npt.NDArray[np.float64]

FEWEST_AFTER = 3
FEWEST_BEFORE = 4
LEAST_Z = 5.0
ALPHA = 3e-5
# Points kept of a stretch: half of them may belong to a step that is under way.
WINDOW = 96
# Clipped at 5, a point moves the sum by at most 4.5: three points in a row at least, never one or two.
CLIP, SLACK, LIMIT = 5.0, 0.5, 10.0
# Spread (sd of ln) below which nobody measures.
LEAST_SPREAD = 5e-4
# A value this many spreads away from the level is an outlier where the next ones return.
FAR = 8.0
# The share of points that can be outliers.
MOST_FAR = 0.1
MAD_TO_SD = 1.4826
# The place of a step of d spreads is off by more than 20 / d^2 points once in a hundred times (after Yao 1987;
# tests/verdict/history/test_false_steps.py).
_PLACE_OFF = 20.0
_MOST_OFF = 12
# Levels that were left and come back this often, after stays of at most WINDOW points, are two levels of one benchmark,
# not steps.
MOST_RETURNS = 2
# How near levels must be to be the same: a share of their distance.
_NEAR = 0.25


@dataclass(slots=True)
class Sample:
    """`y`: ln of the cost. `after`: the key measured before it; `unmeasured`: the keys between."""

    y: float
    key: str
    after: str
    unmeasured: list[str]


@dataclass(frozen=True)
class Split:
    """A step before sample `place`, give or take `off` samples: levels (ln of the cost) and the standard error of
    their difference."""

    place: int
    off: int
    before: float
    after: float
    error: float


@dataclass(frozen=True)
class Finding:
    """What one more point showed. `outliers`: samples far from a level that this one returned to, `distance` (ln) away
    on average."""

    split: Split | None = None
    outliers: tuple[Sample, ...] = ()
    distance: float = 0.0


@dataclass(slots=True)
class Sum:
    """A CUSUM on one side of the level: the sum, and for how many points it has been above zero. `look_at`: the run at
    which it is worth another look."""

    total: float = 0.0
    run: int = 0
    look_at: int = FEWEST_AFTER

    def add(self, z: float) -> None:
        self.total += z - SLACK
        if self.total > 0.0:
            self.run += 1
        else:
            self.total, self.run, self.look_at = 0.0, 0, FEWEST_AFTER


@dataclass
class Stream:
    """`stale`: samples since level and spread were last taken. `far`: how many of the newest samples are far from the
    level. `count`: samples so far. `steps`: (before, after, count) of the last ones."""

    samples: list[Sample] = field(default_factory=list)
    level: float = 0.0
    spread: float = 0.0
    stale: int = 0
    up: Sum = field(default_factory=Sum)
    down: Sum = field(default_factory=Sum)
    far: int = 0
    count: int = 0
    steps: list[tuple[float, float, int]] = field(default_factory=list)

    def add(self, sample: Sample, *, least: float, floor: float) -> Finding:
        """Take the next point. `least`: ln of the least change that matters; `floor`: the least spread assumed."""
        known = len(self.samples) >= FEWEST_BEFORE
        self.samples.append(sample)
        self.count += 1
        self.stale += 1
        split: Split | None = None
        outliers: tuple[Sample, ...] = ()
        distance = 0.0
        if known:
            spread = max(self.spread, floor)
            outliers, distance = self._returned(sample.y, max(FAR * spread, least))
            z = (sample.y - self.level) / spread
            z = CLIP if z > CLIP else max(z, -CLIP)
            self.up.add(z)
            self.down.add(-z)
            for sign, cusum in ((1, self.up), (-1, self.down)):
                due = cusum.run >= cusum.look_at or cusum.run > WINDOW // 2
                if cusum.total > LIMIT and due and split is None:
                    # Each look that finds nothing makes the next one wait for a fifth more points, or for the last
                    # one before the run is taken for the level.
                    cusum.look_at = max(cusum.run + 1, cusum.run * 6 // 5)
                    split = self._look(sign, least=least, floor=floor)
        if split is None:
            self._keep_level()
        return Finding(split, outliers, distance)

    def restart(self, split: Split) -> None:
        """The step is real: what came before it was another level."""
        self.steps = [*self.steps[-7:], (split.before, split.after, self.count)]
        del self.samples[: split.place]
        self.absorb()

    def absorb(self) -> None:
        """All samples are of one level (or of two that belong together)."""
        self.up, self.down, self.far = Sum(), Sum(), 0
        self._take_level(len(self.samples))

    def returns(self, split: Split) -> int:
        """How many of the last steps went between the two levels of this one."""
        near = _NEAR * abs(split.after - split.before)
        ends = ((split.before, split.after), (split.after, split.before))
        # A level that lasted for long was one.
        stays = [later[2] - earlier[2] for earlier, later in pairwise(self.steps)]
        return sum(
            stay <= WINDOW and any(abs(before - one) < near and abs(after - other) < near for one, other in ends)
            for (before, after, _), stay in zip(self.steps, [*stays, 0], strict=False)
        )

    def _returned(self, y: float, limit: float) -> tuple[tuple[Sample, ...], float]:
        """The samples before this one that were far away, if this one isn't, and their mean distance."""
        if abs(y - self.level) > limit:
            self.far += 1
            return (), 0.0
        away = tuple(self.samples[-1 - self.far : -1]) if self.far < FEWEST_AFTER else ()
        self.far = 0
        return away, fmean(each.y for each in away) - self.level if away else 0.0

    def _keep_level(self) -> None:
        if max(self.up.run, self.down.run) > WINDOW // 2:
            # As much as is kept has drifted and is no step: it is the level now.
            self.absorb()
        count = len(self.samples)
        if count > WINDOW + WINDOW // 4:
            del self.samples[: count - WINDOW]
            count = WINDOW
        # Often at first, then seldom; without the run that is under way, which may be a step.
        if count <= 2 * FEWEST_BEFORE or self.stale >= min(count // 4, 24):
            runs = [each.run for each in (self.up, self.down) if each.total > CLIP]
            self._take_level(count - max(runs, default=0))

    def _take_level(self, count: int) -> None:
        if count >= FEWEST_BEFORE:
            ys = np.array([each.y for each in self.samples[:count]])
            self.level = _median(ys)
            away = np.abs(ys - self.level)
            # Of few points the median deviation falls short.
            self.spread = MAD_TO_SD * _median(away) * (1.0 + 4.0 / count)
            if int((away > FAR * max(self.spread, LEAST_SPREAD)).sum()) > MOST_FAR * count:
                # Not one level with outliers but two: the middle of them, and a spread that holds both.
                self.level, self.spread = float(ys.mean()), float(ys.std())
            self.stale = 0

    def _look(self, sign: int, *, least: float, floor: float) -> Split | None:
        """At everything that is kept: the run may have begun long before the step, or after points of it became part
        of the level."""
        ys = np.array([each.y for each in self.samples]) * sign
        place = _best_split(ys)
        if place is None:
            return None
        before, after = ys[max(place - WINDOW // 2, 0) : place], ys[place:]
        low, high = _median(before), _median(after)
        if high - low < least:
            return None
        middle = (low + high) / 2
        beyond = int((before > middle).sum()), int((after > middle).sum())
        worth = worth_of_neighbours(before)
        if _by_chance(beyond[0], len(before), beyond[1], len(after), worth) > ALPHA:
            return None
        before, after = _pulled_in(before, low), _pulled_in(after, high)
        spread = _spread(before - low, after - high, floor)
        error = spread * math.sqrt(1 / len(before) + 1 / len(after)) / math.sqrt(worth)
        if float(after.mean() - before.mean()) < LEAST_Z * error:
            return None
        off = min(int(_PLACE_OFF * (spread / (high - low)) ** 2), _MOST_OFF)
        return Split(place=place, off=off, before=sign * low, after=sign * high, error=error)


def _best_split(ys: Values) -> int | None:
    """Where the means before and after differ most beside their error: the likeliest place of one step."""
    count = len(ys)
    if count < FEWEST_BEFORE + FEWEST_AFTER:
        return None
    sums = np.cumsum(ys)
    places = np.arange(FEWEST_BEFORE, count - FEWEST_AFTER + 1)
    before, rest = sums[places - 1], count - places
    differences = ((sums[-1] - before) / rest - before / places) * np.sqrt(places * rest)
    return FEWEST_BEFORE + int(np.argmax(differences))


def _median(values: Values) -> float:
    return float(np.median(values))


def _by_chance(before_beyond: int, before: int, after_beyond: int, after: int, worth: float) -> float:
    n, r = math.ceil(before * worth), math.floor(after * worth)
    k, m = math.ceil(before_beyond * worth), math.floor(after_beyond * worth)
    return tail_of_hypergeometric(drawn=r, beyond=k + m, total=n + r, hits=m) if r >= 1 else 1.0


def _pulled_in(values: Values, level: float) -> Values:
    """Outliers moved to four spreads."""
    reach = 4 * MAD_TO_SD * _median(np.abs(values - level))
    return np.clip(values, level - reach, level + reach) if reach > 0.0 else values


def _spread(before: Values, after: Values, floor: float) -> float:
    """Of the points of both sides; `before`, `after`: distances from each side's level."""
    squares = float(before @ before + after @ after)
    return max(math.sqrt(squares / (len(before) + len(after) - 2)), floor)


def interval_of(split: Split) -> tuple[float, float]:
    reach = TWO_SIDED_95 * split.error
    return split.after - split.before - reach, split.after - split.before + reach
