"""Regressions: one line a cause, or one with everything that is known of it."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cli.show.cases import plain_table
from cli.text import case_name, number, ratio_with_interval
from contract.regressions import AffectedCase, RegressionOut, RegressionState
from contract.text import one_line
from verdict.words import ratio_in_words

_STYLES = {RegressionState.NEW: "bold red", RegressionState.FIXED: "green"}
_EVIDENCE = {"side_by_side": "side by side", "published": "published values", "history": "step in the history"}


def regressions_view(found: Sequence[RegressionOut]) -> RenderableType:
    table = plain_table(
        ("regression", "left"),
        ("state", "left"),
        ("change", "right"),
        ("kernel", "left"),
        ("revision", "left"),
        ("classes", "left"),
        ("cases", "right"),
        ("since", "left"),
        ("reason", "left"),
    )
    for each in found:
        others = len(each.suspects) - 1
        table.add_row(
            each.id,
            state_text(each.state),
            ratio_in_words(each.worst_ratio),
            ", ".join(each.kernels),
            one_line(each.revision.label) + (f" or {others} before it" if others > 0 else ""),
            ", ".join(klass.value for klass in each.device_classes),
            str(len(each.cases)),
            f"{each.created_at:%Y-%m-%d}",
            one_line(each.reason or "", limit=50),
        )
    return table


def regression_view(found: RegressionOut) -> RenderableType:
    parts: list[RenderableType] = [Text(one_line(found.sentence, limit=1000), style="bold")]
    state = Text("state     ").append_text(state_text(found.state))
    parts.append(state.append(f": {one_line(found.reason or '')}, by {one_line(found.who or '')}"))
    if found.after is not None:
        parts.append(Text(f"after     {_spot(found.after.label, found.after.commit)}"))
    if len(found.suspects) > 1:
        named = ", ".join(_spot(each.label, each.commit) for each in found.suspects)
        parts.append(Text(f"suspects  {named} (all but the last were not measured)"))
    parts += [Text(), _cases(found.cases), Text()]
    parts += [
        Text(f"{event.at:%Y-%m-%d %H:%M}  {event.state.value}: {one_line(event.reason)} ({one_line(event.who)})")
        for event in found.events
    ]
    return Group(*parts)


def state_text(state: RegressionState) -> Text:
    return Text(state.value, style=_STYLES.get(state, ""))


def _cases(cases: Sequence[AffectedCase]) -> Table:
    table = plain_table(
        ("kernel", "left"),
        ("case", "left"),
        ("class", "left"),
        ("time ratio", "left"),
        ("against", "left"),
        ("evidence", "left"),
        ("now", "right"),
        ("fixed by", "left"),
    )
    for case in cases:
        table.add_row(
            case.kernel,
            case_name(case.case),
            case.device_class.value,
            ratio_with_interval(case.ratio, case.interval),
            one_line(case.base.label) if case.base else "",
            _EVIDENCE[case.evidence],
            number(case.now),
            one_line(case.fixed_by.label) if case.fixed_by else "",
        )
    return table


def _spot(label: str, commit: str | None) -> str:
    return f"{one_line(label)} ({commit[:9]})" if commit else one_line(label)
