from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.bundles import read_folder
from cli.errors import CliError
from cli.local.judged import evaluation_of
from cli.local.run import chosen_suite
from cli.main import app
from contract.devices import DeviceClass
from contract.job import Job, RevisionRef
from contract.manifest import parse_suite
from contract.outcomes import Outcome, Reason, Stage, Verdict
from contract.report import Failure, Report
from contract.suite import Suite
from tests.cli.conftest import SUITE
from tests.cli.stub import AT, case_result

SQUARE, FLAT = "m=4096,n=4096,k=4096", "m=4096,n=4096,k=64"
CPP = """
#include "kernelgate.h"
extern "C" int kernelgate_run(const kg_call* call) {
  const int64_t m = kg_param_value(call, "m"), n = kg_param_value(call, "n"), k = kg_param_value(call, "k");
  const float *a = (const float*)call->in[0].data, *b = (const float*)call->in[1].data;
  float* c = (float*)call->out[0].data;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t p = 0; p < k; ++p) sum += a[i * k + p] * b[p * n + j];
      c[i * n + j] = sum;
    }
  return 0;
}
"""
runner = CliRunner()


@pytest.fixture
def cpu_kernel(tmp_path: Path) -> Path:
    """A kernel's folder with one small case and the revision v0, in C++."""
    folder = tmp_path / "tiny"
    (folder / "v0").mkdir(parents=True)
    (folder / "suite.toml").write_text(
        'kernel = "tiny"\noperator = "gemm"\ndtype = "fp32"\ndevice_classes = ["cpu"]\n'
        "[[cases]]\ndims = { m = 48, n = 48, k = 48 }\n[[verify_cases]]\ndims = { m = 3, n = 5, k = 7 }\n"
    )
    (folder / "v0" / "kernel.toml").write_text(
        'label = "v0"\nsummary = "three loops"\nlanguage = "cpp"\nsource = "gemm.cpp"\n'
    )
    (folder / "v0" / "gemm.cpp").write_text(CPP)
    return folder


def suite() -> Suite:
    return parse_suite(SUITE)


def job(*, base: bool = True) -> Job:
    return Job(
        evaluation_id="ev_local",
        lease_token="none",
        deadline=AT,
        heartbeat_s=5,
        project="local",
        kernel="hgemm",
        device_class=DeviceClass.H200,
        revision=RevisionRef(id="rev_head", label="v4", digest="4" * 64),
        base=RevisionRef(id="rev_base", label="v3", digest="3" * 64) if base else None,
        suite=suite(),
        protocol_version=1,
        repeat=1,
    )


def judged(report: Report, *, base: bool = True) -> tuple[Outcome | None, str | None]:
    done = evaluation_of(job(base=base), report, node="here", started_at=AT)
    return done.outcome, done.summary


def report(**changes: object) -> Report:
    return Report.model_validate({"protocol_version": 1, "device_class": DeviceClass.H200, **changes})


def test_run_builds_verifies_and_measures_without_a_service(cpu_kernel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELGATE_CACHE_DIR", str(cpu_kernel.parent / "cache"))
    monkeypatch.setenv("KERNELGATE_MAX_PROCESSES", "2")
    result = runner.invoke(app, ["run", str(cpu_kernel / "v0"), "--case", "m=32,n=32,k=32", "--csv"])
    assert result.exit_code == 0, result.output
    rows = list(csv.DictReader(result.stdout.splitlines()))
    time = next(row for row in rows if row["metric"] == "time")
    assert (time["case"], time["unit"]) == ("m=32,n=32,k=32", "us")
    assert 0 < float(time["value"]) < 1e6
    assert "passed: right in all checks and measured on 1 of 1 cases" in result.stderr


def test_a_revision_that_does_not_compile_is_exit_1_with_the_compilers_words(
    cpu_kernel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNELGATE_CACHE_DIR", str(cpu_kernel.parent / "cache"))
    (cpu_kernel / "v0" / "gemm.cpp").write_text("int kernelgate_run( {")
    result = runner.invoke(app, ["run", str(cpu_kernel / "v0"), "--json"])
    assert result.exit_code == 1
    assert json.loads(result.stdout)["reason"] == "compile_error"
    assert "gemm.cpp:1" in result.stderr


def test_a_folder_without_suite_cannot_be_run(cpu_kernel: Path) -> None:
    (cpu_kernel / "suite.toml").unlink()
    result = runner.invoke(app, ["run", str(cpu_kernel / "v0")])
    assert (result.exit_code, "suite.toml is missing" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("m=64,n=64", "must give exactly m, n, k"),
        ("m=64,n=64,k=x", "is not of the form m=4096"),
        ("64^3", "is not of the form m=4096"),
        ("m=0,n=64,k=64", "m is too small"),
    ],
)
def test_a_case_that_is_none_is_named(case: str, said: str) -> None:
    with pytest.raises(CliError, match=said):
        chosen_suite(suite(), (case,), verify=False)


def test_the_cases_named_stand_in_the_place_of_the_suites_own() -> None:
    chosen = chosen_suite(suite(), ("k=64,m=4096,n=4096", "m=16,n=16,k=16"), verify=True)
    assert [case.id for case in chosen.cases] == [FLAT, "m=16,n=16,k=16"]
    assert [entry.case for entry in chosen.allowances] == [FLAT]
    assert chosen_suite(suite(), ("m=16,n=16,k=16",), verify=True).allowances == ()
    assert chosen_suite(suite(), (), verify=True) == suite()


def test_outcomes_follow_from_the_report_as_the_service_has_them() -> None:
    failed = Failure(reason=Reason.WRONG_VALUES, stage=Stage.VERIFY, message="error 28", case=SQUARE)
    assert judged(report(failure=failed)) == (Outcome.INCORRECT, f"incorrect (wrong values) at {SQUARE}: error 28")
    assert judged(report(built_only=True))[0] is Outcome.BUILT
    slower = case_result(SQUARE, Verdict.SLOWER, 1.2)
    assert judged(report(cases=(slower,))) == (Outcome.SLOWER, f"20.0 % slower at {SQUARE} (allowed 0.5 %)")
    same, unsure = case_result(SQUARE), case_result(SQUARE, Verdict.INCONCLUSIVE)
    assert judged(report(cases=(unsure,)))[0] is Outcome.INCONCLUSIVE
    assert judged(report(cases=(same,))) == (
        Outcome.PASSED,
        "nothing is slower than allowed (0.5 %; the smallest slowdown this run would have found: 0.6 %)",
    )


def test_a_slowdown_that_the_suite_allows_passes() -> None:
    assert judged(report(cases=(case_result(FLAT, Verdict.SLOWER, 1.6),)))[0] is Outcome.PASSED


def test_a_run_without_base_says_that_nothing_was_compared() -> None:
    alone = case_result(SQUARE).model_copy(update={"judgement": None})
    assert "no base to compare with" in (judged(report(cases=(alone,)), base=False)[1] or "")


def test_head_and_base_are_read_from_their_folders(cpu_kernel: Path) -> None:
    folder = read_folder(cpu_kernel / "v0")
    assert (folder.manifest.label, set(folder.files)) == ("v0", {"kernel.toml", "gemm.cpp"})
