"""Outcomes and verdicts: a word, a sign, and a colour that only repeats them; and the exit code each means."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

from cli.errors import Exit
from contract.outcomes import Outcome, Verdict
from verdict.words import ratio_in_words

SIGNS: dict[Verdict, str] = {
    Verdict.FASTER: "▲",
    Verdict.SLOWER: "▼",
    Verdict.SAME: "=",
    Verdict.INCONCLUSIVE: "?",
}
_VERDICT_STYLES: dict[Verdict, str] = {
    Verdict.FASTER: "green",
    Verdict.SLOWER: "red",
    Verdict.SAME: "",
    Verdict.INCONCLUSIVE: "yellow",
}
_OUTCOME_STYLES: dict[Outcome, str] = {
    Outcome.PASSED: "green",
    Outcome.BUILT: "green",
    Outcome.SLOWER: "bold red",
    Outcome.INCORRECT: "bold red",
    Outcome.BUILD_FAILED: "bold red",
    Outcome.UNTRUSTED: "bold red",
}
JUDGED_BAD = frozenset({Outcome.SLOWER, Outcome.INCORRECT, Outcome.BUILD_FAILED, Outcome.UNTRUSTED})
NOT_MEASURED = frozenset({Outcome.INFRASTRUCTURE_ERROR, Outcome.CANCELLED})


def exit_code(outcomes: Iterable[Outcome | None], *, inconclusive_fails: bool = False) -> Exit:
    """The one code of several evaluations: judged bad outweighs not measured, which outweighs passed."""
    code = Exit.OK
    for outcome in outcomes:
        if outcome in JUDGED_BAD or (outcome is Outcome.INCONCLUSIVE and inconclusive_fails):
            return Exit.JUDGED_BAD
        if outcome is None or outcome in NOT_MEASURED:
            code = Exit.NOT_MEASURED
    return code


def outcome_text(outcome: Outcome | None, otherwise: str = "") -> Text:
    if outcome is None:
        return Text(otherwise)
    return Text(outcome.value.replace("_", " "), style=_OUTCOME_STYLES.get(outcome, "yellow"))


def verdict_text(
    verdict: Verdict | None,
    ratio: float | None,
    interval: tuple[float, float] | None = None,
    *,
    allowed: str | None = None,
) -> Text:
    """`▲ 1.5 % faster`, `▼ 61 % slower (allowed here by the suite)`, `= same`, `? inconclusive`."""

    if verdict is None:
        return Text("")
    moved = verdict in {Verdict.FASTER, Verdict.SLOWER} and ratio is not None
    said = ratio_in_words(ratio, interval) if moved else verdict.value
    text = Text(f"{SIGNS[verdict]} {said}", style=_VERDICT_STYLES[verdict])
    if allowed is not None and verdict is Verdict.SLOWER:
        text.append(" (allowed here by the suite)", style="default")
    return text
