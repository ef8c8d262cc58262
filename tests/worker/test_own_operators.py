"""A suite with an operator of its own, from bundle to report: who runs it, and that no bundle brings another one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from contract.bundle import Files
from contract.devices import DeviceClass
from contract.outcomes import OUTCOME_OF, Outcome, Reason, Stage
from contract.report import Report
from contract.suite import Case, Suite
from tests.worker.jobs import bundles, job, settings
from worker.pipeline import evaluate

OPERATOR = """
import math

DIMS = ("rows", "columns")
INPUTS = {"x": ("rows", "columns"), "bias": ("columns",)}
OUTPUTS = {"y": ("rows", "columns")}
FLOP = "2 * rows * columns"
BY_ROWS = ("x",)
TERMS = 2
FAMILIES = ("far_away",)
BASELINE = "addcmul"
BASELINE_WRITES = True


def fill(draw, family, inputs, dims):
    for tensor in inputs:
        tensor[...] = draw.uniform(tensor.shape) + 1000


def reference(xp, inputs, dims):
    x, bias = inputs
    return 2 * x + bias


def magnitude(xp, inputs, dims):
    x, bias = inputs
    return 2 * abs(x) + abs(bias)


def baseline(torch, inputs, outputs, dims):
    x, bias = inputs
    torch.add(bias, x, alpha=2, out=outputs[0])
"""
MANIFEST = b'label = "v1"\nsummary = "twice and a bias"\nlanguage = "cpp"\nsource = "kernel.cpp"\n'
SOURCE = """
#include "kernelgate.h"

extern "C" int kernelgate_run(const kg_call* call) {
  const int64_t rows = kg_param_value(call, "rows"), columns = kg_param_value(call, "columns");
  const float* x = static_cast<const float*>(call->in[0].data);
  const float* bias = static_cast<const float*>(call->in[1].data);
  float* y = static_cast<float*>(call->out[0].data);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) y[i * columns + j] = 2 * x[i * columns + j] + bias[j];
  return 0;
}
"""
WRONG = SOURCE.replace("2 * x", "2.001f * x")


def suite(operator: str = OPERATOR, **more: Any) -> Suite:
    cases = (Case(dims={"rows": 64, "columns": 96}), Case(dims={"rows": 7, "columns": 33}))
    fields = {"kernel": "biased", "operator": "twice_and_bias", "operator_source": operator, "dtype": "fp32"}
    return Suite(**{**fields, "device_classes": (DeviceClass.CPU,), "cases": cases, **more})


def head(source: str = SOURCE, **more: bytes) -> Files:
    return {"kernel.toml": MANIFEST, "kernel.cpp": source.encode()} | {
        name.replace("_py", ".py"): text for name, text in more.items()
    }


def run(tmp_path: Path, files: Files, judged_by: Suite, *, own_operators: tuple[str, ...] = ("local",)) -> Report:
    return evaluate(
        job(files, suite=judged_by, kernel="biased"),
        bundles(files),
        settings=settings(tmp_path, judge=("-m", "worker.judge"), max_processes=1, own_operators=own_operators),
        on_progress=lambda _: None,
        cancelled=lambda: False,
    )


def test_it_is_verified_and_measured_beside_its_baseline(tmp_path):
    report = run(tmp_path, head(), suite())
    assert report.failure is None
    assert {check.family for check in report.checks} == {
        "normal",
        "uniform",
        "heavy_tailed",
        "signed_zeros",
        "far_away",
    }
    assert all(check.passed for check in report.checks)
    large, small = report.cases
    assert large.case == "rows=64,columns=96"
    for case in (large, small):
        metrics = {metric.name: metric.value for metric in case.metrics}
        assert metrics["throughput_over_baseline"] > 0
        assert metrics["throughput"] > 0
    flop, moved = 2 * 64 * 96, 4 * (2 * 64 * 96 + 96)
    assert {metric.name: metric.value for metric in large.metrics}["flops_per_byte"] == pytest.approx(flop / moved)


def test_what_it_calls_wrong_is_incorrect(tmp_path):
    assert run(tmp_path, head(WRONG), suite()).failure.reason is Reason.WRONG_VALUES


def test_a_bundle_neither_brings_nor_shadows_it(tmp_path):
    """Beside the kernel lie an operator that finds it right, and modules of the names that the real one uses."""
    lax = OPERATOR.replace("return 2 * x + bias", "return 2.001 * x + bias").encode()
    hostile = b"raise SystemExit('the judge imported a file of the bundle')\n"
    files = head(WRONG, operator_py=lax, math_py=hostile, numpy_py=hostile, kernelgate_operator_py=hostile)
    report = run(tmp_path, files, suite())
    assert report.failure.reason is Reason.WRONG_VALUES
    assert run(tmp_path, head(operator_py=lax), suite()).failure is None


@pytest.mark.parametrize("trusted", [(), ("other",)])
def test_a_node_runs_no_operator_of_a_project_that_it_was_not_told_to_trust(tmp_path, trusted):
    touched = tmp_path / "touched"
    report = run(tmp_path, head(), suite(f"{OPERATOR}\nopen({str(touched)!r}, 'w')\n"), own_operators=trusted)
    assert report.failure.reason is Reason.OPERATOR_REFUSED
    assert OUTCOME_OF[report.failure.reason] is Outcome.INFRASTRUCTURE_ERROR
    assert "KERNELGATE_OWN_OPERATORS of test-node does not name the project local" in report.failure.message
    assert not touched.exists()


def test_the_pipeline_itself_runs_none_of_it(tmp_path):
    """Only the judge and the baseline do, in processes of their own."""
    seen = tmp_path / "seen"
    source = f"{OPERATOR}\nimport os\nopen({str(seen)!r}, 'a').write(f'{{os.getpid()}} ')\n"
    assert run(tmp_path, head(), suite(source), own_operators=("*",)).failure is None
    processes = seen.read_text().split()
    assert len(processes) == len(set(processes)) == 2
    assert str(os.getpid()) not in processes


@pytest.mark.parametrize(
    ("was", "now", "says"),
    [
        ("    return 2 * x + bias", "    return 2 * x + bais", "reference raised NameError"),
        ("import math", "import maths", "raised ModuleNotFoundError"),
    ],
)
def test_an_operator_that_fails_is_not_the_kernels_fault(tmp_path, was, now, says):
    assert was in OPERATOR
    failure = run(tmp_path, head(), suite(OPERATOR.replace(was, now))).failure
    assert failure.reason is Reason.OPERATOR_FAILED
    assert OUTCOME_OF[failure.reason] is Outcome.INFRASTRUCTURE_ERROR
    assert failure.stage is Stage.VERIFY
    assert says in failure.message


def test_a_baseline_that_writes_the_wrong_answer_is_not_the_kernels_fault(tmp_path):
    report = run(tmp_path, head(), suite(OPERATOR.replace("alpha=2", "alpha=3")))
    assert report.failure.reason is Reason.BASELINE_FAILED


def test_a_suite_scales_its_tolerances(tmp_path):
    assert run(tmp_path, head(WRONG), suite(tolerances={"relative_frobenius": 1e6, "elementwise": 1e6})).failure is None
