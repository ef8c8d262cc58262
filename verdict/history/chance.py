"""How likely it is that chance alone puts the newest points where they are."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

# The power of rounding errors.
_NOTHING = 1e-20


def tail_of_hypergeometric(*, drawn: int, beyond: int, total: int, hits: int) -> float:
    """P(at least `hits` of the `drawn` are among the `beyond` of `total`): Fisher's exact test, one-sided. It assumes
    of the noise only that its order is by chance, so it holds for two levels, outliers and any skew."""
    most = min(drawn, beyond)
    if hits > most:
        return 0.0
    everything = _log_choose(total, drawn)
    return math.fsum(
        math.exp(_log_choose(beyond, x) + _log_choose(total - beyond, drawn - x) - everything)
        for x in range(max(hits, drawn - (total - beyond)), most + 1)
    )


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def worth_of_neighbours(values: npt.NDArray[np.float64]) -> float:
    """What share of its points a series is worth whose neighbours resemble each other: (1 - r) / (1 + r) with its
    first autocorrelation r, 1 where there is none or too little to tell."""
    if len(values) < 16:
        return 1.0
    # Without its slope: a slow growth is a change, and no likeness of neighbours.
    places = np.arange(len(values)) - (len(values) - 1) / 2
    away = values - values.mean()
    away = away - places * float(places @ away / (places @ places))
    power = float(away @ away)
    if power < _NOTHING:
        return 1.0
    # An estimate from n points falls short by about 1/n, and by 2/n more without the slope.
    r = min(max(float(away[:-1] @ away[1:]) / power + 3.0 / len(values), 0.0), 0.9)
    return (1.0 - r) / (1.0 + r)


TWO_SIDED_95 = -float(ndtri(0.025))
