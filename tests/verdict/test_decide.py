import math
import time

import numpy as np
import pytest

import verdict
from contract.outcomes import Verdict
from contract.samples import Comparison, Pair, Round
from tests.verdict.simulated import of_processes, of_values, recorded_pairs, slowed

QUIET = (0.0004, -0.0003, 0.0002, -0.0005, 0.0001, 0.0006, -0.0002, -0.0003)


def test_the_ratio_is_head_over_base_and_lies_in_its_interval():
    judged = verdict.decide(of_values([0.02 + value for value in QUIET]))
    assert judged.ratio == pytest.approx(math.exp(0.02), rel=1e-6)
    assert judged.interval[0] < judged.ratio < judged.interval[1]


@pytest.mark.parametrize(
    ("shift", "expected"),
    [(0.02, Verdict.SLOWER), (-0.02, Verdict.FASTER), (0.0, Verdict.SAME), (0.005, Verdict.INCONCLUSIVE)],
)
def test_the_interval_decides_against_margins_of_the_allowed_slowdown(shift, expected):
    judged = verdict.decide(of_values([shift + value for value in QUIET], allowed=0.005))
    assert judged.verdict is expected, judged.reason


def test_where_higher_is_better_less_is_slower_and_the_ratio_stays_one_of_times():
    judged = verdict.decide(of_values([-0.02 + value for value in QUIET], better="higher"))
    assert judged.verdict is Verdict.SLOWER
    assert judged.ratio == pytest.approx(math.exp(0.02), rel=1e-3)


def test_an_improvement_of_a_quarter_is_faster_whichever_way_is_better():
    """A 24 % improvement failed a gate that took more for worse."""
    assert verdict.decide(of_values([math.log(0.76) + v for v in QUIET])).verdict is Verdict.FASTER
    assert verdict.decide(of_values([math.log(1.24) + v for v in QUIET], better="higher")).verdict is Verdict.FASTER


def test_the_same_samples_give_the_same_answer():
    comparison = of_processes(np.random.default_rng(5), seed=7)
    assert verdict.decide(comparison) == verdict.decide(comparison.model_copy(deep=True))


def test_a_spread_floor_widens_what_the_samples_call_certain():
    values = [0.006] * 8
    certain = verdict.decide(of_values(values, spread_floor=0.0001))
    doubtful = verdict.decide(of_values(values, spread_floor=0.01))
    assert certain.verdict is Verdict.SLOWER
    assert doubtful.verdict is Verdict.INCONCLUSIVE
    assert doubtful.interval[1] - doubtful.interval[0] > certain.interval[1] - certain.interval[0]


def test_spread_that_the_samples_show_is_not_narrowed_by_a_small_floor():
    noisy = [0.03, -0.02, 0.01, -0.03, 0.02, -0.01, 0.025, -0.015]
    assert verdict.decide(of_values(noisy, spread_floor=1e-6)).verdict is Verdict.INCONCLUSIVE


def test_calls_of_two_microseconds_have_a_larger_default_floor_than_long_ones():
    widths = []
    for time_us in (2.0, 100.0, 5000.0):
        low, high = verdict.decide(of_values([0.0] * 8, time_us=time_us)).interval
        widths.append(high - low)
    assert widths[0] > widths[1] > widths[2] > 0


def test_units_of_time_mean_the_same_floor():
    micro = of_values([0.0] * 8, time_us=3000.0)
    milli = of_values([0.0] * 8, time_us=3.0).model_copy(update={"unit": "ms"})
    assert verdict.decide(micro).interval == pytest.approx(verdict.decide(milli).interval)


def test_every_verdict_on_enough_processes_says_what_it_could_have_detected():
    quiet, noisy = of_values(QUIET), of_values([value * 20 for value in QUIET])
    assert 0.005 < verdict.decide(quiet).smallest_detectable < 0.007
    assert verdict.decide(noisy).smallest_detectable > 0.012


def test_the_smallest_detectable_slowdown_is_detected_95_times_in_100():
    rng = np.random.default_rng(11)
    claimed = np.median([verdict.decide(of_values(rng.normal(0, 0.001, 8))).smallest_detectable for _ in range(200)])
    found = [
        verdict.decide(of_values(math.log1p(claimed) + rng.normal(0, 0.001, 8))).verdict is Verdict.SLOWER
        for _ in range(400)
    ]
    assert 0.92 < np.mean(found) < 0.995


def test_an_early_look_needs_more_than_a_final_one():
    values = [0.0012 * sign for sign in (1, -1, 1, -1, 1, -1, 1, -1)]
    early, final = (verdict.decide(of_values(values[:4], allowed=0.003, look=look)) for look in (1, None))
    assert early.verdict is Verdict.INCONCLUSIVE
    assert "more processes" in early.reason
    assert early.interval[1] > final.interval[1]


def test_plain_answers_come_at_the_first_look():
    assert verdict.decide(of_values(QUIET[:4], look=1)).verdict is Verdict.SAME
    assert verdict.decide(of_values([math.log(3.0) + v for v in QUIET[:4]], look=1)).verdict is Verdict.SLOWER


def test_cases_of_one_evaluation_share_their_alpha():
    """A p-value that suffices alone doesn't as one of forty: forty tries bring it by chance."""
    edge = of_values([0.0063 + 2.2 * value for value in QUIET])
    assert verdict.decide(edge).verdict is Verdict.SLOWER
    same = {f"case{number}": of_values(QUIET) for number in range(39)}
    together = verdict.decide_all({"edge": edge, **same})
    assert together["edge"].verdict is Verdict.INCONCLUSIVE
    assert all(together[name].verdict is Verdict.SAME for name in same)


def test_a_plain_slowdown_in_one_of_many_cases_is_found():
    """'No relevant changes' was said while a whole category was 100 % slower."""
    cases = {f"case{number}": of_values(QUIET) for number in range(24)}
    cases["doubled"] = of_values([math.log(2.0) + value for value in QUIET])
    judged = verdict.decide_all(cases)
    assert judged["doubled"].verdict is Verdict.SLOWER
    assert list(judged) == list(cases)


def test_holm_gives_later_cases_what_earlier_ones_leave():
    """Three cases: the strict third of alpha is passed once, then a half, then the whole."""
    plain = [math.log(1.5) + value for value in QUIET]
    edge = [0.0066 + 1.55 * value for value in QUIET]
    alone = verdict.decide_all({"edge": of_values(edge)})["edge"]
    after = verdict.decide_all({"a": of_values(plain), "b": of_values(plain), "edge": of_values(edge)})["edge"]
    beside = verdict.decide_all({"a": of_values(QUIET), "b": of_values(QUIET), "edge": of_values(edge)})["edge"]
    assert after == alone
    assert beside.interval[0] < alone.interval[0]


def test_ten_pairs_of_forty_rounds_of_ten_calls_take_under_50_ms():
    comparison = of_processes(np.random.default_rng(3), pairs=10, rounds=40, bursts=10)
    verdict.decide(comparison)
    took = []
    for _ in range(5):
        start = time.perf_counter()
        verdict.decide(comparison)
        took.append(time.perf_counter() - start)
    assert min(took) < 0.05


@pytest.mark.parametrize("workload", ["wmma_100us", "triton_gemm_11us", "copy_15us", "copy_2us", "triton_gemm_4096"])
def test_recorded_identical_code_is_never_slower_and_a_recorded_slowdown_of_two_percent_is(workload):
    pairs = recorded_pairs(workload)
    comparison = Comparison(unit="us", allowed_slowdown=0.005, pairs=pairs)
    assert verdict.decide(comparison).verdict is Verdict.SAME
    worse = comparison.model_copy(update={"pairs": tuple(slowed(pair, 1.02) for pair in pairs)})
    assert verdict.decide(worse).verdict is Verdict.SLOWER
    better = comparison.model_copy(update={"pairs": tuple(slowed(pair, 0.98) for pair in pairs)})
    assert verdict.decide(better).verdict is Verdict.FASTER


def test_a_round_value_is_robust_against_one_sample_that_was_interrupted():
    calm = tuple(100.0 + 0.01 * place for place in range(8))
    hit = (*calm[:7], 900.0)
    pair = Pair(rounds=(Round(base=calm, head=hit),) * 3)
    judged = verdict.decide(Comparison(unit="us", allowed_slowdown=0.005, pairs=(pair,) * 8))
    assert judged.ratio == pytest.approx(1.0, abs=1e-3)
