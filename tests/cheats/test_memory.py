"""Items 16 to 21 and 37: memory that is not the call's."""

from __future__ import annotations

import random
from unittest import mock

import pytest

from contract.layout import lay_out
from contract.outcomes import Reason
from tests.cheats.conftest import DIMS, Judged
from worker.judge.device_cpu import CpuDevice
from worker.judge.faults import FaultError
from worker.judge.secret import SecretRandom
from worker.judge.sides import Revision
from worker.judge.slots import Slots
from worker.operators.gemm import GEMM
from worker.protocol import CpuArtifact, LauncherReply, Side


@pytest.mark.parametrize("entry", ["writes_nothing", "hands_out_old_memory"])
def test_16_what_was_never_written_is_nan(judged: Judged, entry: str) -> None:
    assert judged(entry, measure=False).reason == "nan_values"


def test_17_18_the_answer_lies_nowhere_before_it_is_computed(judged: Judged) -> None:
    assert judged("searches_the_arena", verify=False).done.failure is None


def test_18_what_a_kernel_sees_does_not_tell_what_comes_next() -> None:
    """From a guard of 4096 bytes the state of Python's own generator can be read, and with it every later draw."""

    def foretold(source: random.Random) -> bool:
        device = CpuDevice()
        arena = device.arena(1 << 20)
        layout = lay_out(GEMM.tensors(DIMS, "fp32"))
        guard = layout.guards[-1]
        slots = Slots(device, arena, layout, 1, source)
        slots.lay_guards()
        seen = arena.raw(*guard, layout, 1)[0].tobytes()
        arena.close()
        words = [int.from_bytes(seen[at : at + 4], "little") for at in range(0, 624 * 4, 4)]
        rebuilt = random.Random()
        rebuilt.setstate((3, (*map(untempered, words), 624), None))
        rebuilt.randbytes(guard[1] - guard[0] - 624 * 4)
        return rebuilt.getrandbits(63) == source.getrandbits(63)

    assert foretold(random.Random(5))
    assert not foretold(SecretRandom(5))


def untempered(word: int) -> int:
    """A word of the Mersenne Twister's state from one of its outputs."""
    word ^= word >> 18
    word ^= word << 15 & 0xEFC60000
    mixed = word
    for _ in range(4):
        word = mixed ^ (word << 7 & 0x9D2C5680)
    mixed = word
    for _ in range(2):
        word = mixed ^ word >> 11
    return word


def test_19_an_input_that_is_changed_is_incorrect(judged: Judged) -> None:
    assert judged("makes_zero_right", measure=False).reason == "input_modified"


def test_20_a_write_beside_the_output_is_incorrect(judged: Judged) -> None:
    assert judged("writes_past_its_output", measure=False).reason == "out_of_bounds_write"


@pytest.mark.parametrize("wanted", [-4096, -1, 1 << 63])
def test_20_a_workspace_of_no_size_that_there_is_is_refused(wanted: int) -> None:
    """A negative one would lay slots over one another."""
    tensors = GEMM.tensors(DIMS, "fp32")
    artifact = CpuArtifact(library="kernel.so", entry="kernelgate_run")
    arena = CpuDevice().arena(1 << 20)
    revision = Revision(
        "head",
        Side(label="v1", artifact_digest="0" * 64, artifact=artifact),
        device=CpuDevice(),
        arena=arena,
        run_as=(),
        call_limit_s=1.0,
    )
    launcher = mock.Mock()
    launcher.ask.return_value = LauncherReply(ok=True, workspace_bytes=wanted)
    with pytest.raises(FaultError, match=f"asks for {wanted} bytes of workspace") as caught:
        revision.load(launcher, "m=24,n=40,k=32", DIMS, tensors)
    assert (caught.value.reason, caught.value.side) == (Reason.RETURNED_ERROR, "head")
    launcher.ask.return_value = LauncherReply(ok=True, workspace_bytes=4096)
    assert revision.load(launcher, "m=24,n=40,k=32", DIMS, tensors).workspace_bytes == 4096
    arena.close()


def test_21_an_output_that_changes_after_the_call_is_untrusted(judged: Judged) -> None:
    assert judged("takes_it_back_later", measure=False).reason in {"left_running", "wrong_values"}


def test_37_nothing_of_the_head_runs_while_the_arena_is_anothers(judged: Judged) -> None:
    assert judged("spoils_the_arena", measure=False).reason == "left_running"


def test_37_the_arena_can_not_be_taken_from_under_the_judge(judged: Judged) -> None:
    assert judged("shrinks_the_arena", measure=False).done.failure is None
