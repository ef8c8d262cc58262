"""What the recorder says, in which order, with a stand-in for CUDA."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from contract.outcomes import Reason
from contract.record import LaunchRecord
from worker.gpu.driver import CudaError
from worker.operators.gemm import GEMM
from worker.protocol import RecordCase, Recorded, RecordFailed, Recording, RecordJob
from worker.record import __main__ as program
from worker.record import recorder
from worker.record.raw import RawMemset, RefusedError

CASES = tuple(
    RecordCase(case=f"m={m},n=16,k=16", dims=dims, tensors=GEMM.tensors(dims, "fp16"))
    for m in (16, 32, 48)
    for dims in ({"m": m, "n": 16, "k": 16},)
)


class StandIn:
    """A source whose call clears its workspace; at `fails_at` rows it raises `error` instead."""

    def __init__(self, *, workspace: int = 256, fails_at: int = 0, error: Exception | None = None) -> None:
        self.stream = object()
        self.workspace, self.fails_at, self.error = workspace, fails_at, error
        self.log: list[tuple[str, int]] = []

    def workspace_bytes(self, tensors: Any, dims: Any) -> int:
        return self.workspace

    def allocate(self, size: int) -> int:
        self.log.append(("allocate", size))
        return 0x7F00_0000_0000

    def warm_up(self, layout: Any, window: Any, dims: Any) -> None:
        self.log.append(("warm_up", dims["m"]))

    def call(self, layout: Any, window: Any, dims: Any) -> RawMemset:
        self.log.append(("call", dims["m"]))
        if dims["m"] == self.fails_at and self.error:
            raise self.error
        return RawMemset(window.base + layout.workspace_offset, 0, 1, 256, 1, 0)

    def find_cubin(self, function: Any, name: str) -> None:
        return None

    def cubin_path(self, digest: str, out_dir: Path) -> str:
        raise AssertionError("no cubin is launched")


@pytest.fixture
def said(monkeypatch, tmp_path):
    monkeypatch.setattr(recorder, "capture", lambda stream, call, find: [call()])
    monkeypatch.setattr(recorder, "is_device_address", lambda word: False)

    def run(source: StandIn) -> list[Any]:
        job = RecordJob(
            language="cuda",
            source="kernel.so",
            entry="kernelgate_run",
            cases=CASES,
            out_dir=str(tmp_path),
        )
        lines: list[Any] = []
        program.record(job, lambda _: source, lines.append)
        return lines

    return run


def test_each_case_is_announced_then_recorded(said):
    source = StandIn()
    lines = said(source)
    assert [(type(line), line.case) for line in lines] == [
        (kind, case.case) for case in CASES for kind in (Recording, Recorded)
    ]
    record = LaunchRecord.model_validate_json(Path(lines[1].record).read_bytes())
    assert record.nodes[0].slot_offset == record.layout.workspace_offset
    assert record.layout.workspace_bytes == 256
    assert [what for what, _ in source.log[:4]] == ["allocate", "warm_up", "call", "call"]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (RefusedError(Reason.RETURNED_ERROR, "kernelgate_run returned 7"), Reason.RETURNED_ERROR),
        (CudaError("CUDA_ERROR_ILLEGAL_ADDRESS", "in the warm call"), Reason.CRASHED),
    ],
)
def test_the_first_case_that_fails_ends_the_recording_with_its_reason(said, error, reason):
    lines = said(StandIn(fails_at=32, error=error))
    assert [type(line) for line in lines] == [Recording, Recorded, Recording, RecordFailed]
    assert (lines[-1].case, lines[-1].reason) == (CASES[1].case, reason)
    assert str(error) in lines[-1].message


@pytest.mark.parametrize("asked", [-1, 1 << 50])
def test_a_workspace_of_no_sensible_size_is_refused_before_memory_is_taken(said, asked):
    source = StandIn(workspace=asked)
    lines = said(source)
    assert lines[-1].reason is Reason.NOT_RECORDABLE
    assert f"{asked} bytes" in lines[-1].message
    assert source.log == []
