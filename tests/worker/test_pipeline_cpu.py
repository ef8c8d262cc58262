"""From bundle to report with the real compiler, judge, launchers and baseline."""

from pathlib import Path

import pytest

from contract.bundle import Files
from contract.outcomes import Reason, Stage
from contract.report import Report
from tests.worker.jobs import bundle, bundles, changed, job, settings, suite
from worker.pipeline import evaluate


def run(tmp_path: Path, head: Files, base: Files | None = None) -> Report:
    return evaluate(
        job(head, base, suite=suite("fp32", 48)),
        bundles(head, base),
        settings=settings(tmp_path, judge=("-m", "worker.judge"), max_processes=4, call_limit_s=3.0),
        on_progress=lambda _: None,
        cancelled=lambda: False,
    )


def test_a_revision_is_verified_and_measured_against_baseline_and_base(tmp_path):
    report = run(tmp_path, bundle("gemm_cpu"), changed("float sum = 0;", 'float sum = 0; asm volatile("nop");'))
    assert report.failure is None
    assert [stage.stage for stage in report.stages] == [Stage.BUILD, Stage.INSPECT, Stage.VERIFY, Stage.MEASURE]
    assert report.checks
    assert all(check.passed for check in report.checks)
    (case,) = report.cases
    assert case.judgement is not None
    assert case.baseline
    assert not case.same_artifact
    assert report.environment.cpu


def test_the_same_artifact_is_verified_and_not_timed_against_itself(tmp_path):
    report = run(tmp_path, bundle("gemm_cpu"), changed("float sum", "/* a comment */ float sum"))
    assert report.failure is None
    assert report.checks
    assert report.cases[0].same_artifact
    assert report.cases[0].pairs == ()


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("c[i * n + j] = sum;", "c[i * n + j] = sum * 1.01f;", Reason.WRONG_VALUES),
        ("return 0;", "for (volatile int i = 0;; i = 0) {}", Reason.TIMED_OUT),
    ],
)
def test_what_the_head_does_wrong_is_its_own_reason(tmp_path, old, new, reason):
    assert run(tmp_path, changed(old, new)).failure.reason is reason


def test_what_the_base_does_wrong_is_not_the_heads_fault(tmp_path):
    failure = run(tmp_path, bundle("gemm_cpu"), changed("= sum;", "= sum * 1.01f;")).failure
    assert failure.reason is Reason.BASE_FAILED
