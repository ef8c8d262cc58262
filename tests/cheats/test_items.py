"""Every published cheat has a test that exists, or a reason; and the page says the same."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from tests.cheats.items import BEGIN, DOCS, END, ROOT, Item, items, table

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
    for test in item.tests:
        file, _, name = test.partition("::")
        assert name in names_in(file), test


def test_a_test_that_carries_numbers_is_named_by_their_items() -> None:
    named = {test: item.number for item in items() for test in item.tests}
    by_number = {item.number: set(item.tests) for item in items()}
    for file in sorted((ROOT / "tests" / "cheats").glob("test_*.py")):
        for name in names_in(f"tests/cheats/{file.name}"):
            for number in map(int, re.findall(r"(?<=_)(\d\d)(?=_)", name)):
                if f"tests/cheats/{file.name}::{name}" in named:
                    continue
                assert by_number[number], f"{name}: item {number} has a reason and no test"


def test_the_page_holds_the_table() -> None:
    page = DOCS.read_text(encoding="utf-8")
    assert page.partition(BEGIN)[2].partition(END)[0].strip() == table()
