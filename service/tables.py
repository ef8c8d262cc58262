"""A series as CSV, for spreadsheets and scripts."""

import csv
import io
import re

from contract.api import Series

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
# A spreadsheet takes a cell that begins so for a formula, and a summary is its author's.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def series_csv(series: Series) -> str:
    """A header and one line a point, lines ended as RFC 4180 has it. Empty cells where nothing is known."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for point in series.points:
        low, high = point.interval or (None, None)
        writer.writerow(
            [
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
            ]
        )
    return text.getvalue()


def attachment(*parts: str, ending: str) -> dict[str, str]:
    """The header that makes a browser keep the answer under a name made of `parts`."""
    name = re.sub(r"[^A-Za-z0-9=,._-]+", "-", "_".join(part for part in parts if part))
    return {"Content-Disposition": f'attachment; filename="{name}.{ending}"'}


def _plain(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) else text
