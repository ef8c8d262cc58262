"""The cheats that device code can try, on the GPU of this machine, judged by the judge's own process."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from contract.devices import DeviceClass, device_class_of
from contract.outcomes import Reason
from contract.record import LaunchRecord
from contract.suite import Case, Suite
from tests.gpu import harness
from tests.worker.judge.conftest import Said
from worker.protocol import JudgeJob, JudgeSays, RecordFailed

pytestmark = pytest.mark.gpu

DIMS = {"m": 256, "n": 256, "k": 256}
WIDE = {"m": 512, "n": 512, "k": 512}
CHEATS = harness.FIXTURES / "cheats.cu"
AHEAD = harness.FIXTURES / "ahead.cu"


@cache
def device_class() -> DeviceClass:
    found = device_class_of(harness.device().environment().device)
    return found or DeviceClass.H200  # the class decides the roofline alone


def judged(entry: str, *, source: Path = CHEATS, dims: dict[str, int] = DIMS, **more: object) -> Said:
    suite = Suite(
        kernel="hgemm_cheats", operator="gemm", dtype="fp16", device_classes=(device_class(),), cases=(Case(dims=dims),)
    )
    built = harness.build(source)
    head = harness.side(entry, built.path, entry=entry, suite=suite, cubins=built.cubins)
    told = {"max_processes": 1, **more}
    job = JudgeJob(device_class=device_class(), suite=suite, head=head, base=None, seed=7, **told)
    finished = subprocess.run(
        [sys.executable, "-m", "worker.judge"],
        input=job.model_dump_json().encode(),
        capture_output=True,
        check=False,
        timeout=180,
        cwd=harness.ROOT,
    )
    parse: TypeAdapter[object] = TypeAdapter(JudgeSays)
    messages = [parse.validate_json(line) for line in finished.stdout.splitlines()]
    assert messages, finished.stderr.decode()
    return Said(messages=messages, stderr=finished.stderr.decode())


def test_the_honest_control_passes_and_is_measured():
    said = judged("honest")
    assert said.done.failure is None
    assert len(said.results) == 1


@pytest.mark.parametrize(
    ("entry", "reasons"),
    [
        ("wrong", {"wrong_values"}),
        ("drops_the_last_tile", {"nan_values"}),
        ("sums_in_half", {"wrong_values"}),
        ("writes_past_its_output", {"out_of_bounds_write"}),
        ("writes_the_next_slot", {"untouched_slot_written", "wrong_values", "out_of_bounds_write"}),
    ],
)
def test_20_31_32_wrong_numbers_and_stray_writes_fail_when_they_are_verified(entry, reasons):
    assert judged(entry, measure=False).reason in reasons


@pytest.mark.parametrize(
    ("entry", "reason"), [("lazy_after_three_calls", "nan_values"), ("keeps_the_first_result", "wrong_values")]
)
def test_06_14_what_a_kernel_keeps_on_the_device_is_caught_in_the_timed_calls(entry, reason):
    """Globals start clean at each burst, so that a count of calls reaches no further than the burst itself."""
    said = judged(entry, verify=False)
    assert said.reason == reason


def test_41_calls_that_do_their_neighbours_work_are_untrusted():
    """Each output is right, and the burst is as long as all of its calls: one of them, timed by itself, is not."""
    honest = judged("alone", source=AHEAD, dims=WIDE, max_processes=4)
    assert honest.done.failure is None
    assert judged("ahead", source=AHEAD, dims=WIDE, measure=False).done.failure is None
    assert judged("ahead", source=AHEAD, dims=WIDE, max_processes=4).reason == "calls_overlap"


def test_09_l2_that_the_recorder_sets_aside_is_no_part_of_a_record():
    built = harness.build(CHEATS)
    said = harness.record(built.path, entry="sets_l2_aside", dims=DIMS, cubins=built.cubins)
    if isinstance(said, RecordFailed):
        assert said.reason is Reason.NOT_RECORDABLE
        return
    plain, _ = harness.recorded(built.path, entry="honest", dims=DIMS, cubins=built.cubins)
    assert LaunchRecord.model_validate_json(Path(said.record).read_bytes()).nodes == plain.nodes
    assert judged("sets_l2_aside", verify=False).done.failure is None
