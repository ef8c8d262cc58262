"""What went wrong for others, each with the right value. Samples are simulated as the reports describe them."""

import numpy as np
import pytest

import verdict
from contract.outcomes import Verdict
from contract.samples import Comparison, Pair, Round
from tests.verdict.simulated import of_processes, of_values, sequential


def rounds_of(base, head):
    return tuple(Round(base=tuple(b), head=tuple(h)) for b, h in zip(base, head, strict=True))


def comparison(pairs, allowed=0.005):
    return Comparison(unit="us", allowed_slowdown=allowed, pairs=tuple(pairs))


def test_variation_between_runs_of_15_percent_is_not_hidden_by_quiet_runs():
    """A Welch test on samples within a run alarmed in 41 to 60 % of comparisons."""
    rng = np.random.default_rng(1)
    for _ in range(60):
        judged = verdict.decide(of_processes(rng, pairs=8, rounds=10, bursts=4, within=0.028, between=0.15))
        assert judged.verdict is Verdict.INCONCLUSIVE


def test_identical_code_that_is_94_percent_apart_once_is_no_alarm():
    values = [0.0004, -0.0003, np.log(1.94), 0.0002, -0.0001, 0.0003, -0.0004, 0.0]
    assert verdict.decide(of_values(values)).verdict is Verdict.INCONCLUSIVE


def test_a_change_of_documentation_that_one_run_calls_13_percent_slower_is_not_blocked():
    values = [-np.log(1 - 0.136), -0.0003, 0.0001, 0.0002]
    assert verdict.decide(of_values(values, look=1)).verdict is Verdict.INCONCLUSIVE


def test_absolute_speed_may_move_13_percent_between_pairs():
    rng = np.random.default_rng(2)
    pairs = []
    for _ in range(8):
        level = 50.0 * np.exp(rng.normal(0, 0.13))
        pairs.append(Pair(rounds=rounds_of(*(level * np.exp(rng.normal(0, 5e-4, (8, 2))) for _ in "bh"))))
    assert verdict.decide(comparison(pairs)).verdict is Verdict.SAME


def test_a_clock_that_falls_by_15_percent_during_a_pair_cancels_inside_its_rounds():
    rng = np.random.default_rng(3)
    pairs = []
    for _ in range(8):
        turns = np.linspace(1.0, 1.0 / 0.85, 32).reshape(8, 4) * np.exp(rng.normal(0, 5e-4, (8, 4)))
        # base head head base: a drift that is straight within a round adds the same to both sides.
        pairs.append(Pair(rounds=rounds_of(50.0 * turns[:, [0, 3]], 50.0 * turns[:, [1, 2]])))
    assert verdict.decide(comparison(pairs)).verdict is Verdict.SAME


def test_the_order_of_the_slots_leaves_no_bias_when_it_is_balanced():
    """Later runs of a job are slower than earlier ones: here each place in the round by 0.5 % more."""
    places = 50.0 * np.array([1.0, 1.005, 1.010, 1.015])
    pairs = [Pair(rounds=rounds_of([places[[0, 3]]] * 8, [places[[1, 2]]] * 8)) for _ in range(8)]
    judged = verdict.decide(comparison(pairs))
    assert judged.ratio == pytest.approx(1.0, abs=1e-4)
    assert judged.verdict is Verdict.SAME


def test_rounds_that_were_disturbed_are_outvoted():
    rng = np.random.default_rng(4)
    pairs = []
    for _ in range(8):
        base, head = (50.0 * np.exp(rng.normal(0, 5e-4, (9, 2))) for _ in "bh")
        head[:3] *= 1.3
        pairs.append(Pair(rounds=rounds_of(base, head)))
    assert verdict.decide(comparison(pairs)).verdict is Verdict.SAME


def test_power_capped_turns_of_alternating_order_keep_a_true_ratio_of_8_percent():
    """One turn a process; whoever comes second finds a warmer card and takes 0.4 % longer."""
    rng = np.random.default_rng(5)
    pairs = []
    for place in range(8):
        base, head = (200.0 * np.exp(rng.normal(0, 0.0018 / 2**0.5) + rng.normal(0, 0.02, 24)) for _ in "bh")
        base, head = base * (1.0 + 0.004 * (place % 2)), head * 1.08 * (1.0 + 0.004 * (1 - place % 2))
        pairs.append(Pair(rounds=(Round(base=tuple(base), head=tuple(head)),)))
    judged = verdict.decide(comparison(pairs))
    assert judged.verdict is Verdict.SLOWER
    assert judged.ratio == pytest.approx(1.08, abs=0.01)


def test_noise_that_only_the_head_shows_widens_its_interval_and_is_no_alarm():
    rng = np.random.default_rng(6)
    widths = []
    for noise in (0.0005, 0.03):
        values = rng.normal(0, 0.0005, 8) + rng.normal(0, noise, 8)
        judged = verdict.decide(of_values(values))
        widths.append(judged.interval[1] - judged.interval[0])
        assert judged.verdict in {Verdict.SAME, Verdict.INCONCLUSIVE}
    assert widths[1] > 10 * widths[0]


def test_noise_that_only_the_head_shows_hides_no_plain_slowdown():
    rng = np.random.default_rng(7)
    assert verdict.decide(of_values(0.5 + rng.normal(0, 0.03, 16))).verdict is Verdict.SLOWER


def test_five_rows_in_a_hundred_are_not_flagged_either_way():
    """Gates that flag 5 to 20 % of rows get ignored: 40 cases of identical code, five evaluations."""
    rng = np.random.default_rng(8)
    for _ in range(5):
        cases = {str(case): of_values(rng.normal(0, 0.001, 8), look=2) for case in range(40)}
        assert {judged.verdict for judged in verdict.decide_all(cases).values()} == {Verdict.SAME}


def test_a_bimodal_benchmark_is_inconclusive_and_says_why():
    values = [0.1252, 0.0001, 0.1251, 0.1249, 0.1250, 0.1251, 0.1252, 0.1248]
    judged = verdict.decide(of_values(values))
    assert judged.verdict is Verdict.INCONCLUSIVE


def test_measuring_again_until_lucky_is_bounded_by_the_looks():
    """At the allowed slowdown itself, three looks together still say `slower` in at most 5 of 100."""
    rng = np.random.default_rng(9)
    alarms = [sequential(np.log(1.005) + rng.normal(0, 0.0015, 16))[0] is Verdict.SLOWER for _ in range(500)]
    assert np.mean(alarms) <= 0.05
