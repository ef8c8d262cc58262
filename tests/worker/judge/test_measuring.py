"""Whole evaluations on a CPU. The machine may be busy: only differences far beyond its noise are asserted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from contract.outcomes import Verdict
from tests.worker.judge.conftest import Judge

DIMS = {"m": 96, "n": 96, "k": 96}
CASE = "m=96,n=96,k=96"


def test_without_a_base_the_head_is_measured_by_four_processes(judge: Judge) -> None:
    said = judge("good", cases=(DIMS,))
    assert said.done.failure is None
    result = said.results[CASE]
    time = said.metric(CASE, "time")
    assert len(time.samples) == 4
    assert time.low is not None
    assert time.high is not None
    assert time.low <= time.value <= time.high
    assert said.metric(CASE, "throughput").value == pytest.approx(2 * 96**3 / time.value / 1e3)
    assert said.metric(CASE, "throughput_over_baseline").value > 0
    assert said.metric(CASE, "deterministic").value == 1.0
    assert said.metric(CASE, "workspace_bytes").value == 384
    assert said.metric(CASE, "first_call_latency").value > 0
    assert result.judgement is None
    assert result.pairs == ()
    assert result.baseline is not None
    assert result.baseline.startswith("torch ")
    assert said.done.environment.libraries["torch"]


def test_a_kernel_whose_bits_change_from_call_to_call_passes_and_is_said_not_to_be_deterministic(judge: Judge) -> None:
    said = judge("sums_in_another_order_each_time", cases=(DIMS,))
    assert said.done.failure is None
    assert said.metric(CASE, "deterministic").value == 0.0


@pytest.mark.alone
@pytest.mark.parametrize(
    ("head", "base", "verdict"), [("six_times_the_work", "good", "slower"), ("good", "six_times_the_work", "faster")]
)
def test_much_more_work_is_slower_and_much_less_is_faster(judge: Judge, head: str, base: str, verdict: str) -> None:
    said = judge(head, base, cases=(DIMS,))
    assert said.done.failure is None
    judgement = said.results[CASE].judgement
    assert judgement is not None
    assert judgement.verdict == Verdict(verdict)
    pairs = said.results[CASE].pairs
    assert len(pairs) in {4, 8, 16}
    assert all(round_.head and round_.base for pair in pairs for round_ in pair.rounds)


def test_the_same_artifact_is_the_same_without_timing_the_base(judge: Judge) -> None:
    said = judge("good", "good", cases=(DIMS,))
    result = said.results[CASE]
    assert result.same_artifact
    assert result.judgement is not None
    assert result.judgement.verdict is Verdict.SAME
    assert result.pairs == ()
    assert len(said.checks) == 8


def test_a_case_that_the_base_refuses_is_measured_for_the_head_alone(judge: Judge) -> None:
    said = judge("good", "six_times_the_work", cases=(DIMS,), base_refuses={CASE: "m = 96 is over 64"})
    assert said.results[CASE].base_skipped == "m = 96 is over 64"
    assert said.results[CASE].judgement is None
    assert len(said.metric(CASE, "time").samples) == 4


@pytest.mark.parametrize("entry", ["right_then_lazy", "wrong_when_warm"])
def test_a_kernel_that_cheats_once_it_is_timed_is_caught(judge: Judge, entry: str) -> None:
    said = judge(entry, "good", cases=(DIMS,))
    assert said.reason in {"nan_values", "wrong_values"}
    assert said.done.failure is not None
    assert said.done.failure.stage == "measure"


def test_a_kernel_that_leaves_a_process_behind_is_untrusted_and_the_process_is_ended(
    judge: Judge, library: Path
) -> None:
    said = judge("leaves_a_process", cases=(DIMS,), max_processes=1)
    assert said.reason == "left_running"
    left = Path(f"{library}.left").read_text(encoding="ascii").split()
    assert left
    for pid in left:
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)


def test_stages_and_progress_are_said_in_order(judge: Judge) -> None:
    said = judge("good", cases=(DIMS,), max_processes=1)
    kinds = [getattr(message, "kind", "") for message in said.messages]
    assert kinds[0] == "stage"
    assert kinds[-1] == "done"
    events = [(message.stage, message.event) for message in said.messages if getattr(message, "kind", "") == "stage"]
    assert events == [("verify", "began"), ("verify", "ended"), ("measure", "began"), ("measure", "ended")]
