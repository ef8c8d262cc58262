import json
import time

import numpy as np
import pytest

from verdict.history import Outlier, Point, SegmentStart, Step, Tracker, changes_of


def points(values, *, segments=None):
    segments = segments or [{}] * len(values)
    return [
        Point(key=f"r{place}", value=None if value is None else float(value), segment=segment)
        for place, (value, segment) in enumerate(zip(values, segments, strict=True))
    ]


def noisy(count, *, sd=0.002, level=100.0, seed=1):
    return level * np.exp(np.random.default_rng(seed).normal(0.0, sd, count))


def steps(changes):
    return [change for change in changes if isinstance(change, Step)]


def test_a_slowdown_that_stays_is_one_step_at_its_revision():
    values = noisy(60)
    values[30:] *= 1.02
    [step] = changes_of(points(values))
    assert (step.first, step.after, step.unmeasured) == ("r30", "r29", ())
    assert step.ratio == pytest.approx(1.02, abs=0.002)
    assert step.low < 1.02 < step.high
    assert step.before_value == pytest.approx(100, rel=0.002)
    assert step.after_value == pytest.approx(102, rel=0.002)


@pytest.mark.parametrize("seed", [29, 149, 250, 347])
def test_a_step_is_found_where_the_first_points_gave_a_poor_level(seed):
    """The sum has been running for dozens of points when the step comes, and the run is taken for the level amid it."""
    values = noisy(120, seed=seed)
    values[60:] *= 1.05
    [step] = changes_of(points(values))
    assert step.first == "r60"


def test_an_improvement_is_a_step_below_one():
    values = noisy(60)
    values[30:] /= 1.24
    [step] = changes_of(points(values))
    assert step.ratio == pytest.approx(1 / 1.24, abs=0.003)


def test_where_higher_is_better_a_smaller_value_is_slower():
    values = noisy(60, level=500.0)
    values[30:] /= 1.02
    [step] = changes_of(points(values), better="higher")
    assert step.ratio == pytest.approx(1.02, abs=0.002)
    assert step.after_value == pytest.approx(500 / 1.02, rel=0.002)


@pytest.mark.parametrize("length", [1, 2])
@pytest.mark.parametrize("size", [1.05, 2.0, 0.5])
def test_one_or_two_points_away_are_an_outlier_and_no_step(length, size):
    values = noisy(60)
    values[40 : 40 + length] *= size
    [outlier] = changes_of(points(values))
    assert isinstance(outlier, Outlier)
    assert outlier.keys == tuple(f"r{place}" for place in range(40, 40 + length))
    assert outlier.ratio == pytest.approx(size, rel=0.01)


def test_the_newest_points_away_are_pending_until_they_are_enough():
    tracker = Tracker()
    values = noisy(40)
    values[37:] *= 1.1
    for point in points(values[:39]):
        assert tracker.add(point) == []
    assert (tracker.pending.first, tracker.pending.points) == ("r37", 2)
    assert tracker.pending.ratio == pytest.approx(1.1, rel=0.01)


def test_revisions_that_were_not_measured_are_named_as_suspects():
    values = list(noisy(60))
    values[30:] = [value * 1.03 for value in values[30:]]
    values[28] = values[29] = None
    values[45] = float("nan")
    [step] = changes_of(points(values))
    assert (step.after, step.unmeasured, step.first) == ("r27", ("r28", "r29"), "r30")


def test_a_new_driver_starts_a_segment_and_is_no_step():
    values = noisy(80)
    values[40:] *= 1.04
    segments = [{"driver": "580"}] * 40 + [{"driver": "585"}] * 40
    assert changes_of(points(values, segments=segments)) == [
        SegmentStart(key="r40", changed={"driver": ("580", "585")})
    ]


def test_a_step_inside_the_new_segment_is_found():
    values = noisy(90)
    values[40:] *= 1.04
    values[65:] *= 1.02
    segments = [{"driver": "580"}] * 40 + [{"driver": "585"}] * 50
    [step] = steps(changes_of(points(values, segments=segments)))
    assert (step.first, step.ratio) == ("r65", pytest.approx(1.02, abs=0.003))


def test_nodes_that_take_turns_are_compared_with_themselves():
    values = noisy(120)
    values[1::2] *= 1.08
    segments = [{"node": "a"}, {"node": "b"}] * 60
    assert steps(changes_of(points(values, segments=segments))) == []
    values[61:] *= 1.03
    found = steps(changes_of(points(values, segments=segments)))
    assert [step.first for step in found] == ["r61", "r62"]
    assert [step.ratio for step in found] == pytest.approx([1.03, 1.03], abs=0.003)


def test_two_steps_are_two():
    values = noisy(150)
    values[50:] *= 1.02
    values[100:] /= 1.03
    assert [step.first for step in steps(changes_of(points(values)))] == ["r50", "r100"]


def test_a_revert_ends_the_step():
    values = noisy(150)
    values[50:80] *= 1.02
    assert [(step.first, step.ratio > 1) for step in steps(changes_of(points(values)))] == [
        ("r50", True),
        ("r80", False),
    ]


def test_a_change_under_the_one_that_matters_is_none():
    values = noisy(400, sd=0.0005)
    values[200:] *= 1.003
    assert changes_of(points(values), least=0.005) == []
    assert [step.first for step in steps(changes_of(points(values), least=0.002))] == ["r200"]


def test_slow_growth_is_found_once_it_adds_up():
    values = noisy(200, sd=0.001) * np.exp(np.linspace(0, 0.04, 200))
    found = steps(changes_of(points(values)))
    assert found
    assert all(step.ratio > 1 for step in found)


def test_constant_values_then_other_constant_values():
    [step] = changes_of(points([100.0] * 20 + [101.0] * 20))
    assert (step.first, step.ratio) == ("r20", pytest.approx(1.01))


def test_a_short_series_or_none_has_no_steps():
    assert changes_of([]) == []
    assert changes_of(points([1.0])) == []
    assert changes_of(points([100.0, 150.0, 80.0, 120.0])) == []
    assert changes_of(points([None, float("inf"), 0.0, -1.0, float("nan")])) == []


def test_the_same_points_give_the_same_changes_and_a_saved_state_goes_on():
    values = noisy(160)
    values[80:] *= 1.02
    values[120] *= 1.5
    values[130:] /= 1.05
    whole = changes_of(points(values))
    state, found = Tracker().dump(), []
    for point in points(values):
        tracker = Tracker.load(json.loads(json.dumps(state)), better="lower", least=0.005)
        found += tracker.add(point)
        state = tracker.dump()
    assert found == whole
    assert len(whole) == 3


@pytest.mark.alone
def test_5000_points_take_less_than_200_ms_and_one_more_a_fraction():
    values = noisy(5000)
    values[2500:] *= 1.01
    series = points(values)
    tracker = Tracker()
    started = time.perf_counter()
    found = [change for point in series for change in tracker.add(point)]
    whole_s = time.perf_counter() - started
    assert [step.first for step in steps(found)] == ["r2500"]
    assert whole_s < 0.2
    started = time.perf_counter()
    for place in range(100):
        tracker.add(Point(key=f"more{place}", value=101.0))
    assert (time.perf_counter() - started) / 100 < whole_s / 100
    assert len(json.dumps(tracker.dump())) < 30_000


def test_a_slowdown_that_was_taken_back_and_comes_again_much_later_is_a_step():
    values = noisy(500)
    for place, factor in ((100, 1.03), (220, 1 / 1.03), (340, 1.03)):
        values[place:] *= factor
    assert [step.first for step in steps(changes_of(points(values)))] == ["r100", "r220", "r340"]


def test_steps_of_other_heights_soon_after_each_other_are_not_two_levels():
    values = noisy(200)
    for place, factor in ((40, 1.02), (80, 1 / 1.02), (120, 1.03), (160, 1 / 1.03)):
        values[place:] *= factor
    assert [step.first for step in steps(changes_of(points(values)))] == ["r40", "r80", "r120", "r160"]
