"""The outcome of an evaluation, and its reason in one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from contract.outcomes import OUTCOME_OF, Outcome, Reason, Verdict
from contract.text import one_line
from verdict.words import percent, ratio_in_words

_LIMIT = 400


class Compared(Protocol):
    """A case as it came out. `ratio` = time_head / time_base, with `low` and `high` as its interval; `skipped`: why it
    was not measured; `allowance`: the suite's reason where a slowdown is forgiven."""

    @property
    def case(self) -> str: ...
    @property
    def skipped(self) -> str | None: ...
    @property
    def verdict(self) -> str | None: ...
    @property
    def ratio(self) -> float | None: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...
    @property
    def smallest_detectable(self) -> float | None: ...
    @property
    def reason(self) -> str | None: ...
    @property
    def allowed_slowdown(self) -> float | None: ...
    @property
    def allowance(self) -> str | None: ...


def outcome_of(reason: Reason | None, cases: Sequence[Compared], *, built_only: bool) -> Outcome:
    """`reason`: why it failed, None where nothing did."""
    if reason is not None:
        return OUTCOME_OF[reason]
    if built_only:
        return Outcome.BUILT
    if any(each.verdict == Verdict.SLOWER and not each.allowance for each in cases):
        return Outcome.SLOWER
    if any(each.verdict == Verdict.INCONCLUSIVE for each in cases):
        return Outcome.INCONCLUSIVE
    return Outcome.PASSED


def summarise_failure(*, outcome: Outcome, reason: Reason, message: str, case: str | None = None) -> str:
    why = reason.value.replace("_", " ")
    if outcome is Outcome.CANCELLED:
        return f"cancelled ({why})"
    said = one_line(message, _LIMIT)
    where = f" at {case}" if case else ""
    if outcome is Outcome.INFRASTRUCTURE_ERROR:
        return f"could not be measured, through no fault of the kernel ({why}): {said}".removesuffix(": ")
    return f"{outcome.value.replace('_', ' ')} ({why}){where}: {said}".removesuffix(": ")


def summarise_built(architectures: Sequence[str], *, verified: bool) -> str:
    """`verified`: on small cases, where there is a way to do it without a card."""
    named = ", ".join(dict.fromkeys(architectures))
    checked = "; right in all checks on small cases" if verified else ""
    return f"compiled{f' for {named}' if named else ''}{checked}; not measured, as no card of the class was at hand"


def summarise(outcome: Outcome, comparisons: Sequence[Compared]) -> str:
    """`outcome`: passed, slower or inconclusive."""
    slower = [each for each in comparisons if each.verdict == Verdict.SLOWER]
    forgiven = [each for each in slower if each.allowance]
    if outcome is Outcome.SLOWER:
        blamed = sorted((each for each in slower if not each.allowance), key=lambda each: -(each.ratio or 0.0))
        more = f", and in {len(blamed) - 1} more of {len(comparisons)} cases" if len(blamed) > 1 else ""
        return f"{_change(blamed[0])} at {blamed[0].case}{_allowed(blamed[0])}{more}"
    if outcome is Outcome.INCONCLUSIVE:
        unsure = [each for each in comparisons if each.verdict == Verdict.INCONCLUSIVE]
        more = f" (and {len(unsure) - 1} more of {len(comparisons)} cases)" if len(unsure) > 1 else ""
        return f"inconclusive at {unsure[0].case}: {one_line(unsure[0].reason or 'no evidence', _LIMIT)}{more}"
    judged = [each for each in comparisons if each.verdict]
    measured = [each for each in comparisons if each.skipped is None]
    if not judged:
        return (
            f"right in all checks and measured on {len(measured)} of {len(comparisons)} cases; no base to compare with"
        )
    sentence = "nothing is slower than allowed"
    if forgiven:
        names = ", ".join(f"{_change(each)} at {each.case}" for each in forgiven)
        sentence += f" by the suite ({names}: allowed there)"
    faster = [each for each in judged if each.verdict == Verdict.FASTER]
    if faster:
        best = min(faster, key=lambda each: each.ratio or 1.0)
        sentence = f"up to {_change(best)} ({best.case}); {sentence}"
    limits = sorted({each.allowed_slowdown for each in judged if each.allowed_slowdown is not None})
    found = max((each.smallest_detectable for each in judged if each.smallest_detectable is not None), default=None)
    notes = [" to ".join(percent(limit) for limit in sorted({*limits[:1], *limits[-1:]}))]
    if found is not None:
        notes.append(f"the smallest slowdown this run would have found: {percent(found)}")
    return f"{sentence} ({'; '.join(note for note in notes if note)})" if any(notes) else sentence


def _change(compared: Compared) -> str:
    interval = None
    if compared.low is not None and compared.high is not None:
        interval = (compared.low, compared.high)
    return ratio_in_words(compared.ratio, interval)


def _allowed(compared: Compared) -> str:
    return "" if compared.allowed_slowdown is None else f" (allowed {percent(compared.allowed_slowdown)})"
