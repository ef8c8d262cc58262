"""The table of the published cheats. `python -m tests.cheats.items` writes it into docs/measurement.md."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs" / "measurement.md"
BEGIN, END = "<!-- from tests/cheats/items.toml -->", "<!-- end -->"


@dataclass(frozen=True)
class Item:
    """`reason`: why there is no test; else `stops` says what stops it."""

    number: int
    title: str
    stops: str = ""
    tests: tuple[str, ...] = ()
    reason: str = ""


def items() -> list[Item]:
    found = tomllib.loads((ROOT / "tests" / "cheats" / "items.toml").read_text(encoding="utf-8"))["item"]
    return [Item(**{**item, "tests": tuple(item.get("tests", ()))}) for item in found]


def table() -> str:
    lines = ["| | way to cheat | what stops it | which test shows it |", "|---|---|---|---|"]
    for item in items():
        shown = "<br>".join(_short(test) for test in item.tests) if item.tests else "none: it can't be expressed"
        lines.append(f"| {item.number} | {item.title} | {item.stops or item.reason} | {shown} |")
    return "\n".join(lines)


def _short(test: str) -> str:
    """The file without tests/, and the test's words where its number doesn't say enough."""
    file, _, name = test.partition("::")
    return f"`{file.removeprefix('tests/').removesuffix('.py')}`: {name.removeprefix('test_').replace('_', ' ')}"


def main() -> None:
    before, _, rest = DOCS.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    DOCS.write_text(f"{before}{BEGIN}\n{table()}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
