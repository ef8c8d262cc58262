"""What the card's counters said, case by case: of one evaluation, or of two revisions."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import RenderableType
from rich.text import Text

from cli.show.cases import metric, plain_table
from cli.text import case_name, number
from contract.api import CompareOut
from contract.profile import PROFILE
from contract.report import CaseResult
from contract.text import one_line

_HEAD = "profile   shares of what there could be; stalls in cycles between two instructions of a warp"


def profile_table(results: Iterable[CaseResult]) -> list[RenderableType]:
    """Empty where no case was profiled."""
    profiled = [result for result in results if any(metric(result, name) for name in PROFILE)]
    if not profiled:
        return []
    table = plain_table(("case", "left"), *((_header(name), "right") for name in PROFILE))
    for result in profiled:
        found = (metric(result, name) for name in PROFILE)
        table.add_row(case_name(result.case), *(number(one.value if one else None) for one in found))
    return [Text(), Text(_HEAD, style="dim"), table]


def profile_comparison(compared: CompareOut) -> list[RenderableType]:
    """Base and head below each other; empty where neither was profiled. Of no verdict."""
    table = plain_table(("case", "left"), ("revision", "left"), *((_header(name), "right") for name in PROFILE))
    for case in compared.cases:
        for label, values in ((compared.base.label, case.base), (compared.head.label, case.head)):
            if not PROFILE.keys().isdisjoint(values):
                table.add_row(case_name(case.case), one_line(label), *(number(values.get(name)) for name in PROFILE))
    return [Text(), Text(_HEAD, style="dim"), table] if table.row_count else []


def _header(name: str) -> str:
    unit, words = PROFILE[name]
    return f"{words} {unit}" if unit == "%" else words
