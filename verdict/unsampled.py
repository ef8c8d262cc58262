"""Verdicts that need no samples: published values, and revisions that are the same machine code."""

from __future__ import annotations

import math
from typing import Literal

from contract.outcomes import Verdict
from contract.verdicts import Judgement
from verdict.words import percent


def published(base: float, head: float, *, better: Literal["lower", "higher"], margin: float) -> Judgement:
    """Judge two values that someone published without samples. `margin` is the relative difference that counts.

    The ratio is time_head / time_base, so base / head where higher is better. There is no interval and no smallest
    detectable slowdown: nobody knows the spread.
    """
    if not all(math.isfinite(value) and value > 0 for value in (base, head)):
        return _judgement(Verdict.INCONCLUSIVE, None, f"{base:g} and {head:g} can't be compared")
    ratio = head / base if better == "lower" else base / head
    difference = abs(head - base) / base
    if head == base:
        return _judgement(Verdict.SAME, 1.0, "the published values are equal")
    if difference < margin:
        return _judgement(
            Verdict.INCONCLUSIVE,
            ratio,
            f"the published values differ by {percent(difference)}, less than {percent(margin)}",
        )
    verdict = Verdict.SLOWER if ratio > 1 else Verdict.FASTER
    return _judgement(
        verdict, ratio, f"the published values differ by {percent(difference)}, at least {percent(margin)}"
    )


def same_artifact() -> Judgement:
    """The same cubins, launch record and toolchain: there is nothing to time."""
    return _judgement(Verdict.SAME, 1.0, "the same machine code")


def _judgement(verdict: Verdict, ratio: float | None, reason: str) -> Judgement:
    return Judgement(verdict=verdict, ratio=ratio, interval=None, smallest_detectable=None, reason=reason)
