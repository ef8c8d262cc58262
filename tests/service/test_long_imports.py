"""Imports of long histories: what one more revision costs doesn't grow with the history."""

import pytest
import sqlalchemy as sa

from tests.service.test_imports import bring, rows


def a_saw_tooth(revisions: int, *, up: float, down: float, kernel: str = "teeth") -> str:
    """Every second revision is slower than the one before it, every other one faster; each names the one before."""
    lines, value = [], 100.0
    for place in range(revisions):
        base = f"v{place - 1}" if place else ""
        lines.append(f"{kernel},h200,v{place},{base},m=1,time,{value:.6f},us,")
        value *= up if place % 2 == 0 else down
    return rows(*lines)


def statements_of(api, csv: str) -> int:
    counted = []

    def count(*_):
        counted.append(1)

    sa.event.listen(sa.Engine, "before_cursor_execute", count)
    try:
        bring(api, csv)
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", count)
    return len(counted)


def regressions(api, **query):
    return api.ok("GET", "/projects/local/regressions", params={"limit": 100, **query})["items"]


def test_of_a_saw_tooth_each_tooth_is_one_regression_that_the_next_revision_fixed(api):
    bring(api, a_saw_tooth(21, up=1.1, down=1 / 1.1))
    found = regressions(api)
    assert len(found) == 10
    assert {each["state"] for each in found} == {"fixed"}
    assert {each["revision"]["label"]: each["fixed_by"]["label"] for each in found}["v3"] == "v4"


def test_a_stair_leaves_every_step_open_with_where_the_last_revision_stands(api):
    bring(api, a_saw_tooth(12, up=1.1, down=0.95))
    found = {each["revision"]["label"]: each for each in regressions(api)}
    assert len(found) == 6
    assert {each["state"] for each in found.values()} == {"new"}
    [first] = found["v1"]["cases"]
    assert round(first["now"], 3) == round((1.1 * 0.95) ** 5 * 1.1, 3)


@pytest.mark.parametrize(("up", "down"), [(1.1, 1 / 1.1), (1.1, 0.95)])
def test_twice_as_many_teeth_cost_about_twice_as_much(api, up, down):
    short = statements_of(api, a_saw_tooth(20, up=up, down=down, kernel="short"))
    long = statements_of(api, a_saw_tooth(40, up=up, down=down, kernel="long"))
    assert long < 2.2 * short
