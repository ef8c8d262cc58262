"""Distinct processes are the evidence. Pairs that share one repeat what it brought along."""

import numpy as np
import pytest

import verdict
from contract.outcomes import Verdict
from contract.samples import Comparison, Pair, Round
from tests.verdict.simulated import RECORDED
from verdict.evidence import gather


def pair(value, base=None, head=None):
    return Pair(
        rounds=(Round(base=(50.0,), head=(50.0 * float(np.exp(value)),)),), base_process=base, head_process=head
    )


def comparison(*pairs):
    return Comparison(unit="us", allowed_slowdown=0.005, pairs=pairs)


def test_pairs_without_ids_are_fresh_processes():
    assert gather(comparison(*[pair(0.001 * place) for place in range(8)])).processes == 8


def test_one_pair_of_processes_measured_sixteen_times_is_one_process_a_side():
    judged = verdict.decide(comparison(*[pair(0.05, "b", "h")] * 16))
    assert judged.verdict is Verdict.INCONCLUSIVE
    assert "1 process a side can't tell" in judged.reason


def test_eight_heads_beside_one_base_are_hardly_more_than_one_process():
    evidence = gather(comparison(*[pair(0.001 * place, "b", f"h{place}") for place in range(8)]))
    assert evidence.processes == 1


def test_a_process_that_is_base_here_and_head_there_counts_once():
    ring = [pair(0.001 * place, str(place), str((place + 1) % 8)) for place in range(8)]
    assert gather(comparison(*ring)).processes == 4


def test_ids_that_number_each_side_on_its_own_are_different_processes():
    pairs = [pair(0.001 * place, str(place), str(place)) for place in range(8)]
    assert gather(comparison(*pairs)).processes == 8


def test_evidence_never_grows_by_sharing():
    rng = np.random.default_rng(2)
    for _ in range(200):
        count = int(rng.integers(2, 16))
        ids = rng.integers(0, 6, (count, 2))
        pairs = [pair(rng.normal(0, 0.001), f"b{base}", f"h{head}") for base, head in ids]
        evidence = gather(comparison(*pairs))
        assert evidence.processes <= min(len(set(ids[:, 0])), len(set(ids[:, 1])), count)


def test_long_lived_processes_cause_no_false_alarm_where_pairs_are_taken_for_independent_they_do():
    """Process effects of 2 %: four processes a side in sixteen pairs, against the same sixteen taken as fresh ones."""
    rng = np.random.default_rng(9)
    alarms = naive = 0
    for _ in range(300):
        base, head = rng.normal(0, 0.02, 4), rng.normal(0, 0.02, 4)
        pairs = [pair(head[h] - base[b] + rng.normal(0, 0.0005), f"b{b}", f"h{h}") for b in range(4) for h in range(4)]
        alarms += verdict.decide(comparison(*pairs)).verdict is Verdict.SLOWER
        fresh = [each.model_copy(update={"base_process": None, "head_process": None}) for each in pairs]
        mean, error = np.mean(gather(comparison(*fresh)).values), np.std(gather(comparison(*fresh)).values, ddof=1) / 4
        naive += mean - 1.753 * error > 0.005
    assert alarms == 0
    assert naive > 30


@pytest.mark.parametrize("true_ratio", [1.0])
def test_the_recorded_long_lived_processes_of_identical_code_are_the_same(true_ratio):
    pairs = [
        Pair(rounds=tuple(Round(base=tuple(b), head=tuple(h)) for b, h in rounds), base_process=base, head_process=head)
        for ratio, base, head, rounds in RECORDED["shared"]
        if ratio == true_ratio
    ]
    evidence = gather(comparison(*pairs))
    assert 3 <= evidence.processes < len(pairs)
    judged = verdict.decide(comparison(*pairs))
    assert judged.verdict in {Verdict.SAME, Verdict.INCONCLUSIVE}
    assert judged.ratio == pytest.approx(true_ratio, abs=5e-4)
