"""How sure a share is: exact binomial limits (Clopper and Pearson)."""

from __future__ import annotations

from scipy.stats import binomtest


def upper(hits: int, of: int) -> float:
    """The one-sided upper limit at 95 %: 0 in 3,000 is under 1 in 1000."""
    return float(binomtest(hits, of, alternative="less").proportion_ci(0.95).high)


def lower(hits: int, of: int) -> float:
    return float(binomtest(hits, of, alternative="greater").proportion_ci(0.95).low)
