"""One row of the demo's table an evaluation, and what was expected of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from rich.table import Table
from rich.text import Text

from cli.show.cases import OF_BASELINE, THROUGHPUT, TIME, metric, plain_table
from cli.show.outcomes import JUDGED_BAD, NOT_MEASURED, outcome_text, verdict_text
from cli.show.stages import architectures_of, spilled_bytes, worst_registers
from cli.text import case_name, number, ratio_with_interval
from contract.api import EvaluationOut
from contract.base import Model
from contract.devices import DeviceClass
from contract.names import KernelName, Label
from contract.outcomes import Outcome, Verdict
from contract.report import CaseResult, Metric
from contract.text import one_line

# From so many columns on a row takes one line; below, the ratio's interval goes under the ratio.
WIDE, NARROW = 150, 102
_HEAD, _AGAINST = "kernel, revision", "against: time ratio"
_LEFT = {_HEAD, "class", "outcome", "case", _AGAINST, "verdict"}
_WIDE_COLUMNS = (
    _HEAD,
    "class",
    "outcome",
    "case",
    "time",
    "throughput",
    "of baseline",
    _AGAINST,
    "verdict",
    "registers",
    "spills",
)
_NARROW_COLUMNS = tuple(name for name in _WIDE_COLUMNS if name not in {"class", "case"})


class Row(Model):
    """`case`: the one whose values are shown, the last that was measured. Registers and spilled bytes stand by
    `architectures`."""

    evaluation: str
    kernel: KernelName
    revision: Label
    device_class: DeviceClass
    outcome: Outcome | None
    summary: str
    case: str | None
    time: Metric | None
    throughput: Metric | None
    of_baseline: Metric | None
    base: Label | None
    ratio: float | None
    interval: tuple[float, float] | None
    verdict: Verdict | None
    architectures: tuple[str, ...]
    registers: tuple[int | None, ...]
    spilled_bytes: tuple[int | None, ...]
    must_fail: bool

    @property
    def unmeasured(self) -> bool:
        return self.outcome is None or self.outcome in NOT_MEASURED

    @property
    def as_expected(self) -> bool:
        return self.unmeasured or (self.outcome in JUDGED_BAD) == self.must_fail


def row_of(evaluation: EvaluationOut, *, must_fail: bool) -> Row:
    shown = _shown_case(evaluation.cases)
    judged = shown.judgement if shown else None
    architectures = tuple(architectures_of(evaluation.statics))
    by_architecture = [[one for one in evaluation.statics if one.architecture == name] for name in architectures]
    return Row(
        evaluation=evaluation.id,
        kernel=evaluation.kernel,
        revision=evaluation.revision.label,
        device_class=evaluation.device_class,
        outcome=evaluation.outcome,
        summary=evaluation.summary or "",
        case=shown.case if shown else None,
        time=metric(shown, TIME) if shown else None,
        throughput=metric(shown, THROUGHPUT) if shown else None,
        of_baseline=metric(shown, OF_BASELINE) if shown else None,
        base=evaluation.base.label if evaluation.base else None,
        ratio=judged.ratio if judged else None,
        interval=judged.interval if judged else None,
        verdict=judged.verdict if judged else None,
        architectures=architectures,
        registers=tuple(map(worst_registers, by_architecture)),
        spilled_bytes=tuple(map(spilled_bytes, by_architecture)),
        must_fail=must_fail,
    )


def table_of(rows: Sequence[Row], *, width: int) -> Table:
    """A line a row, under its kernel's name. Narrower than `WIDE`, cases are left out and classes shortened."""
    wide = width >= WIDE
    headers = {
        "time": f"time{_unit(row.time for row in rows)}",
        "throughput": _unit((row.throughput for row in rows), bare=True) or "throughput",
        "spills": "spills (B)" if wide else "spills",
    }
    if not wide:
        headers |= {"of baseline": "of\nbaseline", _AGAINST: "against:\ntime ratio", "registers": "regs"}
    kept = _WIDE_COLUMNS if wide else _NARROW_COLUMNS
    table = plain_table(*((headers.get(name, name), "left" if name in _LEFT else "right") for name in kept))
    table.padding = (0, 1, 0, 0) if wide else (0, 0, 0, 0)
    for column in table.columns:
        column.no_wrap = True
    for kernel, of_kernel in groupby(rows, key=lambda row: row.kernel):
        table.add_row(Text(kernel, style="bold"))
        for row in of_kernel:
            cells = _cells(row, wide=wide)
            table.add_row(*(cells[name] for name in kept))
    several = next((row.architectures for row in rows if len(row.architectures) > 1), ())
    if several:
        table.caption = f"registers and spills: for {' / '.join(map(one_line, several))}, or the same for all"
        table.caption_justify = "right"
    return table


def _cells(row: Row, *, wide: bool) -> dict[str, str | Text]:
    label = f"  {one_line(row.revision)}"
    ratio = ratio_with_interval(row.ratio, row.interval)
    return {
        _HEAD: label if wide or row.device_class is DeviceClass.CPU else f"{label} {row.device_class.value}",
        "class": row.device_class.value,
        "outcome": outcome_text(row.outcome, otherwise="not finished"),
        "case": case_name(row.case) if row.case else "",
        "time": _number(row.time),
        "throughput": _number(row.throughput),
        "of baseline": _number(row.of_baseline),
        _AGAINST: f"{one_line(row.base or '')}: {ratio if wide else ratio.replace(' [', chr(10) + '[')}"
        if ratio
        else "",
        "verdict": verdict_text(row.verdict, row.ratio, row.interval),
        "registers": _each(row.registers),
        "spills": _each(row.spilled_bytes),
    }


def _each(values: Sequence[int | None]) -> str:
    """`128`, where it is so for every architecture; else `128/126/130`."""
    said = ["" if value is None else str(value) for value in values]
    return said[0] if len(set(said)) == 1 else "/".join(said)


def _number(metric: Metric | None) -> str:
    return number(metric.value, metric.low, metric.high) if metric else ""


def _shown_case(results: Sequence[CaseResult]) -> CaseResult | None:
    """The case that is slowest against its base where one is slower; else the last compared, else the last measured:
    suites go from small to large."""
    measured = [result for result in results if not result.skipped and result.metrics]
    compared = [result for result in measured if result.judgement]
    slower = [result for result in compared if result.judgement and result.judgement.verdict is Verdict.SLOWER]
    if slower:
        return max(slower, key=lambda result: (result.judgement and result.judgement.ratio) or 0.0)
    return compared[-1] if compared else measured[-1] if measured else None


def _unit(metrics: Iterable[Metric | None], *, bare: bool = False) -> str:
    units = " or ".join(sorted({one_line(one.unit) for one in metrics if one is not None}))
    return units if bare or not units else f" ({units})"
