from datetime import UTC, datetime

import pytest

from contract.spreads import Spread
from verdict.floors import LEAST, learnt_floor


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
