"""Two revisions, case by case."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from cli.show.cases import THROUGHPUT, TIME, plain_table
from cli.show.outcomes import verdict_text
from cli.show.stages import instruction_words, statics_words
from cli.text import case_name, number, ratio_with_interval
from contract.api import CompareOut
from contract.statics import by_architecture
from contract.text import one_line
from verdict.words import percent

_HOW = {
    "pairs": "side by side",
    "published": "published values",
    "separately": "in two evaluations: no verdict",
    "none": "not measured",
}


def comparison_view(compared: CompareOut) -> RenderableType:
    base, head = one_line(compared.base.label), one_line(compared.head.label)
    title = f"{compared.kernel} {head} against {base} on {compared.device_class.value}"
    # The unit is not part of a comparison: throughput where both have it, else time.
    both = [set(case.base) & set(case.head) for case in compared.cases]
    metric = next((name for name in (TIME, THROUGHPUT) if any(name in names for names in both)), None)
    columns = [("case", "left")]
    if metric:
        columns += [(f"{metric} of {base}", "right"), (f"{metric} of {head}", "right")]
    columns += [("time ratio", "left"), ("verdict", "left"), ("would have found", "right"), ("measured", "left")]
    table = plain_table(*columns)
    for case in compared.cases:
        row: list[str | Text] = [case_name(case.case)]
        if metric:
            row += [number(case.base.get(metric)), number(case.head.get(metric))]
        detectable = percent(case.smallest_detectable) if case.smallest_detectable is not None else ""
        table.add_row(
            *row,
            ratio_with_interval(case.ratio, case.interval),
            verdict_text(case.verdict, case.ratio, case.interval, allowed=case.allowed),
            detectable,
            _HOW[case.measured],
        )
    parts: list[RenderableType] = [Text(title, style="bold"), Text()]
    parts += [table] if compared.cases else []
    parts += [Text(words) for words in _machine_code(compared)]
    return Group(*parts)


def _machine_code(compared: CompareOut) -> Iterator[str]:
    """A line an architecture, with the base's where it differs; or why there is nothing to compare."""
    bases = by_architecture(compared.base_statics)
    for architecture, head in by_architecture(compared.statics).items():
        said = statics_words(head, bases.get(architecture, ()), compared.base.label)
        yield f"machine code for {one_line(architecture)}: {said}"
        now, before = instruction_words(head), instruction_words(bases.get(architecture, ()))
        if now or before:
            differs = f" ({one_line(compared.base.label)}: {before or 'none'})" if architecture in bases else ""
            yield f"  instructions: {now or 'none'}{differs if now != before else ''}"
    if compared.statics_apart:
        yield f"machine code is not compared: {one_line(compared.statics_apart, limit=300)}"
