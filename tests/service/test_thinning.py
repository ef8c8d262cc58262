import random

from hypothesis import given
from hypothesis import strategies as st

from service.thinning import thin

VALUES = st.lists(st.one_of(st.none(), st.floats(-1e9, 1e9)), max_size=400)


def test_a_line_that_fits_is_left_as_it_is():
    assert thin([3.0, None, 1.0], kept=[False, True, False], points=4) == [0, 1, 2]


def test_a_gap_that_nothing_marks_is_left_out():
    assert thin([3.0, None, 1.0], kept=[False] * 3, points=4) == [0, 2]


def test_one_outlier_among_five_thousand_stays():
    source = random.Random(1)
    values = [100 + source.random() for _ in range(5000)]
    values[3217], values[411] = 300.0, 2.0
    shown = thin(values, kept=[False] * 5000, points=500)
    assert {0, 411, 3217, 4999} <= set(shown)
    assert len(shown) <= 500


def test_every_marked_place_stays_with_or_without_a_value():
    values = [None if place % 97 == 0 else 1.0 for place in range(5000)]
    kept = [place % 97 == 0 or place % 101 == 0 for place in range(5000)]
    shown = thin(values, kept=kept, points=100)
    assert {place for place, marked in enumerate(kept) if marked} <= set(shown)
    assert len(shown) <= 100 + sum(kept)


@given(values=VALUES, points=st.integers(4, 120))
def test_first_last_least_and_greatest_stay_in_order_and_within_the_points(values, points):
    shown = thin(values, kept=[False] * len(values), points=points)
    assert shown == sorted(set(shown))
    assert len(shown) <= points
    known = [place for place, value in enumerate(values) if value is not None]
    assert bool(shown) == bool(known)
    if known:
        assert (shown[0], shown[-1]) == (known[0], known[-1])
        kept = [values[place] for place in shown]
        assert (min(kept), max(kept)) == (min(values[place] for place in known), max(values[place] for place in known))
