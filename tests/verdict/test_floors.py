from datetime import UTC, datetime

import pytest

from contract.samples import Comparison, Pair, Round
from contract.spreads import Spread
from verdict.evidence import gather
from verdict.floors import CAPPED, COPY, LEAST, default_floor, learnt_floor


def spread(time_us=100.0, bytes_a_call=1e6, *, sd=0.001, pairs=8, capped=False):
    return Spread(
        kernel="hgemm",
        case="m=1,n=1,k=1",
        time_us=time_us,
        bytes_a_call=bytes_a_call,
        capped=capped,
        sd=sd,
        pairs=pairs,
        measured_at=datetime.now(UTC),
    )


def floor(*spreads, time_us=100.0, bytes_a_call=1e6, capped=False):
    return learnt_floor(spreads, time_us=time_us, bytes_a_call=bytes_a_call, capped=capped)


def test_a_floor_is_the_spread_of_trusted_code_like_the_call():
    assert floor(spread(sd=0.0013)) == pytest.approx(0.0013)


def test_several_measurements_count_by_their_pairs():
    assert floor(spread(sd=0.001), spread(sd=0.002)) == pytest.approx((2.5e-6) ** 0.5)
    many, few = spread(sd=0.001, pairs=16), spread(sd=0.002, pairs=4)
    assert floor(many, few) == pytest.approx(((15 * 1e-6 + 3 * 4e-6) / 18) ** 0.5)


@pytest.mark.parametrize(
    "other", [{"time_us": 10.0}, {"time_us": 1000.0}, {"bytes_a_call": 1e8}, {"capped": True}, {"pairs": 4}]
)
def test_calls_of_another_duration_other_bytes_or_under_a_power_cap_and_few_pairs_say_nothing(other):
    assert floor(spread(**other)) is None


def test_nothing_learnt_is_no_floor_and_no_floor_is_nothing():
    assert floor() is None
    assert floor(spread(sd=0.0)) == LEAST


def test_rounds_that_are_far_apart_are_those_of_a_power_cap_or_a_disturbed_machine():
    assert default_floor("us", 200.0) == default_floor("us", 200.0, unrest=0.004) == 0.001
    assert default_floor("us", 200.0, unrest=0.006) == CAPPED
    assert default_floor("us", 3.0, unrest=0.006) > CAPPED


def test_short_calls_whose_rounds_are_apart_as_those_of_copies_are_given_their_spread():
    assert default_floor("us", 15.0, unrest=0.002) < default_floor("us", 15.0, unrest=0.003) == COPY
    assert default_floor("us", 100.0, unrest=0.003) == default_floor("us", 100.0)


@pytest.mark.parametrize(("apart", "floor"), [(0.001, 0.001), (0.02, CAPPED)])
def test_evidence_without_a_floor_of_its_own_takes_it_from_its_rounds(apart, floor):
    rounds = tuple(Round(base=(200.0,), head=(200.0 * (1 + apart * side),)) for side in (-1, 1, 1, -1))
    assert gather(Comparison(unit="us", allowed_slowdown=0.005, pairs=(Pair(rounds=rounds),) * 8)).floor == floor


@pytest.mark.parametrize(("time_us", "promised_beyond"), [(4.6, 0.003), (38.0, 0.0015)])
def test_a_call_a_little_shorter_than_promised_has_the_floor_of_those_that_are(time_us, promised_beyond):
    """By the floor alone: the second look's bound, and what chance takes from the mean 95 times in 100."""
    floor = default_floor("us", time_us)
    assert (1.81 + 1.645) * floor / 8**0.5 < promised_beyond
