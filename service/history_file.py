"""A history in CSV: checked line by line, every error with its line, its column, and what is allowed. No database."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated, Any

from pydantic import StringConstraints, TypeAdapter, ValidationError

from contract.devices import DeviceClass
from contract.names import CaseId, KernelName, Label, MetricName
from contract.text import clean, one_line
from service.problems import ProblemError

COLUMNS = ("kernel", "device_class", "label", "base", "case", "metric", "value", "unit", "note")
# What a published history is judged by, the best first, and which way is better.
JUDGED: dict[str, str] = {"throughput": "higher", "throughput_over_baseline": "higher", "time": "lower"}
BETTER: dict[str, str] = {**JUDGED, "of_baseline": "higher"}
# A case named as suites name them (`m=4096,…`) is measured by nodes too: its values are kept in the nodes' units.
_TIME_US = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}
_FLOPS = {"GFLOPS": 1e9, "TFLOPS": 1e12, "PFLOPS": 1e15}
_RATIOS = frozenset({"1", "ratio"})
_OF_BASELINE = re.compile(r"baseline\b")
MAX_ROWS = 50_000
_MAX_NOTE = 2000


@dataclass(frozen=True)
class Value:
    """One metric of one revision, or of the baseline, on one case; `case` is empty for a property of the revision."""

    line: int
    label: str
    case: str
    metric: str
    value: float
    unit: str
    note: str


@dataclass
class Line:
    """One kernel's history on one device class, in the order of the file. `values`: label -> (case, metric) -> value;
    `baselines`: case -> metric -> value. `bases`: what each revision was measured against."""

    kernel: str
    device_class: str
    values: dict[str, dict[tuple[str, str], Value]] = field(default_factory=dict)
    baselines: dict[str, dict[str, Value]] = field(default_factory=dict)
    bases: dict[str, str] = field(default_factory=dict)


def parse(text: str) -> list[Line]:
    """The histories of a file, one a kernel and device class; raises ProblemError 422 `bad-csv`.

    Lines that begin with `#` before the header are comments. A row whose note begins with `baseline` is the
    baseline's: its label names library and backend, and is no revision.
    """
    numbered = list(_rows(text))
    if not numbered:
        raise _bad(1, None, f"the file has no header; the columns are {','.join(COLUMNS)}")
    first, header = numbered[0]
    names = [name.strip() for name in header]
    for name in names:
        if name not in COLUMNS:
            raise _bad(first, name, f"no such column; allowed are {','.join(COLUMNS)}")
    for name in COLUMNS:
        if names.count(name) != 1:
            raise _bad(first, name, f"must be there once; the columns are {','.join(COLUMNS)}")
    if len(numbered) == 1:
        raise _bad(first, None, "there are no rows under the header")
    if len(numbered) > MAX_ROWS:
        raise _bad(numbered[MAX_ROWS][0], None, f"at most {MAX_ROWS} rows are allowed")
    lines: dict[tuple[str, str], Line] = {}
    units: dict[tuple[str, str, str, str], Value] = {}
    for number, cells in numbered[1:]:
        if len(cells) != len(names):
            raise _bad(number, None, f"{len(cells)} cells; {len(names)} are allowed, for {','.join(names)}")
        _add(lines, units, number, dict(zip(names, (cell.strip() for cell in cells), strict=True)))
    return list(lines.values())


def merged(stored: Sequence[str], line: Line) -> list[str]:
    """One order of the labels that are stored and those of a line: a new one stands right before the next of the line
    that is stored, the last ones at the end. Raises ProblemError 409 where the two contradict each other."""
    places = {label: place for place, label in enumerate(stored)}
    for before, after in pairwise(label for label in line.values if label in places):
        if places[before] > places[after]:
            first = min(value.line for value in line.values[after].values())
            raise ProblemError(
                409,
                "history-differs",
                f"line {first}, column label: {after} comes after {before} here, but before it in what is stored or in"
                f" another class of the file; a history has one order",
                field="csv",
            )
    order: list[str] = []
    fresh: dict[str, list[str]] = {}
    waiting: list[str] = []
    for label in line.values:
        if label in places:
            fresh[label], waiting = waiting, []
        else:
            waiting.append(label)
    for label in stored:
        order += (*fresh.get(label, ()), label)
    return order + waiting


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """(line number, cells), without blank lines and the comments before the header."""
    source = text.removeprefix("\ufeff").splitlines(keepends=True)
    comments = next((place for place, line in enumerate(source) if line.strip() and line[0] != "#"), len(source))
    reader = csv.reader(io.StringIO("".join(source[comments:]), newline=""), strict=True)
    while True:
        # A quoted cell may span lines: the row is named by its first one.
        number = comments + reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise _bad(number, None, f"not CSV: {error}") from error
        if cells:
            yield number, cells


def _add(
    lines: dict[tuple[str, str], Line], units: dict[tuple[str, str, str, str], Value], number: int, row: dict[str, str]
) -> None:
    for column in ("kernel", "device_class", "label", "metric", "unit"):
        _check(number, column, row[column])
    for column in ("base", "case"):
        if row[column]:
            _check(number, column, row[column])
    amount, unit = _in_nodes_units(row, _number(number, row["metric"], row["value"]))
    value = Value(
        line=number,
        label=row["label"],
        case=row["case"],
        metric=row["metric"],
        value=amount,
        unit=unit,
        note=one_line(row["note"], _MAX_NOTE),
    )
    history = lines.setdefault(
        (row["kernel"], row["device_class"]), Line(kernel=row["kernel"], device_class=row["device_class"])
    )
    known = units.setdefault((history.kernel, history.device_class, value.case, value.metric), value)
    if known.unit != value.unit:
        raise _bad(number, "unit", f"{value.unit!r}, but {known.unit!r} in line {known.line}; a metric has one unit")
    if _OF_BASELINE.match(value.note):
        twice = history.baselines.setdefault(value.case, {}).setdefault(value.metric, value)
    else:
        twice = history.values.setdefault(value.label, {}).setdefault((value.case, value.metric), value)
        _note_base(history, number, label=value.label, base=row["base"])
    if twice is not value:
        raise _bad(number, "metric", f"{value.metric} of {value.label} on this case is in line {twice.line} already")


def _in_nodes_units(row: dict[str, str], value: float) -> tuple[float, str]:
    unit = row["unit"]
    if unit in _RATIOS:
        return value, "ratio"
    if "=" not in row["case"]:
        return value, unit
    if unit in _TIME_US:
        return value * _TIME_US[unit], "us"
    if unit in _FLOPS:
        kept = "GFLOPS" if row["device_class"] == DeviceClass.CPU else "TFLOPS"
        return (value, unit) if unit == kept else (value * _FLOPS[unit] / _FLOPS[kept], kept)
    return value, unit


def _note_base(history: Line, number: int, *, label: str, base: str) -> None:
    """An empty base says nothing; two different ones contradict each other."""
    if not base:
        return
    if base == label:
        raise _bad(number, "base", f"{base!r} is the revision itself; allowed is an earlier one, or nothing")
    known = history.bases.setdefault(label, base)
    if known != base:
        raise _bad(number, "base", f"{base!r}, but {known!r} above; a revision has one base")
    if base not in history.values:
        raise _bad(
            number, "base", f"{base!r} is no revision of {history.kernel} on {history.device_class} above this line"
        )


_ALLOWED: dict[str, tuple[TypeAdapter[Any], str]] = {
    "kernel": (TypeAdapter(KernelName), "lower-case letters, digits and '_', beginning with a letter"),
    "device_class": (TypeAdapter(DeviceClass), ", ".join(DeviceClass)),
    "label": (TypeAdapter(Label), "up to 63 letters, digits, '_', '.', '+' and '-'"),
    "base": (TypeAdapter(Label), "the label of an earlier revision, or nothing"),
    "case": (TypeAdapter(CaseId), "up to 200 letters, digits and _.,=^-, or nothing"),
    "metric": (TypeAdapter(MetricName), "up to 63 lower-case letters, digits, '_' and '.'"),
    "unit": (TypeAdapter(Annotated[str, StringConstraints(min_length=1, max_length=32)]), "1 to 32 characters"),
}


def _check(number: int, column: str, text: str) -> None:
    adapter, allowed = _ALLOWED[column]
    try:
        adapter.validate_python(text)
    except ValidationError as error:
        raise _bad(number, column, f"{text[:80]!r}; allowed: {allowed}") from error
    if clean(text) != text:
        raise _bad(number, column, f"{text[:80]!r}; control characters are not allowed")


def _number(number: int, metric: str, text: str) -> float:
    try:
        # Python would read `1_0` as ten.
        value = math.nan if "_" in text else float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise _bad(number, "value", f"{text[:80]!r}; allowed: a finite number, such as 0.153 or 1e6")
    if metric in BETTER and value <= 0:
        raise _bad(number, "value", f"{text[:80]!r}; allowed for {metric}: a number above 0")
    return value


def _bad(line: int, column: str | None, what: str) -> ProblemError:
    where = f"line {line}" if column is None else f"line {line}, column {one_line(column, 80) or '(empty)'}"
    return ProblemError(422, "bad-csv", f"{where}: {what}", field="csv")
