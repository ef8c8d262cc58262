"""Makes README's results from data/*.csv: `python scripts/readme_tables.py` rewrites what stands between the markers.

A file is a history as `kernelgate import` reads it: kernel,device_class,label,base,case,metric,value,unit,note, in the
order of the revisions, after comment lines (`# `); the first of them says where the figures are from. A row whose note
begins with `baseline` is the vendor library's.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cli.text import case_name
from verdict.words import ratio_in_words

ROOT = Path(__file__).parent.parent
BEGIN, END = "<!-- results:begin -->", "<!-- results:end -->"
COLUMNS = ["kernel", "device_class", "label", "base", "case", "metric", "value", "unit", "note"]
# A history of one case reads as a list; several cases read as a matrix of cases and revisions.
FOLDED_ROWS = 8


@dataclass(frozen=True)
class History:
    """One kernel on one device class. `values`: (case, label) -> metric -> value, in the order of the file."""

    kernel: str
    device_class: str
    values: dict[tuple[str, str], dict[str, float]]
    baselines: dict[str, tuple[str, dict[str, float]]]
    bases: dict[str, str]
    notes: dict[str, str]
    units: dict[str, str]

    @property
    def cases(self) -> list[str]:
        return list(dict.fromkeys(case for case, _ in self.values))

    @property
    def labels(self) -> list[str]:
        return list(dict.fromkeys(label for _, label in self.values))

    def of_baseline(self, case: str, label: str) -> float | None:
        """Throughput over the baseline's on the same case, or its time over the revision's."""
        own = self.values.get((case, label), {})
        _, baseline = self.baselines.get(case, ("", {}))
        if "throughput_over_baseline" in own:
            return own["throughput_over_baseline"]
        if "throughput" in own and "throughput" in baseline:
            return own["throughput"] / baseline["throughput"]
        if "time" in own and "time" in baseline:
            return baseline["time"] / own["time"]
        return None


def read(text: str) -> tuple[str, list[History]]:
    """(where the figures are from: the first comment line, the histories)."""
    lines = text.splitlines()
    source = next((line[1:].strip().rstrip(".") for line in lines if line.startswith("#")), "Published elsewhere")
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    if rows.fieldnames != COLUMNS:
        raise ValueError(f"columns are {rows.fieldnames}, not {COLUMNS}")
    histories: dict[tuple[str, str], History] = {}
    for row in rows:
        key = (row["kernel"], row["device_class"])
        history = histories.setdefault(key, History(*key, values={}, baselines={}, bases={}, notes={}, units={}))
        _add(history, row)
    return source, list(histories.values())


def _add(history: History, row: dict[str, str]) -> None:
    if not row["case"]:
        return  # a property of the revision, such as its shared memory
    case, label, value = row["case"], row["label"], float(row["value"])
    history.units[row["metric"]] = row["unit"]
    if row["note"].startswith("baseline"):
        history.baselines.setdefault(case, (label, {}))[1][row["metric"]] = value
        return
    history.values.setdefault((case, label), {})[row["metric"]] = value
    if row["base"]:
        history.bases[label] = row["base"]
    if row["metric"] in {"throughput", "throughput_over_baseline"} and row["note"]:
        history.notes[label] = row["note"]


def table(history: History) -> str:
    return _list(history) if len(history.cases) == 1 and len(history.labels) > 1 else _matrix(history)


def _matrix(history: History) -> str:
    """Share of the baseline, a row a case, a column a revision."""
    rows = []
    for case in history.cases:
        shares = [_share(history.of_baseline(case, label)) for label in history.labels]
        rows.append([case_name(case), *shares, _baseline(history, case)])
    return _markdown(["case", *history.labels, "baseline"], rows)


def _list(history: History) -> str:
    case = history.cases[0]
    rows = []
    for label in history.labels:
        own, base = history.values[case, label], history.bases.get(label, "")
        against = history.values.get((case, base), {})
        ratio = against["throughput"] / own["throughput"] if {"throughput"} <= own.keys() & against.keys() else None
        share = _share(history.of_baseline(case, label))
        change = "" if ratio is None else ratio_in_words(ratio)
        rows.append([label, f"{own['throughput']:.1f}", share, base, change, history.notes.get(label, "")])
    header = ["revision", history.units["throughput"], "of the baseline", "base", "against it", "what changed"]
    written = _markdown(header, rows)
    if len(rows) > FOLDED_ROWS:
        written = f"<details><summary>{len(rows)} revisions of one case</summary>\n\n{written}\n\n</details>"
    return f"Case {case_name(case)}; baseline {_baseline(history, case)}.\n\n{written}"


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _baseline(history: History, case: str) -> str:
    label, values = history.baselines.get(case, ("", {}))
    metric = next((name for name in ("throughput", "time") if name in values), None)
    return f"{label}, {values[metric]:.4g} {history.units[metric]}" if metric else ""


def _markdown(header: list[str], rows: Iterable[list[str]]) -> str:
    rule = ["---", *["---:" if name not in {"base", "what changed"} else "---" for name in header[1:]]]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rule, *rows))


def results(files: Iterable[Path]) -> Iterator[str]:
    """One section a kernel and device class."""
    for file in files:
        source, histories = read(file.read_text())
        for history in histories:
            yield f"**{history.kernel}** on `{history.device_class}`. {source}; [data](data/{file.name})."
            yield table(history)


def rewrite(readme: str, sections: Iterable[str]) -> str:
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"README.md lacks {BEGIN} … {END}")
    return f"{before}{BEGIN}\n\n" + "\n\n".join(sections) + f"\n\n{END}{after}"


def history_files(folder: Path) -> list[Path]:
    """Measured ones first, then published ones."""
    files = [path for path in sorted(folder.glob("*.csv")) if ",".join(COLUMNS) in path.read_text()]
    return sorted(files, key=lambda path: path.name.startswith("published"))


def main() -> int:
    """With --check: exit 1 if README.md is not what the data make it."""
    readme = ROOT / "README.md"
    written = rewrite(readme.read_text(), results(history_files(ROOT / "data")))
    if "--check" in sys.argv[1:]:
        return int(written != readme.read_text())
    readme.write_text(written)
    return 0


if __name__ == "__main__":
    sys.exit(main())
