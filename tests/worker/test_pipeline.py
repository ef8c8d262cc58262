import json
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest

from contract.bundle import Files
from contract.job import Job, Progress
from contract.outcomes import OUTCOME_OF, Outcome, Reason, Stage
from contract.report import Report
from tests.worker.jobs import bundle, bundles, job, settings, suite
from worker.pipeline import Cancelled, evaluate

OTHER = bundle("gemm_cpu")["kernel.cpp"].decode().replace("float sum = 0;", 'float sum = 0.0f; asm volatile("nop");')


@pytest.fixture
def head() -> Files:
    return bundle("gemm_cpu")


@pytest.fixture
def base() -> Files:
    return bundle("gemm_cpu", kernel_cpp=OTHER)


def run(wanted: Job, *sides: Files | None, tmp_path: Path, progress: list[Progress] | None = None, **more) -> Report:
    told = [] if progress is None else progress
    cancelled = more.pop("cancelled", lambda: False)
    return evaluate(
        wanted, bundles(*sides), settings=settings(tmp_path, **more), on_progress=told.append, cancelled=cancelled
    )


def seen_by_judge(report: Report) -> dict:
    return json.loads(report.environment.libraries["seen"])


def test_a_revision_is_built_judged_and_reported_stage_by_stage(head, base, tmp_path):
    progress: list[Progress] = []
    report = run(job(head, base), head, base, tmp_path=tmp_path, progress=progress)
    assert report.failure is None
    assert [stage.stage for stage in report.stages] == [Stage.BUILD, Stage.INSPECT, Stage.VERIFY, Stage.MEASURE]
    assert all(a.ended_at <= b.started_at for a, b in zip(report.stages, report.stages[1:], strict=False))
    assert len(report.cases) == len(report.checks) == 2
    assert report.statics[0].function == report.base_statics[0].function == "kernelgate_run"
    assert report.left_out == ()
    assert report.environment.sandbox is True
    assert report.environment.toolchain["g++"]
    assert {p.stage for p in progress} == {Stage.BUILD, Stage.INSPECT, Stage.VERIFY, Stage.MEASURE}
    assert list((tmp_path / "work").iterdir()) == []


def test_a_second_evaluation_builds_nothing_again(head, base, tmp_path):
    first = run(job(head, base), head, base, tmp_path=tmp_path)
    second = run(job(head, base), head, base, tmp_path=tmp_path)
    assert [report.stages[0].cached for report in (first, second)] == [False, True]
    assert second.artifact_digest == first.artifact_digest
    build = second.stages[0]
    assert (build.ended_at - build.started_at).total_seconds() < 0.5


def test_the_base_is_not_built_again_for_another_head(head, base, tmp_path):
    run(job(base), base, tmp_path=tmp_path, gxx="g++")
    built = set((tmp_path / "cache" / "build").iterdir())
    run(job(head, base), head, base, tmp_path=tmp_path)
    assert len(set((tmp_path / "cache" / "build").iterdir()) - built) == 1


def test_head_and_base_of_other_machine_code_have_other_digests(head, base, tmp_path):
    seen = seen_by_judge(run(job(head, base), head, base, tmp_path=tmp_path))
    assert seen["head"]["artifact_digest"] != seen["base"]["artifact_digest"]


def test_the_same_machine_code_has_one_digest_whatever_its_source_says(head, tmp_path):
    base = bundle("gemm_cpu", kernel_cpp="// a comment more\n" + head["kernel.cpp"].decode())
    seen = seen_by_judge(run(job(head, base), head, base, tmp_path=tmp_path))
    assert seen["head"]["artifact_digest"] == seen["base"]["artifact_digest"]
    assert seen["base"]["label"] == "v0"


def test_a_revision_may_be_its_own_base(head, tmp_path):
    seen = seen_by_judge(run(job(head, head), head, tmp_path=tmp_path))
    assert seen["head"]["artifact_digest"] == seen["base"]["artifact_digest"]


def test_what_the_judge_finds_wrong_is_the_heads_failure(head, tmp_path):
    report = run(job(head, suite=suite(summary="wrong")), head, tmp_path=tmp_path)
    assert report.failure.reason is Reason.WRONG_VALUES
    assert [stage.stage for stage in report.stages] == [Stage.BUILD, Stage.INSPECT, Stage.VERIFY]


@pytest.mark.parametrize(
    ("plot", "words"),
    [
        ("crash", "by signal 11"),
        ("exit", "the judge's last words"),
        ("garbage", "can't be read"),
        ("hang", "said nothing for 1 s"),
    ],
)
def test_a_judge_that_fails_is_never_the_kernels_fault(head, tmp_path, plot, words):
    report = run(job(head, suite=suite(summary=plot)), head, tmp_path=tmp_path, silence_limit_s=1.0)
    assert report.failure.reason is Reason.INTERNAL_ERROR
    assert OUTCOME_OF[report.failure.reason] is Outcome.INFRASTRUCTURE_ERROR
    assert words in report.failure.message


def test_a_head_that_does_not_compile_is_build_failed(head, base, tmp_path):
    wrong = bundle("gemm_cpu", kernel_cpp="nonsense")
    report = run(job(wrong, base), wrong, base, tmp_path=tmp_path)
    assert (report.failure.reason, report.failure.stage) == (Reason.COMPILE_ERROR, Stage.BUILD)
    assert "kernel.cpp:1" in report.failure.message


def test_a_base_that_does_not_compile_is_no_fault_of_the_head(head, tmp_path):
    wrong = bundle("gemm_cpu", kernel_cpp="nonsense")
    report = run(job(head, wrong), head, wrong, tmp_path=tmp_path)
    assert report.failure.reason is Reason.BASE_FAILED
    assert "the base v0 failed (compile_error)" in report.failure.message


def test_a_base_that_needs_a_card_is_no_fault_of_a_head_that_does_not(head, tmp_path):
    base = bundle("copy_triton", manifest='architectures = ["sm_89"]\n')
    report = run(job(head, base), head, base, tmp_path=tmp_path)
    assert report.failure.reason is Reason.BASE_FAILED
    assert "v0 is compiled for sm_89, and there is no card here" in report.failure.message


def test_a_compiler_that_is_not_there_is_an_infrastructure_error(head, tmp_path):
    report = run(job(head), head, tmp_path=tmp_path, gxx=str(tmp_path / "g++"))
    assert report.failure.reason is Reason.TOOLCHAIN_MISSING


def test_a_case_that_the_base_has_must_not_be_refused(head, base, tmp_path):
    narrowed = bundle("gemm_cpu", manifest="[constraints]\nat_most = { m = 16 }\n")
    report = run(job(narrowed, base), narrowed, base, tmp_path=tmp_path)
    assert (report.failure.reason, report.failure.case) == (Reason.CASE_REFUSED, "m=32,n=32,k=32")
    assert "m = 32 is over 16" in report.failure.message
    assert "base v0 supports" in report.failure.message


def test_a_case_that_neither_side_has_is_left_out(tmp_path):
    head = bundle("gemm_cpu", manifest="[constraints]\nat_most = { m = 16 }\n")
    base = bundle("gemm_cpu", manifest="[constraints]\nat_most = { m = 20 }\n", kernel_cpp=OTHER)
    report = run(job(head, base), head, base, tmp_path=tmp_path)
    assert report.failure is None
    assert set(seen_by_judge(report)["head"]["refused"]) == {"m=32,n=32,k=32"}


def test_a_revision_without_a_single_case_is_refused(tmp_path):
    head = bundle("gemm_cpu", manifest="[constraints]\nat_most = { m = 4 }\n")
    assert run(job(head), head, tmp_path=tmp_path).failure.reason is Reason.CASE_REFUSED


def test_a_language_that_the_device_can_not_run_is_refused(head, tmp_path):
    report = run(job(head, device_class="h200"), head, tmp_path=tmp_path)
    assert report.failure.reason is Reason.ARCHITECTURE_UNSUPPORTED


# ------------------------------------------------------------------------------------------------------ build only


def test_a_build_for_a_card_not_at_hand_ends_after_inspecting(tmp_path):
    head = bundle("copy_cuda")
    report = run(job(head, device_class="b300", build_only=True, suite=suite("fp16")), head, tmp_path=tmp_path)
    assert report.failure is None
    assert report.built_only
    assert [stage.stage for stage in report.stages] == [Stage.BUILD, Stage.INSPECT]
    assert report.statics[0].registers > 0


def test_triton_is_compiled_once_for_its_cases(tmp_path):
    head = bundle("copy_triton")
    wanted = job(head, device_class="b300", build_only=True, suite=suite("fp16"))
    first, second = (run(wanted, head, tmp_path=tmp_path) for _ in range(2))
    assert first.built_only
    assert first.statics[0].architecture == "sm_103a"
    assert second.stages[0].cached
    assert second.statics == first.statics


# ------------------------------------------------------------------------------------------- ends, and what is left


def test_cancelling_kills_what_runs_and_leaves_nothing(head, tmp_path):
    judging = threading.Event()

    def told(progress: Progress) -> None:
        if progress.stage is Stage.VERIFY:
            judging.set()

    before = set(psutil.Process().children(recursive=True))
    with pytest.raises(Cancelled):
        evaluate(
            job(head, suite=suite(summary="hang")),
            bundles(head),
            settings=settings(tmp_path),
            on_progress=told,
            cancelled=judging.is_set,
        )
    assert set(psutil.Process().children(recursive=True)) <= before
    assert list((tmp_path / "work").iterdir()) == []


def test_a_base_that_still_compiles_is_ended_when_the_head_has_failed(tmp_path):
    head = bundle("gemm_cpu", kernel_cpp="nonsense")
    endless = """
    template <int n, int m> struct F { static constexpr long v = F<n - 1, m>::v + F<n - 1, m + 1>::v; };
    template <int m> struct F<0, m> { static constexpr long v = m; };
    extern "C" int kernelgate_run(const void*) { return F<850, 0>::v; }
    """
    base = bundle("gemm_cpu", kernel_cpp=endless)
    began = time.monotonic()
    report = run(job(head, base), head, base, tmp_path=tmp_path)
    assert report.failure.reason is Reason.COMPILE_ERROR
    assert time.monotonic() - began < 10


def test_an_evaluation_ends_before_its_lease(head, tmp_path):
    soon = datetime.now(UTC) + timedelta(seconds=31.5)
    report = run(job(head, suite=suite(summary="hang"), deadline=soon), head, tmp_path=tmp_path)
    assert report.failure.reason is Reason.DEADLINE_PASSED
    assert report.failure.stage is Stage.VERIFY


def test_the_folder_of_a_worker_that_was_killed_is_cleared_away(head, tmp_path):
    wanted = settings(tmp_path)
    left = tmp_path / "work" / "kernelgate-left"
    left.mkdir()
    (left / ".lock").touch()
    evaluate(job(head), bundles(head), settings=wanted, on_progress=lambda _: None, cancelled=lambda: False)
    assert not left.exists()
