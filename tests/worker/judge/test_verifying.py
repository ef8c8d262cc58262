"""What the judge says of kernels that are wrong or harmful: each has its own reason, and an honest one passes."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from contract.devices import DeviceClass
from contract.suite import Case, Suite
from tests.worker.judge.conftest import SMALL, Judge, side
from worker.judge import judge as judging
from worker.judge.device_cpu import CpuDevice
from worker.protocol import JudgeJob, JudgeProgress

CASE = "m=64,n=64,k=64"


def test_an_honest_kernel_passes_every_family(judge: Judge) -> None:
    said = judge("good", verify_cases=({"m": 17, "n": 5, "k": 33}, {"m": 1, "n": 1, "k": 1}), measure=False)
    assert said.done.failure is None
    assert {check.case for check in said.checks} == {CASE, "m=17,n=5,k=33", "m=1,n=1,k=1"}
    assert len(said.checks) == 3 * 8
    assert all(check.passed and check.of_bound is not None and check.of_bound <= 1 for check in said.checks)


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("zeros", "wrong_values"),
        ("drops_tail", "wrong_values"),
        ("low_precision", "wrong_values"),
        ("leaves_nan", "nan_values"),
        ("writes_nothing", "nan_values"),
        ("computes_after_return", "left_running"),
        ("caches_by_pointer", "wrong_values"),
        ("writes_outside", "out_of_bounds_write"),
        ("writes_before", "out_of_bounds_write"),
        ("writes_past_workspace", "out_of_bounds_write"),
        ("modifies_input", "input_modified"),
        ("zeroes_inputs", "input_modified"),
        ("crashes", "crashed"),
        ("aborts", "crashed"),
        ("exits", "crashed"),
        ("forges_the_answer", "crashed"),
        ("returns_seven", "returned_error"),
        ("no_such_entry", "entry_missing"),
    ],
)
def test_a_bad_kernel_fails_with_its_reason(judge: Judge, entry: str, reason: str) -> None:
    said = judge(entry, measure=False)
    assert said.reason == reason
    assert said.done.failure is not None
    assert said.done.failure.case == CASE
    assert said.done.failure.stage == "verify"


def test_a_write_into_another_calls_slot_is_seen_whether_that_is_launched_or_not(judge: Judge) -> None:
    assert judge("writes_next_slot", measure=False).reason in {"untouched_slot_written", "wrong_values"}


def test_a_hanging_kernel_is_killed_at_the_call_limit(judge: Judge) -> None:
    said = judge("hangs", measure=False, call_limit_s=1.0)
    assert said.reason == "timed_out"
    assert said.done.failure is not None
    assert "1 s" in said.done.failure.message


def test_calls_that_are_each_in_time_may_not_take_for_ever_together(judge: Judge) -> None:
    said = judge("good", measure=False, calls_limit_s=1e-3)
    assert said.reason == "timed_out"
    assert said.done.failure is not None
    assert said.done.failure.message.startswith("all its calls together took longer than 0.001 s")


def test_while_a_slow_side_answers_the_judge_says_again_where_it_is(
    library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "_TELL_EVERY_S", 0.0)
    case = Case(dims=SMALL)
    suite = Suite(kernel="sgemm_test", operator="gemm", dtype="fp32", device_classes=(DeviceClass.CPU,), cases=(case,))
    job = JudgeJob(
        device_class=DeviceClass.CPU, suite=suite, head=side(library, "good"), base=None, seed=1, measure=False
    )
    messages: list[object] = []
    assert judging.Judge(job, CpuDevice(), messages.append).run().failure is None
    told = [message for message in messages if isinstance(message, JudgeProgress)]
    assert len(told) > len({message.model_dump_json() for message in told}) > 1


def test_the_message_says_where_a_kernel_wrote(judge: Judge) -> None:
    failure = judge("writes_outside", measure=False).done.failure
    assert failure is not None
    assert "12 past the end of tensor c" in failure.message


def test_a_kernel_that_prints_does_not_disturb_the_protocol(judge: Judge) -> None:
    assert judge("talkative", measure=False).done.failure is None


def test_a_kernel_gets_the_workspace_that_it_asks_for(judge: Judge) -> None:
    assert judge("uses_workspace", measure=False).done.failure is None


def test_a_case_that_the_constraints_refuse_is_not_called(judge: Judge) -> None:
    said = judge("crashes", head_refuses={CASE: "m = 64 is over 32"})
    assert said.done.failure is None
    assert said.checks == []
    assert said.results[CASE].skipped == "m = 64 is over 32"


@pytest.mark.parametrize(("base", "reason"), [("good", "crashed"), ("aborts", "base_failed")])
def test_a_failure_counts_against_the_head_unless_the_base_shows_it_too(judge: Judge, base: str, reason: str) -> None:
    assert judge("crashes", base, measure=False).reason == reason


@pytest.mark.parametrize("base", ["zeros", "crashes"])
def test_a_bad_base_is_never_the_heads_fault(judge: Judge, base: str) -> None:
    assert judge("good", base, measure=False).reason == "base_failed"


def test_the_secret_seed_appears_in_nothing_that_the_judge_says(judge: Judge) -> None:
    said = judge("zeros", measure=False)
    for message in said.messages:
        assert str(0x5EC2E7) not in repr(message)
    assert hashlib.sha256(b"zeros").hexdigest() not in said.stderr
