"""Whatever arrives, the answer is `inconclusive` with a reason, never a crash and never an alarm."""

import math

import pytest

import verdict
from contract.outcomes import Verdict
from contract.samples import Comparison, Pair, Round
from tests.verdict.simulated import of_values


def comparison(pairs, **options):
    return Comparison(unit="us", allowed_slowdown=0.005, pairs=tuple(pairs), **options)


def good_pair(head=10.0):
    return Pair(rounds=(Round(base=(10.0, 10.01), head=(head, head)),))


def test_no_pairs():
    judged = verdict.decide(comparison([]))
    assert (judged.verdict, judged.ratio, judged.interval) == (Verdict.INCONCLUSIVE, None, None)
    assert judged.reason == "there are no pairs of processes"


@pytest.mark.parametrize("pairs", [1, 2, 3])
def test_fewer_than_four_processes_tell_nothing_however_far_apart(pairs):
    """Two repetitions gave a false improvement; one gave an empty score."""
    judged = verdict.decide(comparison([good_pair(head=30.0)] * pairs))
    assert judged.verdict is Verdict.INCONCLUSIVE
    assert judged.ratio == pytest.approx(3.0, rel=1e-3)
    assert "at least 4 are needed" in judged.reason


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("side", ["base", "head"])
def test_a_sample_that_is_no_positive_number_is_named(value, side):
    """A throttle filter discarded every sample and the result was NaN."""
    bad = Round(**{"base": (10.0, 10.0), "head": (10.0, 10.0), side: (10.0, value)})
    pairs = [good_pair(head=20.0)] * 7 + [Pair(rounds=(Round(base=(10.0,), head=(20.0,)), bad))]
    judged = verdict.decide(comparison(pairs))
    assert judged.verdict is Verdict.INCONCLUSIVE
    assert judged.reason == f"pair 8, round 2: a sample of the {side} is {value:g}"


def test_a_round_without_samples_of_a_side_is_named():
    pairs = [good_pair()] * 3 + [Pair(rounds=(Round(base=(10.0,), head=()),))]
    assert verdict.decide(comparison(pairs)).reason == "pair 4, round 1: no samples of the head"


def test_a_pair_without_rounds_is_named():
    assert verdict.decide(comparison([Pair(rounds=())])).reason == "pair 1 has no rounds"


@pytest.mark.parametrize("factor", [1000.0, 1e-3, 1e6])
def test_a_changed_unit_is_no_change_of_speed(factor):
    judged = verdict.decide(comparison([good_pair(head=10.0 * factor)] * 8))
    assert judged.verdict is Verdict.INCONCLUSIVE
    assert "looks like a changed unit" in judged.reason


@pytest.mark.parametrize(
    ("factor", "verdict_of_it"), [(700.0, Verdict.SLOWER), (1e6, Verdict.SLOWER), (1e-3, Verdict.FASTER)]
)
def test_where_one_clock_timed_both_sides_no_factor_is_a_changed_unit(factor, verdict_of_it):
    judged = verdict.decide_all({"": comparison([good_pair(head=10.0 * factor)] * 8)}, one_clock=True)[""]
    assert judged.verdict is verdict_of_it
    assert judged.ratio == pytest.approx(factor, rel=1e-2)


def test_one_wild_pair_on_one_clock_is_no_verdict():
    pairs = [good_pair()] * 7 + [good_pair(head=10_000.0)]
    judged = verdict.decide_all({"": comparison(pairs)}, one_clock=True)[""]
    assert judged.verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("value", [1e-300, 1.7e308, 5e-324])
def test_extreme_but_equal_values_are_the_same(value):
    pairs = [Pair(rounds=(Round(base=(value,), head=(value,)),))] * 8
    assert verdict.decide(comparison(pairs)).verdict is Verdict.SAME


def test_identical_samples_are_the_same_and_not_merely_undecided():
    assert verdict.decide(comparison([good_pair(head=10.005)] * 8)).verdict is Verdict.SAME


def test_one_bad_case_takes_nothing_from_the_others():
    judged = verdict.decide_all({"bad": comparison([]), "good": of_values([0.02, 0.0201] * 4)})
    assert judged["bad"].verdict is Verdict.INCONCLUSIVE
    assert judged["good"].verdict is Verdict.SLOWER


def test_no_cases_are_no_verdicts():
    assert verdict.decide_all({}) == {}


@pytest.mark.parametrize("floor", [math.nan, math.inf])
def test_a_floor_that_is_no_number_falls_back_to_the_default(floor):
    chosen = comparison([good_pair()] * 8).model_copy(update={"spread_floor": floor})
    assert verdict.decide(chosen) == verdict.decide(comparison([good_pair()] * 8))


def test_processes_that_differ_wildly_give_a_finite_interval_and_no_verdict():
    judged = verdict.decide_all({str(case): of_values([6.0, -6.0, 5.0, -5.0]) for case in range(200)})
    assert {each.verdict for each in judged.values()} == {Verdict.INCONCLUSIVE}
    assert all(math.isfinite(end) for each in judged.values() for end in each.interval)
    assert "over 1000 % slower" in judged["0"].reason


def test_a_pair_that_is_off_by_a_changed_unit_spoils_the_comparison_and_is_named():
    pairs = [good_pair()] * 7 + [good_pair(head=10_000.0)]
    assert "a ratio of 1e+03 looks like a changed unit" in verdict.decide(comparison(pairs)).reason
