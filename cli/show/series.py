"""A history as a table: one revision a row, oldest first."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cli.series import NO_CASE, Chosen
from cli.show.cases import plain_table
from cli.show.outcomes import outcome_text, verdict_text
from cli.text import case_name, number, ratio_with_interval
from contract.api import Point, Series
from contract.profile import PROFILE
from contract.regressions import ChangeOut
from contract.text import one_line

BESIDE = "○"


def series_view(chosen: Chosen) -> RenderableType:
    series, kernel = chosen.series, chosen.kernel
    head = (
        f"{series.kernel} on {series.device_class.value}, {case_name(series.case) or 'machine code'}, {series.metric}"
    )
    if series.baseline and series.baseline_value is not None:
        head += f"   baseline {one_line(series.baseline)}: {number(series.baseline_value)} {one_line(series.unit)}"
    parts: list[RenderableType] = [Text(head, style="bold"), Text()]
    if not series.points:
        return Group(*parts, Text("no revision has been measured on this case and class"))
    table = _machine_code(series) if series.case == NO_CASE else _measured(series)
    # The summary takes what the others leave.
    table.expand, table.columns[-1].ratio = True, 1
    table.columns[-1].no_wrap = True
    table.columns[-1].overflow = "ellipsis"
    parts.append(table)
    for change in chosen.changes:
        parts += [Text(), Text(_toolchains(change))]
    if not all(point.mainline for point in series.points):
        parts += [Text(), Text(f"{BESIDE} beside the mainline", style="dim")]
    others = [case_name(case) for case in kernel.cases if series.case not in (case, NO_CASE)]
    classes = [klass.value for klass in kernel.device_classes if klass is not series.device_class]
    if others or classes:
        parts.append(Text())
    if others:
        parts.append(Text(f"other cases (--case): {'; '.join(others)}", style="dim"))
    if classes:
        parts.append(Text(f"other classes (--device-class): {', '.join(classes)}", style="dim"))
    return Group(*parts)


def _machine_code(series: Series) -> Table:
    table = plain_table(
        ("revision", "left"), ("commit", "left"), (_unit(series), "right"), ("outcome", "left"), ("summary", "left")
    )
    for point in series.points:
        value = "" if point.value is None else f"{point.value:.0f}"
        table.add_row(*_name(point), value, outcome_text(point.outcome), one_line(point.summary))
    return table


def _toolchains(change: ChangeOut) -> str:
    """`from v4 on by another toolchain (nvcc 13.0.88, then 13.1.2): not compared with what is before`"""
    versions = "; ".join(f"{name} {was or 'none'}, then {now or 'none'}" for name, (was, now) in change.changed.items())
    label = one_line(change.revision.label)
    return f"from {label} on by another toolchain ({one_line(versions)}): not compared with what is before"


def _measured(series: Series) -> Table:
    table = plain_table(
        ("revision", "left"),
        ("commit", "left"),
        (_unit(series), "right"),
        ("of baseline", "right"),
        ("against", "left"),
        ("time ratio", "left"),
        ("verdict", "left"),
        ("outcome", "left"),
        ("summary", "left"),
    )
    for point in series.points:
        table.add_row(*_row(point))
    return table


def _unit(series: Series) -> str:
    """`time (us)`; a count has no unit that anybody reads."""
    counted = series.case == NO_CASE and series.unit == "1"
    name = PROFILE[series.metric].words if series.metric in PROFILE else series.metric
    return name if counted else f"{name} ({one_line(series.unit)})"


def _name(point: Point) -> tuple[str, str]:
    label = one_line(point.label) if point.mainline else f"{BESIDE} {one_line(point.label)}"
    return label, point.commit[:9] if point.commit else ""


def _row(point: Point) -> tuple[str | Text, ...]:
    return (
        *_name(point),
        number(point.value, point.low, point.high),
        number(point.of_baseline),
        one_line(point.base) if point.base else "",
        ratio_with_interval(point.ratio, point.interval),
        verdict_text(point.verdict, point.ratio, point.interval),
        outcome_text(point.outcome),
        one_line(point.summary),
    )
