"""The decision: where the interval lies, for one case or for all cases of an evaluation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from contract.outcomes import Verdict
from contract.samples import Comparison
from contract.verdicts import Judgement
from verdict.alpha import LOOKS, SAME_ALPHA, alpha_of
from verdict.bounds import (
    LARGEST,
    Guard,
    departure_half_width,
    departure_needs,
    half_width,
    smallest_detectable,
)
from verdict.evidence import Evidence, UnusableError, gather
from verdict.levels import FEWEST_PROCESSES, PLAIN_RATIO, objection
from verdict.words import percent, span_in_words


@dataclass(frozen=True)
class _Case:
    evidence: Evidence
    comparison: Comparison

    @property
    def upper(self) -> float:
        return math.log1p(self.comparison.allowed_slowdown)

    @property
    def lower(self) -> float:
        return math.log1p(-self.comparison.allowed_slowdown)

    @property
    def guard(self) -> Guard:
        return Guard.of(alpha_of(self.comparison.look, self.evidence.processes))

    @property
    def same_guard(self) -> Guard:
        return Guard.of(alpha_of(self.comparison.look, self.evidence.processes, shares=SAME_ALPHA))

    @property
    def mirrored(self) -> Evidence:
        """The same evidence with the sides changed: faster becomes slower."""
        return replace(self.evidence, mean=-self.evidence.mean, values=-self.evidence.values)


def decide(comparison: Comparison) -> Judgement:
    """The verdict of one comparison on its own. The same samples always give the same answer; nothing is drawn."""
    return decide_all({"": comparison})[""]


def decide_all(comparisons: Mapping[str, Comparison], *, one_clock: bool = False) -> dict[str, Judgement]:
    """The verdicts of all cases of one evaluation; `slower` and `faster` are each held to alpha over all of them.
    `one_clock`: both sides were timed by the same process, so that however far apart they are, no unit changed.

    Holm's step-down method needs no independence: the cases share their processes. `same` needs no correction, as
    "nothing is slower" is a claim about all cases at once and each must bring its own proof.
    """
    judged: dict[str, Judgement] = {}
    cases: dict[str, _Case] = {}
    for name, comparison in comparisons.items():
        try:
            cases[name] = _Case(gather(comparison, one_clock=one_clock), comparison)
        except UnusableError as error:
            judged[name] = _inconclusive(str(error))
    slower = _holm({name: _weight(case.evidence, case, case.upper) for name, case in cases.items()}, len(comparisons))
    faster = _holm({name: _weight(case.mirrored, case, -case.lower) for name, case in cases.items()}, len(comparisons))
    for name, case in cases.items():
        divisor = slower[name] if case.evidence.mean >= 0 else faster[name]
        judged[name] = _judge(case, divisor)
    return {name: judged[name] for name in comparisons}


def _weight(evidence: Evidence, case: _Case, limit: float) -> float:
    """The error that it takes, as a share of what this look may spend: 1 would be enough if this were the only case.
    Infinite where something else forbids the verdict, so that nothing is passed on from it."""
    if evidence.processes < LOOKS[0] or objection(evidence, limit=limit, margin=case.upper):
        return math.inf
    return departure_needs(evidence, case.guard, margin=limit)


def _holm(weights: Mapping[str, float], tests: int) -> dict[str, int]:
    """What each case's alpha is divided by: the smallest p-value by all tests, the next by one fewer, up to the first
    that fails; that one and all larger ones share its divisor."""
    divisors: dict[str, int] = {}
    divisor = tests
    for name in sorted(weights, key=lambda name: (weights[name], name)):
        divisors[name] = divisor
        if weights[name] * divisor <= 1.0 and divisor > 1:
            divisor -= 1
        elif weights[name] * divisor > 1.0:
            return {other: divisors.get(other, divisor) for other in weights}
    return divisors


def _judge(case: _Case, divisor: int) -> Judgement:
    evidence, allowed = case.evidence, case.comparison.allowed_slowdown
    mean = evidence.mean
    if evidence.processes < LOOKS[0]:
        return _inconclusive(
            f"{_processes(evidence.processes)} a side can't tell; at least {LOOKS[0]} are needed",
            ratio=_exp(mean),
        )
    wide = departure_half_width(evidence, case.guard, divisor=divisor, margin=case.upper)
    narrow = half_width(evidence, case.same_guard)
    low, high = mean - wide, mean + wide
    detectable = smallest_detectable(evidence, case.guard, divisor=divisor, margin=case.upper)
    if case.comparison.look in (None, len(LOOKS)) and evidence.processes < FEWEST_PROCESSES and detectable is not None:
        detectable = max(detectable, PLAIN_RATIO - 1.0)

    def judgement(verdict: Verdict, reason: str, width: float = wide) -> Judgement:
        return Judgement(
            verdict=verdict,
            ratio=_exp(mean),
            interval=(_exp(mean - width), _exp(mean + width)),
            smallest_detectable=detectable,
            reason=reason,
        )

    if low > case.upper or high < case.lower:
        limit = case.upper if low > case.upper else case.lower
        doubt = objection(evidence, limit=limit, margin=case.upper)
        if doubt:
            return judgement(Verdict.INCONCLUSIVE, doubt)
        side = (
            f"at least {percent(_exp(low) - 1.0)} slower"
            if limit > 0
            else f"at least {percent(1.0 - _exp(high))} faster"
        )
        return judgement(
            Verdict.SLOWER if limit > 0 else Verdict.FASTER,
            f"{side}, allowed {percent(allowed)}, with {evidence.processes} processes a side",
        )
    if case.lower < mean - narrow and mean + narrow < case.upper:
        return judgement(
            Verdict.SAME,
            f"within the allowed {percent(allowed)}, with {evidence.processes} processes a side",
            narrow,
        )
    span = span_in_words(_exp(low), _exp(high))
    more = case.comparison.look is not None and case.comparison.look < len(LOOKS)
    return judgement(
        Verdict.INCONCLUSIVE,
        f"{span} with {evidence.processes} processes a side, allowed {percent(allowed)}"
        + ("; more processes may tell" if more else ""),
    )


def _processes(count: int) -> str:
    return f"{count} process{'' if count == 1 else 'es'}"


def _exp(logarithm: float) -> float:
    """Four wildly different processes give an interval that no float holds."""
    return math.exp(min(max(logarithm, -LARGEST), LARGEST))


def _inconclusive(reason: str, *, ratio: float | None = None) -> Judgement:
    return Judgement(verdict=Verdict.INCONCLUSIVE, ratio=ratio, interval=None, smallest_detectable=None, reason=reason)
