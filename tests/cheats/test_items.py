"""Every published cheat has a test that exists, or a reason, every relative a test; and the page says the same."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from tests.cheats.items import (
    BEGIN,
    BEGIN_RELATIVES,
    DOCS,
    END,
    END_RELATIVES,
    ROOT,
    Item,
    Relative,
    items,
    relatives,
    relatives_table,
    table,
)

PUBLISHED = range(1, 55)


@cache
def names_in(file: str) -> frozenset[str]:
    module = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(module) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def test_every_number_is_there_once() -> None:
    assert [item.number for item in items()] == list(PUBLISHED)


@pytest.mark.parametrize("item", items(), ids=lambda item: str(item.number))
def test_each_has_what_stops_it_and_tests_that_exist_or_a_reason(item: Item) -> None:
    assert bool(item.tests) != bool(item.reason)
    assert bool(item.stops) == bool(item.tests)
    assert missing(item.tests) == []


@pytest.mark.parametrize("relative", relatives(), ids=lambda relative: relative.title[:40])
def test_each_relative_has_what_stops_it_and_tests_that_exist(relative: Relative) -> None:
    assert relative.stops
    assert relative.tests
    assert missing(relative.tests) == []


def missing(tests: tuple[str, ...]) -> list[str]:
    named = [(test, *test.split("::")) for test in tests]
    return [test for test, file, name in named if name not in names_in(file)]


def test_a_test_that_carries_numbers_is_named_by_their_items() -> None:
    named = {test: item.number for item in items() for test in item.tests}
    by_number = {item.number: set(item.tests) for item in items()}
    for file in sorted((ROOT / "tests" / "cheats").glob("test_*.py")):
        for name in names_in(f"tests/cheats/{file.name}"):
            for number in map(int, re.findall(r"(?<=_)(\d\d)(?=_)", name)):
                if f"tests/cheats/{file.name}::{name}" in named:
                    continue
                assert by_number[number], f"{name}: item {number} has a reason and no test"


def test_the_page_holds_both_tables() -> None:
    page = DOCS.read_text(encoding="utf-8")
    assert page.partition(BEGIN)[2].partition(END)[0].strip() == table()
    assert page.partition(BEGIN_RELATIVES)[2].partition(END_RELATIVES)[0].strip() == relatives_table()
