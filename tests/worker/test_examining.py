"""The stages after everything that is judged, with stand-ins for the tools and no GPU."""

import shutil
import sys
from pathlib import Path

import pytest

from contract.outcomes import OUTCOME_OF, Outcome, Reason, Stage
from contract.profile import PROFILE
from contract.report import Report
from contract.suite import Case
from tests.worker.jobs import FAKE_RECORDER, FIXTURES, bundle, bundles, job, settings, suite
from worker.pipeline import evaluate

VERIFIED = (Case(dims={"m": 8, "n": 8, "k": 8}), Case(dims={"m": 48, "n": 48, "k": 48}))
CASES = ("m=16,n=16,k=16", "m=32,n=32,k=32")


pytestmark = pytest.mark.usefixtures("_an_h200")


def tool(tmp_path: Path, plot: str) -> str:
    """In a folder of its own, as a toolkit is: a sandbox sees nothing else of this project's tests."""
    folder = tmp_path / "tools"
    folder.mkdir(exist_ok=True)
    for name in ("fake_tool.py", "fake_examined.py"):
        shutil.copyfile(FIXTURES / name, folder / name)
    file = folder / f"tool-{plot}"
    file.write_text(f'#!/bin/sh\nexec {sys.executable} {folder / "fake_tool.py"} {plot} "$@"\n')
    file.chmod(0o755)
    return str(file)


def run(
    tmp_path: Path,
    cubin: Path,
    *,
    sanitizer: str = "",
    ncu: str = "",
    examined: tuple[str, ...] = (),
    sandbox: str = "off",
    **more,
) -> Report:
    head = bundle("copy_triton")
    of = suite("fp16", verify_cases=VERIFIED, sanitize=more.pop("sanitize", ("memcheck",)))
    wanted = job(head, device_class="h200", suite=of, **more)
    where = settings(
        tmp_path,
        recorder=(FAKE_RECORDER, "fine", str(cubin)),
        examined=(str(tmp_path / "tools" / "fake_examined.py"), *examined),
        compute_sanitizer=tool(tmp_path, sanitizer) if sanitizer else "/nowhere/compute-sanitizer",
        ncu=tool(tmp_path, ncu) if ncu else "/nowhere/ncu",
        sandbox=sandbox,
        sanitize_limit_s=3.0 if sandbox == "off" else 60.0,
        profile_limit_s=3.0 if sandbox == "off" else 60.0,
    )
    return evaluate(wanted, bundles(head), settings=where, on_progress=lambda _: None, cancelled=lambda: False)


def left_out(report: Report) -> dict[Stage, str]:
    return {one.stage: one.why for one in report.left_out}


def last_stages(report: Report) -> list[Stage]:
    stages = [time.stage for time in report.stages]
    return stages[stages.index(Stage.MEASURE) + 1 :]


def names(report: Report, case: str) -> set[str]:
    return {metric.name for result in report.cases if result.case == case for metric in result.metrics}


def test_code_in_which_nothing_is_found_says_so_and_passes(tmp_path, cubin):
    report = run(tmp_path, cubin, sanitizer="clean", sanitize=("memcheck", "synccheck"))
    assert report.failure is None
    assert report.left_out == ()
    assert last_stages(report) == [Stage.SANITIZE]
    assert report.stages[-1].detail == "memcheck, synccheck: no errors in 3 cases"


def test_a_finding_is_incorrect_with_the_tools_words_and_the_case_that_shows_it(tmp_path, cubin):
    report = run(tmp_path, cubin, sanitizer="finds", ncu="counts", profile=True)
    assert (report.failure.reason, report.failure.stage) == (Reason.SANITIZER_FINDING, Stage.SANITIZE)
    assert OUTCOME_OF[report.failure.reason] is Outcome.INCORRECT
    assert report.failure.message.startswith("memcheck: Invalid __global__ read of size 4 bytes\nat spilled")
    assert report.failure.case == "m=48,n=48,k=48"
    assert last_stages(report) == [Stage.SANITIZE]
    assert [result.case for result in report.cases] == list(CASES)


@pytest.mark.parametrize(
    ("plot", "examined", "words"),
    [
        ("", (), "this node has no /nowhere/compute-sanitizer"),
        ("unsupported", (), "Device not supported"),
        ("clean", ("crash",), "CUDA_ERROR_LAUNCH_FAILED"),
        ("hangs", (), "memcheck: too slow under the tool: it was ended after 3 s, in m=16,n=16,k=16, case 3 of 3;"),
        ("clean", ("slow",), "it was ended after 3 s, in m=48,n=48,k=48, case 2 of 3; nothing is known of the rest"),
    ],
)
def test_a_sanitizer_that_can_not_look_leaves_the_verdict_as_it_is(tmp_path, cubin, plot, examined, words):
    report = run(tmp_path, cubin, sanitizer=plot, examined=examined)
    assert report.failure is None
    assert words in left_out(report)[Stage.SANITIZE]
    assert last_stages(report) == []
    assert len(report.cases) == 2


def test_what_was_found_counts_though_the_tool_was_too_slow_for_the_rest(tmp_path, cubin):
    report = run(tmp_path, cubin, sanitizer="finds_and_hangs")
    assert report.failure.reason is Reason.SANITIZER_FINDING
    assert report.failure.message.startswith("memcheck: Invalid __global__ read of size 4 bytes\nat spilled")
    assert report.failure.case is None


def test_what_one_tool_can_not_see_another_finds_all_the_same(tmp_path, cubin):
    report = run(tmp_path, cubin, sanitizer="racecheck_alone_finds", sanitize=("memcheck", "racecheck"))
    assert report.failure.reason is Reason.SANITIZER_FINDING
    assert report.failure.message.startswith("racecheck: Invalid")
    report = run(tmp_path, cubin, sanitizer="racecheck_alone_finds", sanitize=("memcheck", "synccheck"))
    assert report.failure is None
    assert left_out(report)[Stage.SANITIZE].startswith("synccheck: no errors in 3 cases; memcheck: it could not look")


def test_a_suite_may_do_without_the_sanitizer(tmp_path, cubin):
    report = run(tmp_path, cubin, sanitizer="finds", sanitize=())
    assert report.failure is None
    assert report.left_out == ()


def test_a_profile_is_metrics_of_each_timed_case(tmp_path, cubin):
    report = run(tmp_path, cubin, sanitizer="clean", ncu="counts", profile=True)
    assert report.failure is None
    assert last_stages(report) == [Stage.SANITIZE, Stage.PROFILE]
    for case in CASES:
        assert set(PROFILE) < names(report, case)
        assert "time_us" in names(report, case)


def test_tools_look_into_the_sandbox(tmp_path, cubin):
    report = run(tmp_path, cubin, sanitizer="clean", ncu="counts", profile=True, sandbox="on")
    assert (report.failure, report.left_out) == (None, ())
    assert report.environment.sandbox
    assert last_stages(report) == [Stage.SANITIZE, Stage.PROFILE]


def test_nobody_profiles_unasked(tmp_path, cubin):
    report = run(tmp_path, cubin, sanitizer="clean", ncu="counts")
    assert last_stages(report) == [Stage.SANITIZE]
    assert not set(PROFILE) & names(report, CASES[0])


@pytest.mark.parametrize(
    ("plot", "words"),
    [
        ("", "this node has no /nowhere/ncu"),
        ("refuses", "this node does not permit its counters to be read (ERR_NVGPUCTRPERM)"),
        ("hangs", "it was ended after 3 s"),
    ],
)
def test_a_node_that_can_not_count_leaves_the_profile_out_and_says_why(tmp_path, cubin, plot, words):
    report = run(tmp_path, cubin, sanitizer="clean", ncu=plot, profile=True)
    assert report.failure is None
    assert words in left_out(report)[Stage.PROFILE]
    assert last_stages(report) == [Stage.SANITIZE]
    assert names(report, CASES[0]) == {"time_us"}


def test_what_was_counted_before_it_failed_is_kept(tmp_path, cubin):
    report = run(tmp_path, cubin, sanitizer="clean", ncu="counts_first", profile=True)
    assert "Failed to profile" in left_out(report)[Stage.PROFILE]
    assert set(PROFILE) < names(report, CASES[0])
    assert names(report, CASES[1]) == {"time_us"}


def test_on_a_cpu_there_is_nothing_to_sanitize_and_a_profile_is_left_out(tmp_path):
    head = bundle("gemm_cpu")
    report = evaluate(
        job(head, profile=True),
        bundles(head),
        settings=settings(tmp_path, sandbox="off"),
        on_progress=lambda _: None,
        cancelled=lambda: False,
    )
    assert report.failure is None
    assert left_out(report) == {Stage.PROFILE: "it needs code that runs on a GPU"}


def test_a_build_leaves_the_profile_out_that_was_asked_for(tmp_path):
    head = bundle("copy_cuda")
    report = evaluate(
        job(head, suite=suite("fp16"), device_class="h200", build_only=True, profile=True),
        bundles(head),
        settings=settings(tmp_path, sandbox="off"),
        on_progress=lambda _: None,
        cancelled=lambda: False,
    )
    assert left_out(report)[Stage.PROFILE] == "only a build was asked for"
