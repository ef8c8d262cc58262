"""How much error a verdict may make, and how it is spread over the looks."""

import math

# Processes a side after which the evidence is looked at.
LOOKS = (4, 8, 16)

# At a true slowdown of exactly the allowed one, `slower` in at most 5 % of evaluations. One final look spends 4 %, so
# that what the normal model misses (heavier tails, rounding) still fits under the 5 %.
FINAL_ALPHA = 0.04
# What each look may spend on `slower` and `faster`. With the last look's share once more for all repeats (see alpha_of)
# this sums to 5 %; as the looks share data, the true sum is under 4 % (tests/verdict/test_error_rates.py). The first
# look hardly ever says `slower` (levels.py), so the second, whose power is promised, has nearly all.
LOOK_ALPHA = (0.001, 0.035, 0.007)
# What each look may spend on `same` where the true difference is the allowed one: the first gets what a plain answer
# needs.
SAME_ALPHA = (0.004, 0.025, 0.0105)
# Identical code: one false alarm in 10,000 at 8 processes a side, in a million from 16 on, however small the allowed
# slowdown is beside the spread; in a million, too, where the floor is right.
IDENTICAL_ALPHA = (1e-4, 1e-6)
IDENTICAL_FLOOR_ALPHA = 1e-6
# In a million at 8 processes, too, where they are up to STRETCH times as far apart as the floor, and where the spread
# outgrows the allowed slowdown: there no power is promised. Each is asked of the mean and so many allowed slowdowns
# more, and so costs nothing while the spread is small beside them.
STRETCH, STRETCHED_BY = 1.7, 0.5
OUTGROWN_ALPHA, OUTGROWN_BY = 1e-6, 2.0
# The power that "smallest detectable" stands for.
POWER = 0.95


def identical_alpha(processes: int) -> float:
    """By the spread that the pairs show: what a look at `processes` a side may err on identical code."""
    return IDENTICAL_ALPHA[processes >= LOOKS[-1]]


def alpha_of(look: int | None, processes: int, *, shares: tuple[float, float, float] = LOOK_ALPHA) -> float:
    """One-sided error of a look (1, 2 or 3) at `processes` a side; without a look the evidence is final.

    Evidence pooled over repeats grows past the last look: each further 16 processes spend half of what the ones before
    did, so that measuring again until lucky stays within the 5 %.
    """
    if look is None:
        return FINAL_ALPHA
    repeats = max(math.ceil(processes / LOOKS[-1]) - 1, 0)
    return shares[look - 1] / 2.0**repeats
