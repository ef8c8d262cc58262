"""A history as a table: one revision a row, oldest first."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from cli.series import Chosen
from cli.show.cases import plain_table
from cli.show.outcomes import outcome_text, verdict_text
from cli.text import case_name, number, ratio_with_interval
from contract.api import Point
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
    table = plain_table(
        ("revision", "left"),
        ("commit", "left"),
        (f"{series.metric} ({one_line(series.unit)})", "right"),
        ("of baseline", "right"),
        ("against", "left"),
        ("time ratio", "left"),
        ("verdict", "left"),
        ("outcome", "left"),
        ("summary", "left"),
    )
    for point in series.points:
        table.add_row(*_row(point))
    table.columns[-1].no_wrap = True
    table.columns[-1].overflow = "ellipsis"
    parts.append(table)
    if not all(point.mainline for point in series.points):
        parts += [Text(), Text(f"{BESIDE} beside the mainline", style="dim")]
    others = [case_name(case) for case in kernel.cases if case != series.case]
    if others:
        parts += [Text(), Text(f"other cases (--case): {'; '.join(others)}", style="dim")]
    classes = [klass.value for klass in kernel.device_classes if klass is not series.device_class]
    if classes:
        parts.append(Text(f"other classes (--device-class): {', '.join(classes)}", style="dim"))
    return Group(*parts)


def _row(point: Point) -> tuple[str | Text, ...]:
    label = one_line(point.label) if point.mainline else f"{BESIDE} {one_line(point.label)}"
    return (
        label,
        point.commit[:9] if point.commit else "",
        number(point.value, point.low, point.high),
        number(point.of_baseline),
        one_line(point.base) if point.base else "",
        ratio_with_interval(point.ratio, point.interval),
        verdict_text(point.verdict, point.ratio, point.interval),
        outcome_text(point.outcome),
        one_line(point.summary),
    )
