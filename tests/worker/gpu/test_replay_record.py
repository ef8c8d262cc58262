"""A record comes from the untrusted side: what does the launcher refuse before it loads anything?"""

from __future__ import annotations

import base64
from typing import Any
from unittest import mock

import pytest

from contract.layout import lay_out
from contract.outcomes import Reason
from contract.record import Copy, Launch, LaunchRecord, Memset, Relocation
from worker.gpu.arena import ImportedArena
from worker.gpu.driver import CudaError
from worker.gpu.replay import RecordError, Replay, check_record
from worker.launch.cuda import Launcher
from worker.operators import OPERATORS
from worker.protocol import Attach, Detach, Go, Load, Prepare

DIMS = {"m": 16, "n": 16, "k": 16}
LAYOUT = lay_out(OPERATORS["gemm"].tensors(DIMS, "fp16"), workspace_bytes=64)
END = LAYOUT.slot_bytes


def launch(**changes: Any) -> Launch:
    values: dict[str, Any] = {
        "function": "gemm",
        "cubin": "a" * 64,
        "grid": (1, 1, 1),
        "block": (32, 1, 1),
        "shared_bytes": 0,
        "max_shared_bytes": 0,
        "parameters": base64.b64encode(bytes(20)),
        "relocations": (Relocation(at=0, slot_offset=0), Relocation(at=8, slot_offset=END)),
    }
    return Launch(**{**values, **changes})


def record(*nodes: Any, layout: Any = LAYOUT) -> LaunchRecord:
    return LaunchRecord(case="m=16,n=16,k=16", layout=layout, nodes=nodes)


def memset(at: int, width: int, height: int = 1, pitch: int = 0) -> Memset:
    return Memset(slot_offset=at, value=0, element_bytes=4, width=width, height=height, pitch=pitch)


def test_what_lies_inside_the_slot_is_accepted():
    check_record(record(launch(), memset(END - 64, 16), memset(END - 1088, 16, 2, 1024), Copy(to_offset=0, from_offset=END - 8, bytes=8)), LAYOUT)  # noqa: E501  # fmt: skip


@pytest.mark.parametrize(
    "node",
    [
        launch(relocations=(Relocation(at=4, slot_offset=0),)),
        launch(relocations=(Relocation(at=16, slot_offset=0),)),
        launch(relocations=(Relocation(at=0, slot_offset=END + 1),)),
        memset(END - 60, 16),
        memset(END - 64, 16, 2, 1024),
        memset(0, 16, END, 0),
        Copy(to_offset=END - 4, from_offset=0, bytes=8),
        Copy(to_offset=0, from_offset=END - 4, bytes=8),
    ],
)
def test_what_reaches_past_the_slot_or_its_parameters_is_refused(node):
    with pytest.raises(RecordError) as caught:
        check_record(record(launch(), node), LAYOUT)
    assert caught.value.reason is Reason.NOT_RELOCATABLE


def test_a_record_of_another_layout_is_refused():
    other = lay_out(OPERATORS["gemm"].tensors(DIMS, "fp16"), workspace_bytes=65)
    assert other != LAYOUT
    with pytest.raises(RecordError, match="another layout"):
        check_record(record(launch(), layout=other), LAYOUT)


class FakeArena(ImportedArena):
    def __init__(self, error: CudaError | None = None) -> None:
        self.error = error
        self.log: list[str] = []

    def attach(self) -> None:
        self.log.append("attach")
        if self.error:
            raise self.error

    def detach(self) -> None:
        self.log.append("detach")


class FailingReplay(Replay):
    def __init__(self, name: str) -> None:
        self.name = name

    def prepare(self, slots: Any, *, watched: int | None = None) -> None:
        raise CudaError(self.name, "said CUDA")

    def run(self) -> float:
        raise CudaError(self.name, "said CUDA")


def loaded(name: str) -> Launcher:
    launcher = Launcher(FakeArena())
    launcher._replay = FailingReplay(name)
    return launcher


@pytest.mark.parametrize(
    ("name", "command", "reason"),
    [
        ("CUDA_ERROR_ILLEGAL_ADDRESS", Go(), Reason.CRASHED),
        ("CUDA_ERROR_INVALID_VALUE", Prepare(slots=(0,)), Reason.CRASHED),
        ("CUDA_ERROR_OUT_OF_MEMORY", Prepare(slots=(0,)), Reason.CRASHED),
        ("CUDA_ERROR_NO_BINARY_FOR_GPU", Prepare(slots=(0,)), Reason.ARCHITECTURE_UNSUPPORTED),
    ],
)
def test_what_cuda_says_of_the_replayed_code_is_the_revisions_fault(name, command, reason):
    reply = loaded(name).answer(command)
    assert (reply.ok, reply.reason) == (False, reason)
    assert name in reply.message


def test_no_memory_for_the_arena_is_nobodys_fault():
    reply = Launcher(FakeArena(CudaError("CUDA_ERROR_OUT_OF_MEMORY", "none left"))).answer(Attach())
    assert (reply.ok, reply.reason) == (False, Reason.OUT_OF_MEMORY)


def test_a_context_that_a_kernel_spoilt_stays_the_revisions_fault():
    reply = Launcher(FakeArena(CudaError("CUDA_ERROR_ILLEGAL_ADDRESS", "before"))).answer(Attach())
    assert reply.reason is Reason.CRASHED


def test_a_launcher_whose_turn_is_over_holds_no_modules():
    """Their globals would be missing to whoever is on turn next."""
    launcher = loaded("none")
    with mock.patch.object(Replay, "release") as release:
        assert launcher.answer(Detach()).ok
    release.assert_called_once()


def test_commands_out_of_order_are_answered_not_obeyed():
    launcher = Launcher(FakeArena())
    assert launcher.answer(Prepare(slots=(0,))).reason is Reason.INTERNAL_ERROR
    assert launcher.answer(Go()).reason is Reason.INTERNAL_ERROR
    assert launcher.answer(Load(case="m=16,n=16,k=16", dims=DIMS, layout=LAYOUT)).reason is Reason.INTERNAL_ERROR
    assert launcher.answer(Detach()).ok


def test_a_hostile_record_is_refused_before_its_cubins_are_read():
    launcher = Launcher(FakeArena())
    hostile = record(launch(relocations=(Relocation(at=0, slot_offset=1 << 40),)))
    command = Load(case="m=16,n=16,k=16", dims=DIMS, layout=LAYOUT, record=hostile, cubins={"a" * 64: "/nowhere"})
    assert launcher.answer(command).reason is Reason.NOT_RELOCATABLE
