"""rmsnorm's revisions from bundle to report without a card: compiled for three architectures, interpreted, right."""

from pathlib import Path

import pytest

from cli.bundles import read_folder
from contract.outcomes import Reason
from contract.report import Report
from tests.kernels.shipped import KERNELS, suite_of
from tests.worker.jobs import bundles, job, settings
from worker.pipeline import evaluate

SUITE = suite_of("rmsnorm")
FOLDER = KERNELS / "rmsnorm"


def run(tmp_path: Path, name: str, *, was: str = "", now: str = "") -> Report:
    files = read_folder(FOLDER / name).files
    assert was.encode() in files["kernel.py"]
    files["kernel.py"] = files["kernel.py"].replace(was.encode(), now.encode())
    return evaluate(
        job(files, suite=SUITE, kernel="rmsnorm"),
        bundles(files),
        settings=settings(tmp_path, judge=("-m", "worker.judge"), own_operators=("local",)),
        on_progress=lambda _: None,
        cancelled=lambda: False,
    )


@pytest.mark.parametrize("name", SUITE.revisions)
def test_a_revision_compiles_without_spills_and_is_right_at_its_edges(tmp_path: Path, name: str):
    report = run(tmp_path, name)
    assert report.failure is None
    assert report.built_only
    assert {one.architecture for one in report.statics} == {"sm_89", "sm_90a", "sm_103a"}
    assert {one.spill_store_bytes for one in report.statics} == {0}
    assert {check.case for check in report.checks} == {case.id for case in SUITE.verify_cases}
    assert len(report.checks) == 9 * len(SUITE.verify_cases)
    assert all(check.passed for check in report.checks)


def test_one_that_forgets_the_weight_is_incorrect(tmp_path: Path):
    report = run(tmp_path, "v2_warps", was="values * scale * weights", now="values * scale")
    assert report.failure is not None
    assert report.failure.reason is Reason.WRONG_VALUES
