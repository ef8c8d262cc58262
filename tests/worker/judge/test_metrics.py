import math

import pytest

from worker.judge.metrics import inverted, median_interval, of_processes


@pytest.mark.parametrize(
    ("count", "ranks"),
    # Tables of the sign test: 8 values cover with 99.2 %, the inner 6 with 93.0 % only; of 16 the 4th to the 13th do.
    [(2, (0, 1)), (4, (0, 3)), (8, (0, 7)), (9, (1, 7)), (16, (3, 12))],
)
def test_the_interval_of_a_median_has_the_ranks_of_the_sign_test(count: int, ranks: tuple[int, int]) -> None:
    values = [float(value) for value in range(count)]
    assert median_interval(values) == (float(ranks[0]), float(ranks[1]))


def test_one_disturbed_process_does_not_move_the_value() -> None:
    metric = of_processes("time", "us", [10.0, 10.1, 9.9, 5000.0])
    assert metric.value == pytest.approx(10.05)


def test_a_single_process_has_no_interval() -> None:
    metric = of_processes("time", "us", [3.0])
    assert (metric.value, metric.low, metric.high) == (3.0, None, None)


def test_a_rate_inverts_value_and_interval() -> None:
    time = of_processes("time", "us", [1.0, 2.0, 4.0])
    rate = inverted(time, "throughput", "GFLOPS", 8.0)
    assert (rate.low, rate.value, rate.high) == (2.0, 4.0, 8.0)
    assert math.isclose(rate.samples[0], 8.0)
