"""False steps on series without any, over 15,000 points of each kind of noise, and what is found."""

import numpy as np
import pytest

from verdict.history import Point, Step, Tracker

POINTS, SERIES = 500, 30


def two_levels(rng, count, share):
    return np.where(rng.random(count) < share, 0.125, 0.0) + rng.normal(0, 0.0005, count)


def alike_neighbours(rng, count):
    noise = rng.normal(0, 0.004, count)
    for place in range(1, count):
        noise[place] += 0.4 * noise[place - 1]
    return noise


NOISE = {
    "normal": lambda rng, count: rng.normal(0, 0.003, count),
    "heavy tails": lambda rng, count: 0.003 * rng.standard_t(3, count),
    "skewed": lambda rng, count: 0.003 * rng.exponential(1.0, count),
    "coarse": lambda rng, count: np.round(rng.normal(0, 1, count)) * 0.005,
    "two levels, even": lambda rng, count: two_levels(rng, count, 0.5),
    "two levels, one rare": lambda rng, count: two_levels(rng, count, 0.1),
    "neighbours alike": alike_neighbours,
}


def steps_of(values, *, least=0.005):
    tracker = Tracker(least=least)
    return [
        (place, change)
        for place, value in enumerate(values)
        for change in tracker.add(Point(key=str(place), value=float(value)))
        if isinstance(change, Step)
    ]


@pytest.mark.parametrize("kind", NOISE)
def test_noise_alone_makes_at_most_one_step_in_15000_points(kind):
    rng = np.random.default_rng(7)
    found = [steps_of(100 * np.exp(NOISE[kind](rng, POINTS))) for _ in range(SERIES)]
    assert sum(map(len, found)) <= 1


def test_long_stays_on_two_levels_are_not_reported_again_and_again():
    """A card that is 13 % slower for days, then not, then again."""
    rng = np.random.default_rng(3)
    stays = np.concatenate([np.full(40, 0.125 * (place % 2)) for place in range(12)])
    assert len(steps_of(100 * np.exp(stays + rng.normal(0, 0.0005, len(stays))))) <= 2


@pytest.mark.parametrize(
    ("slowdown", "sd", "enough"), [(0.01, 0.002, 12), (0.02, 0.002, 10), (0.05, 0.01, 10), (0.005, 0.001, 12)]
)
def test_a_slowdown_of_five_spreads_is_found_within_a_dozen_points_at_its_place(slowdown, sd, enough):
    rng = np.random.default_rng(11)
    waited, places = [], []
    for _ in range(40):
        values = 100 * np.exp(rng.normal(0, sd, 110))
        values[60:] *= 1 + slowdown
        [(found_at, step), *more] = steps_of(values, least=slowdown / 2)
        assert more == []
        waited.append(found_at - 60 + 1)
        places.append(int(step.first) - 60)
    assert np.percentile(waited, 90) <= enough
    assert np.mean(np.array(places) == 0) >= 0.9


@pytest.mark.parametrize("spreads", [1.5, 2.0, 3.0, 5.0])
def test_a_step_names_the_points_that_it_may_as_well_begin_with(spreads):
    rng = np.random.default_rng(21)
    right, named = [], []
    for _ in range(80):
        values = 100 * np.exp(rng.normal(0, 0.004, 130))
        values[70:] *= 1 + 0.004 * spreads
        for _, step in steps_of(values)[:1]:
            right.append("70" in {step.first, *step.perhaps})
            named.append(len(step.perhaps))
    assert np.mean(right) > 0.95
    assert np.mean(named) <= 2 * 20 / spreads**2
