"""Processes that fall on two levels (22.5 or 25.5 ms, nothing between) must not become a verdict.

If identical code falls on two levels, a pair shows head slow and base fast with probability p(1 - p), a quarter at
most. So a verdict needs more pairs on its side than that quarter would bring once in fifty thousand evaluations. Where
all pairs agree this takes eight processes a side; where levels show, the binomial tail says how many must agree.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import bdtrc

from verdict.evidence import Evidence

# No two levels this far apart are on record (the field reports' worst are 13 to 36 %): four processes may say it.
PLAIN_RATIO = 1.5
_SHARE = 0.25
_ALPHA = 2e-5
FEWEST_PROCESSES = math.ceil(math.log(_ALPHA) / math.log(_SHARE))


def objection(evidence: Evidence, *, limit: float, margin: float) -> str | None:
    """Why the pairs could be two levels of the same speed though their mean is beyond `limit` (ln; signed)."""
    if abs(evidence.mean) >= math.log(PLAIN_RATIO) and not _levels_show(evidence, margin):
        return None
    if evidence.processes < FEWEST_PROCESSES:
        return (
            f"{evidence.processes} processes a side can't tell a difference from two levels between processes "
            f"({FEWEST_PROCESSES} could)"
        )
    if not _levels_show(evidence, margin):
        return None
    pairs = len(evidence.values)
    beyond = int(np.sum(evidence.values > limit if limit > 0 else evidence.values < limit))
    # Values that share processes are worth fewer: scale the count to distinct ones.
    agreeing = math.floor(beyond * evidence.processes / pairs)
    if float(bdtrc(agreeing - 1, evidence.processes, _SHARE)) <= _ALPHA:
        return None
    return f"the processes fall on separate levels and only {beyond} of {pairs} pairs agree"


def _levels_show(evidence: Evidence, margin: float) -> bool:
    """Whether a gap between neighbouring values is wider than chance explains. Levels closer than 1.6 margins can't
    carry a mean beyond the margin unless all pairs agree, so a gap of 1.25 leaves room for noise on either."""
    gaps = np.diff(np.sort(evidence.values))
    return bool(len(gaps)) and float(gaps.max()) > max(1.25 * margin, 2.0 * evidence.floor)
