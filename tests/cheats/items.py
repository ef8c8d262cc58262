"""The tables of the published cheats and of their relatives. `python -m tests.cheats.items` writes both into
docs/measurement.md."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs" / "measurement.md"
BEGIN, END = "<!-- from tests/cheats/items.toml -->", "<!-- end -->"
BEGIN_RELATIVES, END_RELATIVES = "<!-- relatives, from tests/cheats/items.toml -->", "<!-- end of the relatives -->"


@dataclass(frozen=True)
class Item:
    """`reason`: why there is no test; else `stops` says what stops it."""

    number: int
    title: str
    stops: str = ""
    tests: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class Relative:
    title: str
    stops: str
    tests: tuple[str, ...]


def items() -> list[Item]:
    return [Item(**{**item, "tests": tuple(item.get("tests", ()))}) for item in _read()["item"]]


def relatives() -> list[Relative]:
    return [Relative(**{**each, "tests": tuple(each["tests"])}) for each in _read()["relative"]]


def _read() -> dict[str, list[dict[str, Any]]]:
    return tomllib.loads((ROOT / "tests" / "cheats" / "items.toml").read_text(encoding="utf-8"))


def table() -> str:
    lines = ["| | way to cheat | what stops it | which test shows it |", "|---|---|---|---|"]
    for item in items():
        shown = "<br>".join(_short(test) for test in item.tests) if item.tests else "none: it can't be expressed"
        lines.append(f"| {item.number} | {item.title} | {item.stops or item.reason} | {shown} |")
    return "\n".join(lines)


def relatives_table() -> str:
    rows = (f"| {each.title} | {each.stops} | {'<br>'.join(map(_short, each.tests))} |" for each in relatives())
    return "\n".join(("| kind | what stops it | which test shows it |", "|---|---|---|", *rows))


def _short(test: str) -> str:
    """The file without tests/, and the test's words where its number doesn't say enough."""
    file, _, name = test.partition("::")
    return f"`{file.removeprefix('tests/').removesuffix('.py')}`: {name.removeprefix('test_').replace('_', ' ')}"


def main() -> None:
    page = DOCS.read_text(encoding="utf-8")
    for begin, end, rows in ((BEGIN, END, table()), (BEGIN_RELATIVES, END_RELATIVES, relatives_table())):
        before, _, rest = page.partition(begin)
        page = f"{before}{begin}\n{rows}\n{end}{rest.partition(end)[2]}"
    DOCS.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
