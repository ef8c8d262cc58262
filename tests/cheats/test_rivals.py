"""Items 36, 41, 45 and 47: rivals that are made slow, calls that are merged, work that is armed, crashes on purpose."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from contract.layout import lay_out
from contract.outcomes import Reason
from contract.record import LaunchRecord, Memset
from tests.cheats.conftest import DIMS, Judged, Playing
from worker.judge.bursts import run_burst
from worker.judge.device_cpu import CpuDevice
from worker.judge.faults import FaultError
from worker.judge.plan import Plan
from worker.judge.secret import SecretRandom
from worker.judge.sides import Revision
from worker.judge.turns import attached, take_turn
from worker.judge.watch import watch_burst
from worker.operators.gemm import GEMM
from worker.protocol import GpuArtifact, LauncherReply, Side

SEVEN = Plan(calls=7, pool=10, warm_calls=0, warm_pool=0, bursts=2)


def watched(playing: Playing, entry: str, *, looks: int, time_us: float | None = None) -> None:
    """Bursts of seven calls, looked into as one of a turn is."""
    random, pool = SecretRandom(3), slice(0, SEVEN.pool)
    with playing(entry, slots=SEVEN.slots) as (subject, player), attached(player, subject):
        where: dict[str, Any] = {"side": "head", "where": pool, "calls": SEVEN.calls, "random": random}
        for _ in range(looks):
            burst = run_burst(subject, player.launcher, player.slots, **where)
            watch_burst(subject, player.launcher, player.slots, time_us=time_us or burst.time_us, **where)


def test_36_threads_that_burn_cores_after_the_call_are_untrusted(judged: Judged) -> None:
    assert judged("leaves_threads_burning", measure=False).reason == "left_running"


def test_41_the_honest_control_is_looked_into_without_a_word(playing: Playing) -> None:
    watched(playing, "honest", looks=10)


def test_41_calls_done_side_by_side_are_untrusted(playing: Playing) -> None:
    """A look may fall between two pairs: an evaluation has at least one for each process and case."""
    with pytest.raises(FaultError) as caught:
        watched(playing, "does_two_calls_at_once_slowly", looks=60, time_us=600.0)
    assert caught.value.reason is Reason.CALLS_OVERLAP


def test_41_calls_put_off_to_the_last_one_are_untrusted(playing: Playing) -> None:
    with pytest.raises(FaultError, match="put off") as caught:
        watched(playing, "does_all_with_the_seventh", looks=60)
    assert caught.value.reason is Reason.CALLS_OVERLAP


def test_41_a_turn_looks_into_one_burst_at_a_secret_place(playing: Playing) -> None:
    places = set()
    with playing("honest", slots=SEVEN.slots) as (subject, player):
        for seed in range(6):
            with (
                mock.patch("worker.judge.turns.watch_burst") as watch,
                mock.patch("worker.judge.turns.run_burst") as run,
            ):
                manager = mock.Mock()
                manager.attach_mock(watch, "watch")
                manager.attach_mock(run, "run")
                run.return_value.time_us = 5.0
                take_turn(subject, player, SEVEN, 4, SecretRandom(seed), watch_us=5.0)
            called = [call[0] for call in manager.mock_calls if call[0] in {"watch", "run"}]
            assert sorted(called) == ["run"] * 4 + ["watch"]
            places.add(called.index("watch"))
    assert len(places) > 2


def test_45_a_process_that_waits_for_the_inputs_is_untrusted(judged: Judged) -> None:
    assert judged("waits_for_the_inputs", measure=False).reason == "left_running"


def test_47_a_crash_on_purpose_is_the_kernels_and_not_the_machines(judged: Judged) -> None:
    said = judged("crashes_when_warm")
    assert said.reason == "crashed"
    assert said.done.failure is not None
    assert said.done.failure.stage == "measure"


def test_47_a_crash_between_the_calls_is_the_kernels_too(judged: Judged) -> None:
    """With the last family's second call behind it, as the arena is taken from it."""
    assert judged("crashes_when_verified", measure=False).reason == "crashed"


@pytest.mark.parametrize("excuse", [Reason.DEVICE_UNHEALTHY, Reason.INTERNAL_ERROR, Reason.OUT_OF_MEMORY, None])
def test_47_an_excuse_of_the_kernels_process_is_no_reason(
    playing: Playing, monkeypatch: pytest.MonkeyPatch, excuse: Reason | None
) -> None:
    with playing("honest", slots=4) as (subject, player):
        exchange = player.launcher._exchange

        def excused(*args: Any) -> tuple[LauncherReply, float]:
            _, elapsed_us = exchange(*args)
            return LauncherReply(ok=False, reason=excuse, message="not \x1b[31mmy fault"), elapsed_us

        monkeypatch.setattr(player.launcher, "_exchange", excused)
        with pytest.raises(FaultError) as caught:
            take_turn(subject, player, SEVEN, 1, SecretRandom(1))
    assert caught.value.reason is Reason.CRASHED
    assert caught.value.message == "not [31mmy fault"


def test_47_a_message_without_end_is_shown_in_part_and_breaks_no_report(judged: Judged) -> None:
    assert judged("complains_without_end", measure=False).reason == "returned_error"


def test_47_a_workspace_that_leaves_no_room_is_the_kernels_fault(library: Path) -> None:
    """On a GPU: a recorder has all of the card's memory, an arena has not."""
    tensors = GEMM.tensors(DIMS, "fp32")
    layout = lay_out(tensors, workspace_bytes=1 << 20)
    node = Memset(slot_offset=layout.workspace_offset, value=0, element_bytes=1, width=8, height=1, pitch=0)
    path = library.parent / "record.json"
    path.write_text(LaunchRecord(case="m=24,n=40,k=32", layout=layout, nodes=(node,)).model_dump_json())
    artifact = GpuArtifact(records={"m=24,n=40,k=32": str(path)}, cubins={})
    side = Side(label="v1", artifact_digest="0" * 64, artifact=artifact)
    launcher = mock.Mock()
    launcher.ask.return_value = LauncherReply(ok=True)
    for room, reason in ((1 << 20, Reason.NOT_RECORDABLE), (1 << 12, Reason.OUT_OF_MEMORY)):
        arena = CpuDevice().arena(room)
        revision = Revision("head", side, device=CpuDevice(), arena=arena, run_as=(), call_limit_s=1.0)
        with pytest.raises(FaultError) as caught:
            revision.load(launcher, "m=24,n=40,k=32", DIMS, tensors)
        assert caught.value.reason is reason
        arena.close()
