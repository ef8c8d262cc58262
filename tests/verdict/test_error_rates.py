"""What the verdicts promise, by Monte Carlo with fixed seeds. Spreads are those recorded for fresh processes."""

from collections import Counter

import numpy as np
import pytest

import verdict
from contract.outcomes import Verdict
from contract.samples import Comparison
from tests.verdict.simulated import of_values, recorded_pairs, sequential
from verdict.evidence import gather

# sd of ln(head/base) between pairs: a GEMM of 10 us, one of 100 us, power capped, copies of 2 to 18 us.
SPREADS = (0.0006, 0.001, 0.0018, 0.0028)


def rates(rng, *, ratio, spread, evaluations, pairs=16, **options):
    found = Counter()
    for _ in range(evaluations):
        found[sequential(np.log(ratio) + rng.normal(0, spread, pairs), **options)[0]] += 1
    return {name: found[name] / evaluations for name in Verdict}


@pytest.mark.parametrize("spread", SPREADS)
def test_at_exactly_the_allowed_slowdown_slower_is_said_in_at_most_5_of_100_evaluations(spread):
    rng = np.random.default_rng(101)
    assert rates(rng, ratio=1.005, spread=spread, evaluations=700)[Verdict.SLOWER] <= 0.05


@pytest.mark.parametrize("tails", ["normal", "student"])
def test_at_exactly_the_allowed_slowdown_that_holds_without_a_floor(tails):
    """A floor far below the true spread leaves Student's t alone; tails heavier than it assumes make it stricter."""
    rng = np.random.default_rng(151)
    noise = {
        "normal": lambda: rng.normal(0, 1, 16),
        "student": lambda: rng.standard_t(4, 16) / np.sqrt(2),
    }[tails]
    alarms = 0
    for _ in range(1500):
        values = np.log(1.005) + 0.002 * noise()
        alarms += sequential(values, spread_floor=1e-5)[0] is Verdict.SLOWER
    assert alarms / 1500 <= 0.05


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("allowed", [0.001, 0.005])
def test_identical_code_is_never_slower_nor_faster(allowed, spread):
    rng = np.random.default_rng(202)
    found = rates(rng, ratio=1.0, spread=spread, evaluations=400, allowed=allowed)
    assert found[Verdict.SLOWER] == found[Verdict.FASTER] == 0


@pytest.mark.parametrize(
    "values",
    [
        # Processes 0.3, 0.5 and 5 % apart, of which eight happen to lie on one side and close together.
        [0.0010, 0.0016, 0.0019, 0.0022, 0.0024, 0.0027, 0.0031, 0.0034],
        [0.0020, 0.0031, 0.0038, 0.0044, 0.0048, 0.0054, 0.0060, 0.0069],
        [0.026, 0.035, 0.044, 0.049, 0.053, 0.058, 0.066, 0.078],
    ],
)
def test_processes_that_happen_to_agree_are_no_alarm_where_the_margin_is_small_beside_them(values):
    judged = verdict.decide(of_values(values, look=2, allowed=0.001))
    assert judged.verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("spread", [0.003, 0.01])
def test_identical_code_whose_spread_nobody_expected_is_no_alarm(spread):
    """With tails lighter than normal ones, of which eight agree by chance more often."""
    rng = np.random.default_rng(212)
    for values in rng.uniform(-1.732 * spread, 1.732 * spread, (1500, 16)):
        # What the second look would not even come close to needs no judging.
        if abs(np.mean(values[:8])) > 0.6 * spread:
            assert sequential(values, allowed=0.001)[0] is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("beyond", "spread", "time_us"),
    [(0.0015, 0.001, 100.0), (0.003, 0.0006, 10.0), (0.006, 0.0028, 15.0), (0.006, 0.0018, 200.0)],
)
def test_eight_processes_a_side_find_small_slowdowns_95_times_in_100(beyond, spread, time_us):
    rng = np.random.default_rng(303)
    found = rates(rng, ratio=1.005 + beyond, spread=spread, evaluations=600, pairs=8, time_us=time_us)
    assert found[Verdict.SLOWER] >= 0.95


def test_identical_code_is_the_same_within_two_per_mille_95_times_in_100():
    rng = np.random.default_rng(404)
    assert rates(rng, ratio=1.0, spread=0.001, evaluations=300, pairs=8, allowed=0.002)[Verdict.SAME] >= 0.95


def test_a_slowdown_beyond_the_allowed_one_is_hardly_ever_called_the_same():
    rng = np.random.default_rng(505)
    assert rates(rng, ratio=1.0055, spread=0.001, evaluations=500)[Verdict.SAME] <= 0.05


def test_most_identical_code_is_decided_with_four_processes():
    rng = np.random.default_rng(606)
    took = [sequential(rng.normal(0, 0.001, 16))[1] for _ in range(200)]
    assert np.median(took) == 4


@pytest.mark.parametrize("workload", ["wmma_100us", "triton_gemm_11us", "copy_15us", "copy_2us", "triton_gemm_4096"])
def test_resampled_recordings_of_identical_code_raise_no_alarm(workload):
    values = gather(Comparison(unit="us", allowed_slowdown=0.005, pairs=recorded_pairs(workload))).values
    rng = np.random.default_rng(707)
    for _ in range(200):
        assert sequential(rng.choice(values, 16))[0] not in {Verdict.SLOWER, Verdict.FASTER}


@pytest.mark.parametrize("distance", [0.008, 0.13])
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_two_levels_between_processes_raise_no_alarm(distance, share):
    """22.5 or 25.5 ms with 0.05 ms inside a run: each flip used to alarm."""
    rng = np.random.default_rng(808)

    def side():
        return distance * (rng.random(16) < share)

    for _ in range(400):
        values = side() - side() + rng.normal(0, 0.0005, 16)
        assert sequential(values)[0] in {Verdict.SAME, Verdict.INCONCLUSIVE}


@pytest.mark.parametrize("pairs", [4, 5, 6, 8, 16])
def test_two_levels_seen_with_a_final_look_raise_no_alarm(pairs):
    rng = np.random.default_rng(909)
    for _ in range(300):
        levels = 0.13 * ((rng.random(pairs) < 0.5).astype(float) - (rng.random(pairs) < 0.5))
        judged = verdict.decide(of_values(levels + rng.normal(0, 0.001, pairs)))
        assert judged.verdict in {Verdict.SAME, Verdict.INCONCLUSIVE}, (levels, judged)


def test_four_processes_that_all_fell_on_the_slow_level_are_not_believed():
    judged = verdict.decide(of_values([0.13, 0.1302, 0.1299, 0.1301]))
    assert judged.verdict is Verdict.INCONCLUSIVE
    assert "two levels" in judged.reason


def test_a_slowdown_on_top_of_two_levels_is_found_where_every_pair_shows_it():
    rng = np.random.default_rng(1010)
    levels = 0.02 * ((rng.random(16) < 0.5).astype(float) - (rng.random(16) < 0.5))
    assert verdict.decide(of_values(0.3 + levels)).verdict is Verdict.SLOWER


def test_repeating_an_evaluation_until_it_alarms_stays_within_5_of_100():
    """At exactly the allowed slowdown; evidence pools, and what each repeat may spend halves."""
    rng = np.random.default_rng(1111)
    alarms = 0
    for _ in range(150):
        values = np.log(1.005) + rng.normal(0, 0.0015, 96)
        judged = [sequential(values[:16])[0]]
        judged += [verdict.decide(of_values(values[:pooled], look=3)).verdict for pooled in (32, 48, 64, 80, 96)]
        alarms += Verdict.SLOWER in judged
    assert alarms / 150 <= 0.05
