"""How much error a verdict may make, and how it is spread over the looks."""

# Processes a side after which the evidence is looked at.
LOOKS = (4, 8, 16)

# At a true slowdown of exactly the allowed one, `slower` in at most 5 % of evaluations. One final look spends 4 %, so
# that what the normal model misses (heavier tails, rounding) still fits under the 5 %.
FINAL_ALPHA = 0.04
# By the union bound the three looks together spend 4.9 %; as they share data, and the first hardly ever says `slower`
# (levels.py), the true sum is under 4 % (tests/verdict/test_error_rates.py). The second look gets the most, as its
# power is promised; the first gets what a plain `same` needs.
LOOK_ALPHA = (0.004, 0.025, 0.02)
# Identical code: one false alarm in 10,000 at each look, however small the allowed slowdown is beside the spread.
IDENTICAL_ALPHA = 1e-4
# The power that "smallest detectable" stands for.
POWER = 0.95


def alpha_of(look: int | None) -> float:
    """One-sided error of a look (1, 2 or 3); without a look the evidence is final."""
    return FINAL_ALPHA if look is None else LOOK_ALPHA[look - 1]
