"""The table of an evaluation's cases."""

from __future__ import annotations

from collections.abc import Iterable

from rich import box
from rich.table import Table
from rich.text import Text

from cli.show.outcomes import verdict_text
from cli.text import case_name, number, ratio_with_interval
from contract.report import CaseResult, Metric
from contract.suite import Suite
from contract.text import one_line

TIME, THROUGHPUT, OF_BASELINE = "time", "throughput", "throughput_over_baseline"


def metric(result: CaseResult, name: str) -> Metric | None:
    return next((metric for metric in result.metrics if metric.name == name), None)


def shown(value: Metric | None) -> str:
    return "" if value is None else number(value.value, value.low, value.high)


_LEAST_WIDTH = 8


def plain_table(*columns: tuple[str, str]) -> Table:
    """A table without rules: (header, "left" or "right") a column."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for header, side in columns:
        if side == "right":
            table.add_column(header, justify="right", no_wrap=True)
        else:
            # On a narrow terminal words wrap; none of them vanishes.
            table.add_column(header, min_width=_LEAST_WIDTH, overflow="fold")
    return table


def case_table(results: tuple[CaseResult, ...], *, base: str | None, allowed: dict[str, str]) -> Table:
    """Case, time, throughput, share of the baseline, ratio to the base, verdict. `allowed`: reasons by case."""
    library = next((one_line(result.baseline) for result in results if result.baseline), None)
    columns = [("case", "left"), (_header("time", results, TIME), "right")]
    columns.append((_header("", results, THROUGHPUT) or "throughput", "right"))
    if library:
        columns.append((f"of {library.split()[0]}", "right"))
    if base:
        columns += [(f"against {one_line(base)} (time ratio)", "left"), ("verdict", "left")]
    table = plain_table(*columns)
    for result in results:
        table.add_row(*_row(result, library=library, base=base, allowed=allowed.get(result.case)))
    return table


def allowances(suite: Suite | None, *, revision: str, base: str | None, device_class: str) -> dict[str, str]:
    """The reason of each case whose slowdown over this base the suite forgives."""
    if suite is None or base is None:
        return {}
    return {
        entry.case: entry.reason
        for entry in suite.allowances
        if (entry.revision, entry.base, entry.device_class) == (revision, base, device_class)
    }


def _row(result: CaseResult, *, library: str | None, base: str | None, allowed: str | None) -> list[str | Text]:
    cells: list[str | Text]
    name = case_name(result.case)
    if result.skipped:
        cells = [name, "", "", *([""] if library else [])]
        return [*cells, *([f"left out: {one_line(result.skipped)}", ""] if base else [])]
    cells = [name, shown(metric(result, TIME)), shown(metric(result, THROUGHPUT))]
    if library:
        cells.append(shown(metric(result, OF_BASELINE)))
    if base:
        judged = result.judgement
        if judged is not None:
            cells.append(ratio_with_interval(judged.ratio, judged.interval))
            cells.append(verdict_text(judged.verdict, judged.ratio, judged.interval, allowed=allowed))
        else:
            why = f"{one_line(base)} leaves this case out" if result.base_skipped else "not compared"
            cells += [Text(why, style="dim"), ""]
    return cells


def _header(word: str, results: Iterable[CaseResult], name: str) -> str:
    units = {found.unit for result in results if (found := metric(result, name)) is not None}
    unit = one_line(" or ".join(sorted(units)))
    if not word:
        return unit
    return f"{word} ({unit})" if unit else word
