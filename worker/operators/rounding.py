"""The rule for outputs that are sums of products: computed with running sums in fp32 and rounded once at the end.

relative_frobenius 1.0: rounding to nearest has a relative Frobenius error of at most 1/sqrt(3) unit roundoffs (all
results just above a power of two; 0.43 in general), give or take what few elements vary by. Sums in fp16 that are added
up in fp32 every 64 products have 0.8, plain fp16 accumulation 3 or more. For fp32, sqrt(terms) roundings of the running
sum come on top.

elementwise 1.0: u |result| for the output's rounding, and 2^-23 (8 + terms / 8) times what the sum is made of, for a
running sum in fp32 (tensor cores truncate each step's sum; a step is at least 8 products): Higham, Accuracy and
Stability, 3.1, with steps for terms.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from worker.operators.base import Compared, Numerics, ratio, worst

TOLERANCES: Mapping[str, float] = {"relative_frobenius": 1.0, "elementwise": 1.0}


def compare_sums(how: Numerics, reference: Any, made_of: Any, output: Any, terms: float) -> Compared:
    """`reference` in the work dtype; `made_of`: for each element the sum of its terms' absolute values."""
    xp = how.xp
    error = abs(output.astype(how.work) - reference)
    smallest = 2.0**-24 if how.dtype == "fp16" else 2.0**-126
    bound = how.tolerances["elementwise"] * (
        1.05 * how.unit_roundoff * abs(reference) + 2.0**-23 * (8 + terms / 8) * made_of + smallest
    )
    share = float((error / bound).max())
    if math.isnan(share):
        return Compared(error=math.inf, bound=float(bound.max()), of_bound=math.inf, nan=True, what="NaN")
    frobenius = float(xp.sqrt((error * error).sum()))
    squares = reference * reference
    total = float(squares.sum())
    rounding = how.unit_roundoff * _rounding(total, float((squares * squares).sum())) * math.sqrt(total)
    # What a sum's roundings amount to depends on what it is made of, not on what is left of it.
    scale = math.sqrt(float((made_of * made_of).sum()) / terms)
    allowed = (
        how.tolerances["relative_frobenius"] * (rounding + of_sums(terms) * max(math.sqrt(total), scale)) + smallest
    )
    return worst(
        (
            Compared(error=frobenius, bound=allowed, of_bound=ratio(frobenius, allowed), what="Frobenius norm"),
            Compared(error=float(error.max()), bound=float(bound.max()), of_bound=share, what="single element"),
        )
    )


def of_sums(terms: float) -> float:
    """Relative error of running sums of so many terms in fp32, rounded or truncated."""
    return 4 * math.sqrt(terms) * 2.0**-24


def _rounding(squares: float, fourth_powers: float) -> float:
    """Unit roundoffs that elements of these sums of powers may be off as a whole: few ones vary more."""
    if not squares > 0.0:
        return 1.0
    return 0.6 * (1 + 2 * math.sqrt(fourth_powers) / squares)
