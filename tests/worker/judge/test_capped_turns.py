"""A turn under a power cap: bursts back to back, the first half discarded, rows checked after the turn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from contract.devices import DeviceClass
from contract.outcomes import Reason
from contract.suite import Case, Suite
from tests.worker.judge.conftest import side
from worker.judge import turns
from worker.judge.bursts import Burst, BurstCheck, start_burst
from worker.judge.device_cpu import CpuDevice
from worker.judge.faults import FaultError
from worker.judge.judge import Judge
from worker.judge.plan import Plan
from worker.judge.sides import Revision
from worker.judge.slots import Slots
from worker.judge.turns import Player, Turn, take_capped_turn
from worker.launch.client import Launcher
from worker.operators.gemm import GEMM
from worker.protocol import JudgeJob, LauncherReply

DIMS = {"m": 32, "n": 32, "k": 32}
PLAN = Plan(calls=3, pool=4, warm_calls=0, warm_pool=0, bursts=1)


@contextmanager
def playing(library: Path, entry: str) -> Iterator[tuple[Judge, Player, Case]]:
    device, random, case = CpuDevice(), Random(2), Case(dims=DIMS)
    suite = Suite(kernel="sgemm_test", operator="gemm", dtype="fp32", device_classes=(DeviceClass.CPU,), cases=(case,))
    job = JudgeJob(device_class=DeviceClass.CPU, suite=suite, head=side(library, entry), base=None, seed=1)
    arena = device.arena(1 << 20)
    revision = Revision("head", job.head, device=device, arena=arena, run_as=(), call_limit_s=5.0)
    launcher = revision.start()
    try:
        layout = revision.load(launcher, case.id, DIMS, GEMM.tensors(DIMS, "fp32"))
        slots = Slots(device, arena, layout, PLAN.slots, random)
        yield Judge(job, device, lambda _: None), Player(side="head", launcher=launcher, slots=slots), case
    finally:
        launcher.close()
        arena.close()


def capped_turn(library: Path, entry: str, turn_us: float) -> Turn:
    with playing(library, entry) as (judge, player, case):
        return take_capped_turn(judge._subject(case), player, PLAN, Random(3), turn_us=turn_us)


def test_the_bursts_of_the_first_half_are_discarded(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clocks: list[float] = []
    go = Launcher.go

    def counted(launcher: Launcher, *, limit_s: float, pause: None) -> tuple[LauncherReply, float]:
        reply, clock_us = go(launcher, limit_s=limit_s, pause=pause)
        clocks.append(clock_us)
        return reply, clock_us

    monkeypatch.setattr(Launcher, "go", counted)
    turn = capped_turn(library, "good", 20_000.0)
    assert sum(clocks) >= 20_000.0 > sum(clocks[:-1])
    discarded = len(clocks) - len(turn.bursts)
    if len(clocks) > discarded > 0:
        assert sum(clocks[:discarded]) >= 10_000.0 > sum(clocks[: discarded - 1])
    assert [burst.clock_us for burst in turn.bursts] == clocks[discarded:]


@pytest.mark.parametrize(
    ("entry", "reason"),
    [("right_then_lazy", Reason.NAN_VALUES), ("wrong_when_warm", Reason.WRONG_VALUES)],
)
def test_rows_of_bursts_at_secret_places_are_checked_after_the_turn(library: Path, entry: str, reason: Reason) -> None:
    with pytest.raises(FaultError) as caught:
        capped_turn(library, entry, 300_000.0)
    assert caught.value.reason is reason


def test_other_bursts_are_checked_each_time(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many bursts eight, and the last one whole; which ones, the submission can't know."""
    patterns: set[tuple[bool, ...]] = set()
    for seed in range(6):
        checks: list[BurstCheck] = []
        looked_at: list[BurstCheck] = []

        def start(*arguments: Any, checks: list[BurstCheck] = checks, **named: Any) -> tuple[Burst, BurstCheck]:
            burst, check = start_burst(*arguments, **named)
            checks.append(check)
            return burst, check

        monkeypatch.setattr(turns, "start_burst", start)
        monkeypatch.setattr(BurstCheck, "rows_later", lambda check, found=looked_at: found.append(check))
        with playing(library, "good") as (judge, player, case):
            take_capped_turn(judge._subject(case), player, PLAN, Random(seed), turn_us=20_000.0)
        assert len(looked_at) == min(8, len(checks) - 1)
        assert not any(check is checks[-1] for check in looked_at)
        patterns.add(tuple(any(check is one for one in looked_at) for check in checks[:20]))
    assert len(patterns) > 1


def test_a_write_outside_is_seen_at_the_end_of_the_turn(library: Path) -> None:
    with pytest.raises(FaultError) as caught:
        capped_turn(library, "writes_outside", 5_000.0)
    assert caught.value.reason is Reason.OUT_OF_BOUNDS_WRITE
