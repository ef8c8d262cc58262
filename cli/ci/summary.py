"""A gate's answer as Markdown for the job's summary, and as a line for its log."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from contract.gate import CommitGate, GateRow, RowStatus
from contract.text import one_line

_SIGNS = {RowStatus.GOOD: "✓", RowStatus.TOLERATED: "!", RowStatus.BAD: "✗", RowStatus.PENDING: "…"}
# GitHub keeps a megabyte a step.
_MOST_ROWS = 2000


def summary_of(gate: CommitGate, *, url: str, notes: Sequence[str]) -> str:
    return "\n".join(_lines(gate, url, notes)) + "\n"


def _lines(gate: CommitGate, url: str, notes: Sequence[str]) -> Iterator[str]:
    yield f"**{_escape(gate.answer.sentence)}**"
    yield ""
    yield from (f"- {_escape(note)}" for note in notes)
    if gate.answer.rows:
        yield ""
        yield "| | kernel | class | case | against | time ratio | |"
        yield "|-|-|-|-|-|-|-|"
        yield from (_row(row, url) for row in gate.answer.rows[:_MOST_ROWS])


def _row(row: GateRow, url: str) -> str:
    ratio = f"{row.ratio:.4f}" if row.ratio is not None else ""
    if row.ratio is not None and row.interval:
        ratio += f" [{row.interval[0]:.4f}, {row.interval[1]:.4f}]"
    said = _escape(row.said)
    if row.evaluation:
        said = f"[{said}]({url}/evaluations/{row.evaluation})"
    kernel = _escape(f"{row.kernel} {row.revision or ''}".strip())
    cells = (_SIGNS.get(row.status, "?"), kernel, row.device_class or "", row.case or "", row.base or "", ratio, said)
    return f"| {' | '.join(cells)} |"


def _escape(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>#|~!@$])", r"\\\1", one_line(text, limit=1000))
