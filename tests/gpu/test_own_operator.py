"""A suite's own operator on the GPU of this machine: rmsnorm from bundle to report, and mutants of its kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from contract.bundle import Files
from contract.devices import DeviceClass
from contract.outcomes import Reason, Stage
from contract.report import Report
from contract.suite import Suite
from tests.gpu.test_cheats import device_class
from tests.kernels.shipped import KERNELS, suite_of
from tests.worker.jobs import bundles, job, settings
from worker.pipeline import evaluate
from worker.sandbox import NoSandbox

pytestmark = pytest.mark.gpu

FOLDER = KERNELS / "rmsnorm"
REVISIONS = suite_of("rmsnorm").revisions


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """One for all: the judge's own kernels are compiled once."""
    return tmp_path_factory.mktemp("own")


def bundle(name: str, *, was: str = "", now: str = "", **more: bytes) -> Files:
    files = {file.name: file.read_bytes() for file in (FOLDER / name).iterdir() if file.is_file()}
    assert was.encode() in files["kernel.py"]
    files["kernel.py"] = files["kernel.py"].replace(was.encode(), now.encode())
    return files | {file.replace("_py", ".py"): text for file, text in more.items()}


def suite(*, cases: int = 2, operator: str | None = None) -> Suite:
    whole = suite_of("rmsnorm")
    # Nothing of the operator's is the sanitizer's.
    few = {"cases": whole.cases[:cases], "sanitize": ()}
    return whole.model_copy(update={**few, "operator_source": operator or whole.operator_source})


def run(place: Path, judged_by: Suite, head: Files, base: Files | None = None) -> Report:
    card: DeviceClass = device_class()
    given = settings(
        place,
        judge=("-m", "worker.judge"),
        recorder=("-m", "worker.record"),
        device_class=card,
        max_processes=4,
        own_operators=("local",),
    )
    return evaluate(
        job(head, base, suite=judged_by, kernel="rmsnorm", device_class=card),
        bundles(head, base),
        settings=given,
        on_progress=lambda _: None,
        cancelled=lambda: False,
        sandbox=NoSandbox(),
    )


@pytest.mark.parametrize("name", REVISIONS)
def test_every_revision_is_right_on_all_cases_and_measured_beside_torch(place, name):
    report = run(place, suite(cases=len(suite_of("rmsnorm").cases)), bundle(name))
    assert report.failure is None
    assert {stage.stage for stage in report.stages} >= {Stage.BUILD, Stage.RECORD, Stage.VERIFY, Stage.MEASURE}
    assert len({check.family for check in report.checks}) == 9
    assert all(check.passed for check in report.checks)
    for case in report.cases:
        metrics = {metric.name: metric.value for metric in case.metrics}
        assert case.baseline is not None
        assert case.baseline.startswith("rms_norm (torch")
        assert 0.05 < metrics["throughput_over_baseline"] < 50
        moved = metrics["throughput"] * 1e12 / metrics["flops_per_byte"]
        assert moved > 1e10  # bytes a second: far under any card's rate, far over what a slip would give
        print(f"{name} {case.case}: {metrics['time']:.2f} us, {metrics['throughput_over_baseline']:.3f} of torch's,")
        print(f"    {moved / 1e12:.2f} TB/s, held for {metrics['held_s']:.1f} s")


def test_two_revisions_are_compared(place):
    report = run(place, suite(), bundle("v2_warps"), bundle("v0_two_passes"))
    assert report.failure is None
    assert all(case.judgement is not None and len(case.pairs) == 4 for case in report.cases)


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("values * values, 0) / columns + epsilon", "values * values, 0) / columns"),
        ("values * scale * weights", "values * scale"),
        ("values * values, 0)", "values * values, 0).to(tl.float16).to(tl.float32)"),
        ("row + at, mask=inside, other=0.0", "row + at, mask=at < columns - 1, other=0.0"),
    ],
)
def test_a_mutant_is_incorrect_when_it_is_verified(place, was, now):
    failure = run(place, suite(), bundle("v1_one_load", was=was, now=now)).failure
    assert failure is not None
    # Without epsilon a row of zeros gives NaN.
    assert failure.reason in {Reason.WRONG_VALUES, Reason.NAN_VALUES}
    assert failure.stage is Stage.VERIFY


def test_poison_in_a_place_that_a_mutant_leaves_is_found(place):
    left = bundle("v1_one_load", was="element_ty), mask=inside)", now="element_ty), mask=at < columns - 1)")
    failure = run(place, suite(), left).failure
    assert failure is not None
    assert failure.reason is Reason.NAN_VALUES


def test_a_bundle_does_not_bring_its_own_operator(place):
    lax = str(suite().operator_source).replace("* weight", "").encode()
    wrong = bundle("v1_one_load", was="values * scale * weights", now="values * scale", operator_py=lax)
    failure = run(place, suite(), wrong).failure
    assert failure is not None
    assert failure.reason is Reason.WRONG_VALUES


def test_an_operator_that_fails_is_no_fault_of_the_kernel(place):
    broken = str(suite().operator_source).replace("xp.sqrt", "xp.square_root")
    failure = run(place, suite(operator=broken), bundle("v1_one_load")).failure
    assert failure is not None
    assert failure.reason is Reason.OPERATOR_FAILED
    assert "reference raised AttributeError" in failure.message
