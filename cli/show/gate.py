"""The gate's answer about a commit."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from cli.show.cases import plain_table
from cli.text import case_name, ratio_with_interval
from contract.gate import CommitGate, GateConclusion, RowStatus
from contract.text import one_line

_CONCLUSIONS: dict[GateConclusion, tuple[str, str]] = {
    GateConclusion.SUCCESS: ("passes", "green"),
    GateConclusion.FAILURE: ("fails", "bold red"),
    GateConclusion.NOT_MEASURED: ("not measured", "yellow"),
    GateConclusion.CANCELLED: ("cancelled", "yellow"),
    GateConclusion.PENDING: ("not finished yet", ""),
}
_STATUSES: dict[RowStatus, str] = {
    RowStatus.BAD: "✕ bad",
    RowStatus.MISSING: "? missing",
    RowStatus.CANCELLED: "? cancelled",
    RowStatus.PENDING: "… pending",
    RowStatus.UNPROVEN: "? not proven",
    RowStatus.TOLERATED: "▼ accepted",
    RowStatus.GOOD: "= good",
}


def gate_view(found: CommitGate) -> RenderableType:
    """One sentence, then one table, the bad rows first."""
    word, style = _CONCLUSIONS[found.answer.conclusion]
    first = Text(word, style=style).append(f": {one_line(found.answer.sentence, limit=1000)}", style="default not bold")
    if not found.answer.rows:
        return first
    table = plain_table(
        ("", "left"), ("kernel", "left"), ("class", "left"), ("case", "left"), ("time ratio", "left"), ("", "left")
    )
    for row in found.answer.rows:
        table.add_row(
            _STATUSES[row.status],
            " ".join(word for word in (row.kernel, one_line(row.revision or "")) if word),
            row.device_class.value if row.device_class else "",
            case_name(row.case) if row.case else "",
            ratio_with_interval(row.ratio, row.interval),
            one_line(row.said),
        )
    return Group(first, Text(), table)
