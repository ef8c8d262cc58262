"""Measures what the verdicts promise, on recorded pairs: `make study`.

Writes data/study_results.json, docs/plots/*.svg, and the tables between the markers of docs/measurement.md; with
--check it only says whether the page holds what the results say. On a machine with a GPU,
`python -m scripts.study.record` records more pairs first (see there).
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from scripts.study import against_peers, figures, recordings, tables

ROOT = Path(__file__).parents[2]
DATA, PAGE = ROOT / "data", ROOT / "docs" / "measurement.md"
RESULTS = DATA / "study_results.json"
BEGIN, END = "<!-- study:begin -->", "<!-- study:end -->"
SEED = 20261201


def study() -> dict[str, object]:
    workloads = recordings.read(DATA)
    fresh = [each for each in workloads if each.fresh]
    single_calls = [each for each in workloads if each.source == "h200_percall"]
    return {
        **figures.all_of(workloads, seed=SEED, ladders=DATA / "h200_ladders.json.gz"),
        "peers": {
            "fresh": against_peers.compare(fresh, seed=SEED),
            "single_calls": against_peers.compare(single_calls, seed=SEED),
        },
    }


def with_tables(page: str, results: dict[str, object]) -> str:
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{tables.page(results)}\n\n{END}{after}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where the page is behind the results")
    arguments = parser.parse_args()
    if arguments.check:
        page = PAGE.read_text(encoding="utf-8")
        return int(page != with_tables(page, json.loads(RESULTS.read_text(encoding="utf-8"))))
    from scripts.study import plots  # noqa: PLC0415 - needs matplotlib

    results = study()
    RESULTS.write_text(json.dumps(results, indent=1, default=float) + "\n", encoding="utf-8")
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    plots.draw(results, ROOT / "docs" / "plots")
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")
    print(tables.page(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
