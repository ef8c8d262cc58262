"""What charts show as CSV, for spreadsheets and scripts: a series, a comparison, how a revision scales."""

import csv
import io
import re
from collections.abc import Iterable, Sequence

from contract.api import CompareOut, Series
from contract.views import Scaling

CSV = "text/csv"
COLUMNS = (
    "revision",
    "label",
    "commit",
    "mainline",
    "at",
    "value",
    "low",
    "high",
    "unit",
    "over_baseline",
    "outcome",
    "base",
    "verdict",
    "ratio",
    "ratio_low",
    "ratio_high",
    "summary",
)
_COMPARED = (
    "case",
    "verdict",
    "ratio",
    "ratio_low",
    "ratio_high",
    "smallest_detectable",
    "measured",
    "base_time",
    "head_time",
    "base_throughput",
    "head_throughput",
)
_SCALED = (
    "family",
    "case",
    "x",
    "value",
    "low",
    "high",
    "unit",
    "baseline",
    "over_baseline",
    "throughput",
    "flops_per_byte",
)
# A spreadsheet takes a cell that begins so for a formula, and a summary is its author's.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def series_csv(series: Series) -> str:
    """One line a point."""

    def lines() -> Iterable[Sequence[object]]:
        for point in series.points:
            low, high = point.interval or (None, None)
            yield (
                point.revision,
                _plain(point.label),
                point.commit,
                int(point.mainline),
                point.at.isoformat(),
                point.value,
                point.low,
                point.high,
                series.unit,
                point.of_baseline,
                point.outcome,
                point.base,
                point.verdict,
                point.ratio,
                low,
                high,
                _plain(point.summary),
            )

    return _written(COLUMNS, lines())


def comparison_csv(compared: CompareOut) -> str:
    """One line a case; ratios are time_head / time_base."""

    def lines() -> Iterable[Sequence[object]]:
        for case in compared.cases:
            low, high = case.interval or (None, None)
            values = [side.get(metric) for metric in ("time", "throughput") for side in (case.base, case.head)]
            yield (
                case.case,
                case.verdict,
                case.ratio,
                low,
                high,
                case.smallest_detectable,
                case.measured,
                *values,
            )

    return _written(_COMPARED, lines())


def scaling_csv(scaling: Scaling) -> str:
    """One line a case of each family."""
    return _written(
        _SCALED,
        (
            (
                _plain(curve.family),
                point.case,
                point.x,
                point.value,
                point.low,
                point.high,
                scaling.unit,
                point.baseline,
                point.over_baseline,
                point.throughput,
                point.flops_per_byte,
            )
            for curve in scaling.curves
            for point in curve.points
        ),
    )


def _written(columns: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """A header and the lines, ended as RFC 4180 has it. Empty cells where nothing is known."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows(lines)
    return text.getvalue()


def attachment(*parts: str, ending: str) -> dict[str, str]:
    """The header that makes a browser keep the answer under a name made of `parts`."""
    name = re.sub(r"[^A-Za-z0-9=,._-]+", "-", "_".join(part for part in parts if part))
    return {"Content-Disposition": f'attachment; filename="{name}.{ending}"'}


def _plain(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) else text
