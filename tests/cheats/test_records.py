"""Items 1, 10, 12, 38, 41 and 51 on a GPU, where no host code of the submission is left: what a record may hold."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from contract.outcomes import Reason
from contract.record import Launch, LaunchRecord
from tests.worker.record.test_recorder import StandIn
from worker.operators.gemm import GEMM
from worker.protocol import RecordCase
from worker.record import graph, recorder
from worker.record.order import linear_order
from worker.record.raw import RawLaunch, RawMemset, RefusedError, Window
from worker.record.relocate import relocate

BYTES = 1 << 20
FIRST, SECOND = Window(0x7F00_0000_0200, BYTES), Window(0x7F00_0020_0E00, BYTES)
DIMS = {"m": 16, "n": 16, "k": 16}
CASE = RecordCase(case="m=16,n=16,k=16", dims=DIMS, tensors=GEMM.tensors(DIMS, "fp16"))


def launch(*words: int, grid: tuple[int, int, int] = (8, 1, 1)) -> RawLaunch:
    return RawLaunch(
        function="gemm",
        cubin="0" * 64,
        grid=grid,
        block=(128, 1, 1),
        cluster=(1, 1, 1),
        shared_bytes=0,
        max_shared_bytes=0,
        parameters=b"".join(word.to_bytes(8, "little") for word in words),
        fields=tuple((8 * place, 8) for place in range(len(words))),
    )


def recorded(first: RawLaunch, second: RawLaunch) -> Any:
    held = {first.parameters, second.parameters}
    addresses = {int.from_bytes(part[at : at + 8], "little") for part in held for at in range(0, len(part), 8)}
    return relocate(
        [first], [second], windows=(FIRST, SECOND), is_address=lambda word: word in addresses and word > 1 << 40
    )


def test_the_honest_control_is_moved_to_any_slot() -> None:
    (node,) = recorded(launch(FIRST.base + 64, 7), launch(SECOND.base + 64, 7))
    assert [(moved.at, moved.slot_offset) for moved in node.relocations] == [(0, 64)]
    assert base64.b64decode(node.model_dump()["parameters"])[8:] == (7).to_bytes(8, "little")


def test_12_15_a_pointer_that_is_remembered_from_the_first_call_is_refused() -> None:
    with pytest.raises(RefusedError, match="outside this case's tensors") as caught:
        recorded(launch(FIRST.base + 64), launch(FIRST.base + 64))
    assert caught.value.reason is Reason.NOT_RELOCATABLE


def test_14_a_buffer_of_the_hosts_own_is_refused() -> None:
    with pytest.raises(RefusedError) as caught:
        recorded(launch(0x7E00_0000_0000), launch(0x7E00_0000_0000))
    assert caught.value.reason is Reason.NOT_RELOCATABLE


@pytest.mark.parametrize("second", [launch(SECOND.base, 8), launch(SECOND.base + 8, 7)])
def test_06_a_launch_that_counts_its_calls_is_refused(second: RawLaunch) -> None:
    with pytest.raises(RefusedError) as caught:
        recorded(launch(FIRST.base, 7), second)
    assert caught.value.reason is Reason.NOT_RELOCATABLE


def test_06_a_grid_that_depends_on_the_call_is_refused() -> None:
    with pytest.raises(RefusedError, match="shapes alone") as caught:
        recorded(launch(FIRST.base), launch(SECOND.base, grid=(1, 1, 1)))
    assert caught.value.reason is Reason.NOT_RECORDABLE


def test_10_an_empty_graph_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(recorder, "capture", lambda *_: [])
    monkeypatch.setattr(recorder, "is_device_address", lambda _: False)
    with pytest.raises(RefusedError, match="launches nothing") as caught:
        recorder.record_case(StandIn(), CASE, (), tmp_path)
    assert caught.value.reason is Reason.NOT_RECORDABLE


def test_10_46_a_record_without_a_node_is_no_record() -> None:
    with pytest.raises(ValueError, match="nodes"):
        LaunchRecord.model_validate({"case": "m=1", "layout": {}, "nodes": []})


def test_01_41_branches_of_a_graph_become_one_line() -> None:
    forked = [(0, 1), (0, 2), (1, 3), (2, 3)]
    order = linear_order(4, forked)
    assert sorted(order) == [0, 1, 2, 3]
    assert all(order.index(before) < order.index(after) for before, after in forked)
    # Nothing that a record says can let two calls overlap, keep L2 for itself, or wait for anything.
    assert set(Launch.model_fields) == {
        *("kind", "function", "cubin", "grid", "block", "cluster", "shared_bytes", "max_shared_bytes"),
        *("parameters", "relocations"),
    }


@pytest.mark.parametrize(
    "kind",
    ["HOST", "GRAPH", "WAIT_EVENT", "EVENT_RECORD", "EXT_SEMAS_WAIT", "MEM_ALLOC", "BATCH_MEM_OP", "CONDITIONAL"],
)
def test_01_09_45_nodes_that_wait_or_call_the_host_are_refused(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    node_type = getattr(graph.cuda.CUgraphNodeType, f"CU_GRAPH_NODE_TYPE_{kind}")
    monkeypatch.setattr(graph.cuda, "cuGraphNodeGetType", lambda _: (graph.cuda.CUresult.CUDA_SUCCESS, node_type))
    with pytest.raises(RefusedError) as caught:
        graph._read(object(), lambda *_: None)
    assert caught.value.reason is Reason.NOT_RECORDABLE


def test_38_39_a_function_that_was_not_built_from_the_source_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    success, found = graph.cuda.CUresult.CUDA_SUCCESS, graph.cuda.CUDA_KERNEL_NODE_PARAMS()
    found.func = 1
    monkeypatch.setattr(graph.cuda, "cuGraphKernelNodeGetParams", lambda _: (success, found))
    monkeypatch.setattr(graph.cuda, "cuFuncGetName", lambda _: (success, b"sm90_xmma_gemm_f16f16"))
    with pytest.raises(RefusedError, match="calls a library") as caught:
        graph._launch(object(), lambda *_: None)
    assert caught.value.reason is Reason.NOT_RECORDABLE


def test_44_a_memset_or_copy_outside_the_slot_is_refused() -> None:
    memsets = [[RawMemset(window.base + BYTES - 4, 0, 1, 8, 1, 0)] for window in (FIRST, SECOND)]
    with pytest.raises(RefusedError, match="not inside") as caught:
        relocate(memsets[0], memsets[1], windows=(FIRST, SECOND), is_address=lambda _: False)
    assert caught.value.reason is Reason.NOT_RELOCATABLE
