"""NVIDIA's tools over replayed calls, on the GPU of this machine; skipped where they are lacking or not permitted."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from contract.devices import DeviceClass, device_class_of
from contract.outcomes import Reason, Stage
from contract.profile import PROFILE
from contract.suite import Case, SanitizerTool, Suite
from tests.gpu import harness
from worker.examine import ncu, programs
from worker.examine.programs import NotHereError
from worker.examining import Examiner, NotExaminedError
from worker.failure import Failed
from worker.protocol import ExamineCase, ExamineJob, GpuArtifact, Side
from worker.room import open_room
from worker.sandbox import NoSandbox, Sandbox, choose
from worker.settings import WorkerSettings

pytestmark = pytest.mark.gpu

FAULTS = harness.FIXTURES / "faults.cu"
LARGE, EDGE = {"m": 1024, "n": 1024, "k": 1024}, {"m": 48, "n": 48, "k": 48}
LIMIT_S = 120.0


@cache
def device_class() -> DeviceClass:
    return device_class_of(harness.device().environment().device) or DeviceClass.H200


@cache
def suite(tool: SanitizerTool = "memcheck") -> Suite:
    return Suite(
        kernel="hgemm_faults",
        operator="gemm",
        dtype="fp16",
        device_classes=(device_class(),),
        cases=(Case(dims=LARGE),),
        verify_cases=(Case(dims=EDGE),),
        sanitize=(tool,),
    )


@cache
def faulty(entry: str) -> Side:
    built = harness.build(FAULTS)
    return harness.side(entry, built.path, entry=entry, suite=suite(), cubins=built.cubins)


@pytest.fixture(params=["free", "sandboxed"])
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    made = choose(WorkerSettings()) if request.param == "sandboxed" else NoSandbox()
    if request.param == "sandboxed" and not made.isolates:
        pytest.skip(f"no sandbox: {made.problem}")
    return made


@contextmanager
def examining(side: Side, of: Suite, sandbox: Sandbox) -> Iterator[Examiner]:
    with open_room(Path(tempfile.gettempdir()), sandbox=sandbox, check=lambda: None) as room:
        yield Examiner(
            side=side,
            suite=of,
            device_class=device_class(),
            room=room,
            settings=WorkerSettings(),
            on_progress=lambda *_: None,
            left_s=lambda: LIMIT_S,
        )
    sandbox.close()


def sanitized(entry: str, tool: SanitizerTool = "memcheck", *, sandbox: Sandbox | None = None) -> str:
    """What it says; skips where the tool can't look at all."""
    try:
        programs.compute_sanitizer()
    except NotHereError as error:
        pytest.skip(str(error))
    with examining(faulty(entry), suite(tool), sandbox or NoSandbox()) as examiner:
        return examiner.sanitize()


def test_a_call_is_replayed_with_its_tensors_in_memory_of_their_own(tmp_path):
    artifact = faulty("honest").artifact
    assert isinstance(artifact, GpuArtifact)
    cases = tuple(
        ExamineCase(case=case, record=file, cubins=artifact.cubins) for case, file in artifact.records.items()
    )
    job = tmp_path / "job.json"
    job.write_text(ExamineJob(cases=cases, seed=7).model_dump_json())
    command = [sys.executable, "-m", "worker.launch.examined", str(job)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S, cwd=harness.ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count('"examining"') == len(cases) == 2
    assert '"examined"' in done.stdout.splitlines()[-1]


def test_memcheck_finds_nothing_in_honest_code(sandbox):
    assert sanitized("honest", sandbox=sandbox) == "memcheck: no errors in 2 cases"


@pytest.mark.parametrize(
    ("entry", "words"),
    [("reads_past_an_input", "read of size 2"), ("writes_past_its_output", "write of size")],
)
def test_memcheck_finds_what_leaves_a_tensor(entry, words, sandbox):
    with pytest.raises(Failed) as caught:
        sanitized(entry, sandbox=sandbox)
    failure = caught.value.failure
    assert (failure.reason, failure.stage) == (Reason.SANITIZER_FINDING, Stage.SANITIZE)
    assert failure.message.startswith("memcheck: Invalid __global__")
    assert words in failure.message
    assert failure.case == "m=48,n=48,k=48"


@pytest.mark.parametrize(
    ("tool", "entry", "words"),
    [
        ("racecheck", "races_in_shared_memory", "Race reported"),
        ("initcheck", "reads_what_nobody_wrote", "Uninitialized __global__ memory read"),
        ("synccheck", "waits_apart", "Barrier error"),
    ],
)
def test_the_other_tools_find_what_they_are_for_and_nothing_in_honest_code(tool, entry, words):
    assert sanitized("honest", tool) == f"{tool}: no errors in 2 cases"
    with pytest.raises(Failed) as caught:
        sanitized(entry, tool)
    assert words in caught.value.failure.message


def test_counters_are_read_or_it_is_said_why_not(sandbox):
    found: dict = {}
    with examining(faulty("honest"), suite(), sandbox) as examiner:
        try:
            examiner.profile(found)
        except NotExaminedError as error:
            assert not found
            if "this node has no" in str(error) or ncu.NOT_PERMITTED in str(error):
                pytest.skip(str(error))
            raise
    (metrics,) = found.values()
    values = {metric.name: metric.value for metric in metrics}
    assert set(values) == set(PROFILE)
    shares = [value for name, value in values.items() if PROFILE[name].unit == "%"]
    assert all(0 <= share <= 100.5 for share in shares)
    # One warp a block, tensor cores at work, nothing to wait for but memory.
    assert 0 < values["tensor_pipe_utilisation"] < 60
    assert 0 < values["achieved_occupancy"] <= 55
    assert values["stall_long_scoreboard"] > values["stall_barrier"]
