"""Items 1 to 11: what is not timed, or lied about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from contract.outcomes import OUTCOME_OF, Outcome, Reason
from tests.cheats.conftest import DIMS, Judged, Playing
from worker.judge.bursts import run_burst
from worker.judge.device_cpu import CpuDevice
from worker.judge.faults import FaultError
from worker.judge.plan import Plan
from worker.judge.secret import SecretRandom
from worker.judge.turns import take_turn
from worker.protocol import LauncherReply

CASE = ",".join(f"{name}={value}" for name, value in DIMS.items())


def refused(reason: str | None) -> bool:
    return reason is not None and OUTCOME_OF[Reason(reason)] in {Outcome.INCORRECT, Outcome.UNTRUSTED}


def test_the_honest_control_passes_and_is_measured(judged: Judged) -> None:
    said = judged("honest", verify_cases=({"m": 1, "n": 3, "k": 5},))
    assert said.done.failure is None
    assert said.metric(CASE, "time").value > 0


def test_the_wrong_control_is_incorrect(judged: Judged) -> None:
    assert judged("wrong", measure=False).reason == "wrong_values"


@pytest.mark.parametrize("entry", ["returns_and_works_on", "leaves_the_tail_to_a_thread"])
def test_02_work_of_a_thread_that_outlives_its_call_is_untrusted(judged: Judged, entry: str) -> None:
    assert judged(entry, measure=False).reason == "left_running"


def test_04_a_time_that_the_kernels_process_claims_counts_for_nothing(
    playing: Playing, monkeypatch: pytest.MonkeyPatch
) -> None:
    with playing("honest", slots=4) as (subject, player):
        go = player.launcher.go

        def boast(**how: Any) -> tuple[LauncherReply, float]:
            reply, clock_us = go(**how)
            return reply.model_copy(update={"elapsed_us": 0.01}), clock_us

        monkeypatch.setattr(player.launcher, "go", boast)
        from worker.protocol import Attach  # noqa: PLC0415 - beside its use

        player.launcher.ask(Attach(), limit_s=5.0)
        player.slots.lay_guards()
        burst = run_burst(
            subject, player.launcher, player.slots, side="head", where=slice(0, 4), calls=3, random=SecretRandom(1)
        )
    assert burst.claimed_us is None
    assert burst.time_us == burst.clock_us / 3 > 0.01


def test_05_a_shape_that_is_skipped_is_incorrect_however_fast_it_is(judged: Judged) -> None:
    said = judged("skips_one_shape", measure=False, verify_cases=({"m": 48, "n": 8, "k": 8},))
    assert said.reason == "nan_values"
    assert said.done.failure is not None
    assert said.done.failure.case == "m=48,n=8,k=8"


def test_05_next_to_no_time_is_below_what_any_cpu_needs() -> None:
    device = CpuDevice()
    least = device.roofline_us(flops=2.0 * 512**3, bytes_moved=0.0, dtype="fp32")
    assert least > 0.1
    assert device.roofline_us(flops=2.0 * 512**3, bytes_moved=0.0, dtype="fp16") <= least


@pytest.mark.parametrize("entry", ["lazy_after_the_checks", "sloppy_after_the_checks", "races_now_and_then"])
def test_06_a_kernel_that_counts_its_calls_is_caught_in_the_timed_ones(judged: Judged, entry: str) -> None:
    said = judged(entry)
    assert refused(said.reason)
    assert said.done.failure is not None
    assert said.done.failure.stage == "measure"


def test_07_42_sleeping_makes_calls_slower_and_nothing_else(playing: Playing) -> None:
    with playing("sleeps_when_warm", slots=10) as (subject, player):
        plan = Plan(calls=7, pool=8, warm_calls=1, warm_pool=2, bursts=2)
        turn = take_turn(subject, player, plan, 2, SecretRandom(1))
    assert [burst.calls for burst in turn.bursts] == [7, 7]
    assert turn.time_us > 1500


def test_08_nothing_around_a_kernel_tells_checks_from_timing(judged: Judged, library: Path) -> None:
    assert judged("notes_its_surroundings").done.failure is None
    seen = Path(f"{library}.surroundings").read_text(encoding="ascii").split()
    assert len(seen) > 20
    # The arena's descriptor and size are the same for all launchers of an evaluation.
    assert len(set(seen)) == 1


def test_11_printed_results_are_text_and_change_nothing(judged: Judged) -> None:
    said = judged("prints_results", measure=False)
    assert said.done.failure is None
    assert len(said.checks) == 8


@pytest.mark.parametrize("entry", ["answers_in_advance", "answers_itself_and_exits"])
def test_11_22_44_forged_answers_are_no_answers(judged: Judged, entry: str) -> None:
    assert judged(entry, measure=False).reason == "crashed"


def test_44_a_burst_meets_each_slot_at_most_once(playing: Playing) -> None:
    with playing("honest", slots=10) as (subject, player):
        orders: list[list[int]] = []
        choose = subject.operator.choose

        class Noting(type(subject.operator)):  # type: ignore[misc]
            def choose(self, random: Any, dims: Any, slots: Any) -> Any:
                orders.append(list(slots))
                return choose(random, dims, slots)

        subject.__dict__["operator"] = Noting()
        take_turn(subject, player, Plan(calls=7, pool=10, warm_calls=0, warm_pool=0, bursts=4), 4, SecretRandom(1))
    assert len(orders) == 4
    assert all(len(set(order)) == 7 for order in orders)
    assert len({tuple(order) for order in orders}) == 4


def test_44_the_clock_runs_until_the_kernel_stands_still(playing: Playing) -> None:
    """Whatever answers first, and then works on, is on the clock or is not done."""
    with playing("leaves_the_tail_to_a_thread", slots=4) as (subject, player), pytest.raises(FaultError) as caught:
        take_turn(subject, player, Plan(calls=3, pool=4, warm_calls=0, warm_pool=0, bursts=1), 1, SecretRandom(1))
    assert caught.value.reason in {Reason.LEFT_RUNNING, Reason.NAN_VALUES}
