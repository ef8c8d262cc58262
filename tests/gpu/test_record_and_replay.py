"""Record, replay elsewhere, compare: on the GPU of this machine."""

from __future__ import annotations

import threading
import time

import pytest

from contract.outcomes import Reason
from contract.record import Copy, Launch, Memset
from tests.gpu import harness
from worker.launch.client import LauncherError
from worker.protocol import Attach, Detach, Prepare, RecordFailed

pytestmark = pytest.mark.gpu

SMALL = {"m": 128, "n": 128, "k": 128}
LARGE = {"m": 1024, "n": 1024, "k": 1024}
ENTRIES = harness.FIXTURES / "entries.cu"
TRITON = harness.FIXTURES / "tuned_gemm.py"
FP16_GEMM_ERROR = 4e-4

NOT_RECORDABLE = [
    ("allocates", "CUDA_ERROR_STREAM_CAPTURE"),
    ("allocates_in_stream", "allocates memory"),
    ("synchronises", "CUDA_ERROR_STREAM_CAPTURE"),
    ("side_stream_left", "CUDA_ERROR_STREAM_CAPTURE_UNJOINED"),
    ("copies_from_host", "between host and device"),
    ("calls_host", "host function"),
    ("launches_nothing", "launches nothing"),
    ("counts_calls", "shapes alone"),
]


def entry(name: str, dims: dict[str, int] = SMALL) -> dict[str, object]:
    return {"entry": name, "dims": dims, "cubins": harness.build(ENTRIES).cubins}


def record_entry(name: str, dims: dict[str, int] = SMALL):
    return harness.record(harness.build(ENTRIES).path, **entry(name, dims))


def recorded_entry(name: str, dims: dict[str, int] = SMALL):
    return harness.recorded(harness.build(ENTRIES).path, **entry(name, dims))


@pytest.mark.parametrize(("name", "words"), NOT_RECORDABLE)
def test_what_a_call_may_not_do_is_named(name, words):
    said = record_entry(name)
    assert isinstance(said, RecordFailed)
    assert said.reason is Reason.NOT_RECORDABLE
    assert words in said.message


@pytest.mark.parametrize("name", ["passes_global", "remembers_pointer"])
def test_an_address_that_is_not_of_the_slot_is_refused_with_its_parameter(name):
    said = record_entry(name)
    assert isinstance(said, RecordFailed)
    assert said.reason is Reason.NOT_RELOCATABLE
    assert "parameter" in said.message


def test_an_error_code_is_the_revisions_own():
    said = record_entry("returns_seven")
    assert isinstance(said, RecordFailed)
    assert said.reason is Reason.RETURNED_ERROR
    assert "returned 7" in said.message


def test_a_crash_of_the_host_code_comes_after_the_case_was_announced():
    with pytest.raises(AssertionError, match="recording"):
        record_entry("kills_itself")


@pytest.mark.parametrize("name", ["kernelgate_run", "side_stream_joined"])
def test_a_memset_a_gemm_and_a_second_kernel_replay_right_in_every_slot(name):
    record, said = recorded_entry(name)
    kinds = [type(node) for node in record.nodes]
    assert sorted(kind.__name__ for kind in kinds) == ["Launch", "Launch", "Memset"]
    inputs, outputs = harness.draw(record, 16)
    launcher = harness.attached(record, said, SMALL)
    try:
        order = [11, 3, 7, 0, 15]
        harness.burst(launcher, order)
        assert harness.worst_error(inputs, outputs, order) < FP16_GEMM_ERROR
        untouched = [slot for slot in range(16) if slot not in order]
        assert bool(harness.device().xp.isnan(outputs[0][harness.device().xp.asarray(untouched)]).all())
    finally:
        launcher.close()


def test_nodes_are_in_the_order_that_the_streams_joins_ask_for():
    record, _ = recorded_entry("side_stream_joined")
    last = record.nodes[-1]
    assert isinstance(last, Launch)
    assert "add_word" in last.function
    assert any(isinstance(node, Memset) for node in record.nodes[:-1])


def test_a_copy_inside_the_slot_is_replayed():
    record, said = recorded_entry("copies_inside")
    assert [type(node) for node in record.nodes] == [Copy]
    inputs, outputs = harness.draw(record, 4)
    launcher = harness.attached(record, said, SMALL)
    try:
        harness.burst(launcher, [2])
        xp = harness.device().xp
        assert bool((outputs[0][2].ravel()[:2048] == inputs[0][2].ravel()[:2048]).all())
        assert bool(xp.isnan(outputs[0][1]).all())
    finally:
        launcher.close()


def test_a_cluster_launch_keeps_its_cluster():
    if int(harness.device().xp.cuda.Device().compute_capability) < 90:
        pytest.skip("clusters need compute capability 9.0")
    record, said = recorded_entry("uses_clusters")
    assert record.nodes[0].cluster == (4, 1, 1)
    _, outputs = harness.draw(record, 2)
    launcher = harness.attached(record, said, SMALL)
    try:
        harness.burst(launcher, [1])
        assert outputs[0][1].ravel()[:8].get().tolist() == [0, 1, 2, 3, 0, 1, 2, 3]
    finally:
        launcher.close()


def test_a_tensor_map_moves_with_its_slot():
    if int(harness.device().xp.cuda.Device().compute_capability) < 90:
        pytest.skip("tensor maps need compute capability 9.0")
    built = harness.build(harness.FIXTURES / "tensor_map.cu")
    record, said = harness.recorded(built.path, entry="kernelgate_run", dims=SMALL, cubins=built.cubins)
    assert len(record.nodes[0].relocations) == 2
    inputs, outputs = harness.draw(record, 8)
    launcher = harness.attached(record, said, SMALL)
    try:
        harness.burst(launcher, [5, 2])
        for slot in (5, 2):
            assert bool((outputs[0][slot] == inputs[0][slot]).all())
    finally:
        launcher.close()


def test_a_tuned_triton_gemm_replays_right_without_triton():
    record, said = harness.recorded(TRITON, entry="run", dims=LARGE)
    assert [type(node) for node in record.nodes] == [Launch]
    inputs, outputs = harness.draw(record, 8)
    launcher = harness.attached(record, said, LARGE)
    try:
        harness.burst(launcher, [6, 1])
        assert harness.worst_error(inputs, outputs, [6, 1]) < FP16_GEMM_ERROR
    finally:
        launcher.close()


@pytest.mark.parametrize(
    ("name", "reason", "words"),
    [
        ("calls_cublas", Reason.NOT_RECORDABLE, "calls a library"),
        ("reads_data", Reason.NOT_RECORDABLE, "CUDA_ERROR_STREAM_CAPTURE"),
        ("allocates_a_copy", Reason.NOT_RELOCATABLE, "parameter 2"),
        ("raises", Reason.RETURNED_ERROR, "no such shape"),
        ("missing", Reason.ENTRY_MISSING, "has no function"),
    ],
)
def test_what_a_triton_launcher_may_not_do_is_named(name, reason, words):
    said = harness.record(TRITON, entry=name, dims=LARGE)
    assert isinstance(said, RecordFailed)
    assert said.reason is reason
    assert words in said.message


def test_an_illegal_address_is_a_crash_by_cudas_name_and_the_next_launcher_works():
    record, said = recorded_entry("writes_nowhere")
    harness.draw(record, 1)
    launcher = harness.attached(record, said, SMALL)
    try:
        with pytest.raises(LauncherError, match="CUDA_ERROR_ILLEGAL_ADDRESS") as caught:
            harness.burst(launcher, [0])
        assert caught.value.reason is Reason.CRASHED
    finally:
        launcher.close()
    test_a_copy_inside_the_slot_is_replayed()


def test_what_a_kernel_prints_is_no_answer():
    record, said = recorded_entry("prints_a_reply")
    harness.draw(record, 1)
    launcher = harness.attached(record, said, SMALL)
    try:
        assert harness.burst(launcher, [0])[0] > 0.5
        launcher.ask(Detach(), limit_s=harness.LIMIT_S)
    finally:
        launcher.close()


def test_the_probe_sees_a_kernel_that_another_process_runs_and_the_gpu_is_quiet_once_it_is_killed():
    record, said = recorded_entry("hangs")
    harness.draw(record, 1)
    device = harness.device()
    assert device.quiet()
    launcher = harness.attached(record, said, SMALL)
    launcher.ask(Prepare(slots=(0,)), limit_s=harness.LIMIT_S)

    def hang() -> None:
        with pytest.raises(LauncherError):
            launcher.go(limit_s=2.0)

    thread = threading.Thread(target=hang)
    thread.start()
    deadline = time.monotonic() + 1.5
    seen = [device.quiet()]
    while seen[-1] and time.monotonic() < deadline:
        seen.append(device.quiet())
    assert not all(seen)
    thread.join()
    deadline = time.monotonic() + 10
    while not device.quiet() and time.monotonic() < deadline:
        pass
    assert device.quiet()


def test_a_launcher_that_is_detached_has_no_arena():
    record, said = recorded_entry("copies_inside")
    harness.draw(record, 1)
    launcher = harness.attached(record, said, SMALL)
    try:
        launcher.ask(Detach(), limit_s=harness.LIMIT_S)
        with pytest.raises(LauncherError) as caught:
            harness.burst(launcher, [0])
        assert caught.value.reason is Reason.CRASHED
    finally:
        launcher.close()


def test_a_launcher_attaches_again_after_it_was_detached():
    record, said = recorded_entry("copies_inside")
    _, outputs = harness.draw(record, 1)
    launcher = harness.attached(record, said, SMALL)
    try:
        for command in (Detach(), Attach()):
            launcher.ask(command, limit_s=harness.LIMIT_S)
        harness.burst(launcher, [0])
        assert not bool(harness.device().xp.isnan(outputs[0][0].ravel()[:2048]).any())
    finally:
        launcher.close()
