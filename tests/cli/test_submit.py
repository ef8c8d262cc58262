from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from cli.bundles import read_folder
from cli.main import app
from contract.bundle import digest
from contract.manifest import parse_suite
from contract.outcomes import Outcome, Reason, State, Verdict
from tests.cli.stub import Stub, case_result, evaluation, problem, queued, revision

ONE = "GET /evaluations/ev_1"
runner = CliRunner()


def test_submit_sends_the_bundle_and_prints_what_was_queued(stub: Stub, kernel: Path) -> None:
    stub.routes[ONE] = queued()
    result = runner.invoke(app, ["submit", str(kernel / "v4"), "--base", "v3", "--device-class", "h200"])
    assert result.exit_code == 0, result.output
    sent = stub.posted[0]
    assert (sent.project, sent.kernel, sent.base, sent.device_classes) == ("local", "hgemm", "v3", ("h200",))
    assert set(sent.files) == {"kernel.toml", "hgemm.cu"}
    assert "ev_1  hgemm v4 against v3 on h200: queued" in result.output
    assert "http://stub/revisions/rev_4" in result.output


def test_submit_brings_the_suite_where_the_service_has_none(stub: Stub, kernel: Path) -> None:
    stub.routes[ONE] = queued()
    result = runner.invoke(app, ["submit", str(kernel / "v4")])
    assert stub.suites["hgemm"].revisions == ("v3", "v4")
    assert "suite of hgemm pushed" in result.output
    again = runner.invoke(app, ["submit", str(kernel / "v4")])
    assert "suite of hgemm" not in again.output


def test_submit_without_the_right_to_bring_a_suite_says_who_must(stub: Stub, kernel: Path) -> None:
    stub.may_maintain = False
    result = runner.invoke(app, ["submit", str(kernel / "v4")])
    assert result.exit_code == 2
    assert "kernelgate suite push" in result.stderr
    assert not stub.posted


def test_a_suite_that_differs_is_said_and_does_not_judge(stub: Stub, kernel: Path) -> None:
    stub.may_maintain = False
    stub.suites["hgemm"] = parse_suite(
        (kernel / "suite.toml").read_text().replace("k = 64", "k = 128").replace("k=64", "k=128")
    )
    stub.routes[ONE] = queued()
    result = runner.invoke(app, ["submit", str(kernel / "v4")])
    assert result.exit_code == 0
    assert "differs from the service's, which judges" in result.output


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        (Outcome.PASSED, 0),
        (Outcome.BUILT, 0),
        (Outcome.INCONCLUSIVE, 0),
        (Outcome.SLOWER, 1),
        (Outcome.INCORRECT, 1),
        (Outcome.BUILD_FAILED, 1),
        (Outcome.UNTRUSTED, 1),
        (Outcome.INFRASTRUCTURE_ERROR, 3),
        (Outcome.CANCELLED, 3),
    ],
)
def test_the_exit_code_says_how_it_was_judged(stub: Stub, kernel: Path, outcome: Outcome, code: int) -> None:
    stub.routes[ONE] = evaluation(outcome=outcome)
    result = runner.invoke(app, ["submit", str(kernel / "v4"), "--wait"])
    assert result.exit_code == code, result.output
    assert outcome.value.replace("_", " ") in result.output


def test_inconclusive_fails_where_the_policy_says_so(stub: Stub, kernel: Path) -> None:
    suite = kernel / "suite.toml"
    suite.write_text(suite.read_text().replace("[[cases]]", '[policy]\ninconclusive = "fail"\n[[cases]]', 1))
    stub.routes[ONE] = evaluation(outcome=Outcome.INCONCLUSIVE)
    result = runner.invoke(app, ["submit", str(kernel / "v4"), "--wait"])
    assert result.exit_code == 1
    assert "by the suite's policy" in result.stderr


def test_the_finished_evaluation_is_told_like_the_design_says(stub: Stub, kernel: Path) -> None:
    faster = case_result("m=4096,n=4096,k=4096", Verdict.FASTER, 0.9852)
    slower = case_result("m=4096,n=4096,k=64", Verdict.SLOWER, 1.614)
    suite = parse_suite((kernel / "suite.toml").read_text())
    stub.routes[ONE] = evaluation(cases=(faster, slower), suite_digest=suite.digest)
    output = runner.invoke(app, ["submit", str(kernel / "v4"), "--wait"]).output
    lines = [" ".join(line.split()) for line in output.splitlines()]
    assert "hgemm v4 against v3 on h200 driver 580.159" in lines
    assert "verify 1 case x 1 input family worst 0.41 of the bound (4096^3, heavy-tailed) 2.7 s" in lines
    assert "case time (us) TFLOPS of cuBLAS against v3 (time ratio) verdict" in lines
    assert "4096^3 312.0 440.5 0.570 0.9852 [0.9844, 0.9860] ▲ 1.5 % faster" in lines
    assert any("▼ 61.4 % slower (allowed here by the suite)" in line for line in lines)
    assert "passed: nothing is slower than allowed (0.5 %)" in lines
    assert lines[-1] == "http://stub/revisions/rev_4"


def test_a_compiler_message_is_shown_without_what_a_terminal_obeys(stub: Stub, kernel: Path) -> None:
    stub.routes[ONE] = evaluation(
        outcome=Outcome.BUILD_FAILED,
        reason=Reason.COMPILE_ERROR,
        message="hgemm.cu(3): error: \x1b[2J\x1b]0;pwned\x07expected a ';'\n" + "more\n" * 60,
        summary="build failed (compile error): hgemm.cu(3): error: expected a ';'" + " more" * 20,
        cases=(),
    )
    result = runner.invoke(app, ["submit", str(kernel / "v4"), "--wait"])
    assert "\x1b" not in result.output
    assert "hgemm.cu(3): error: expected a ';'" in result.output
    assert "more lines (--json shows all)" in result.output
    assert "build failed (compile error)\n" in result.output


def test_json_is_one_document_on_stdout_and_progress_is_not_in_it(stub: Stub, kernel: Path) -> None:
    stub.routes[ONE] = evaluation()
    result = runner.invoke(app, ["submit", str(kernel / "v4"), "--wait", "--json"])
    assert [one["id"] for one in json.loads(result.stdout)] == ["ev_1"]


def test_only_what_was_asked_for_is_waited_for(stub: Stub, kernel: Path) -> None:
    older = evaluation(id="ev_0", base=None)
    stub.routes |= {
        "POST /revisions": revision(evaluations=("ev_1", "ev_0")),
        ONE: evaluation(),
        "GET /evaluations/ev_0": older,
    }
    result = runner.invoke(app, ["submit", str(kernel / "v4"), "--base", "v3", "--wait", "--json"])
    assert [one["id"] for one in json.loads(result.stdout)] == ["ev_1"]


def test_a_problem_says_what_where_and_what_to_do(stub: Stub, kernel: Path) -> None:
    refusal = problem(422, "bundle-bad-manifest", "language fortran is not one of cuda, triton, cpp", "kernel.toml")
    stub.routes["POST /revisions"] = refusal
    result = runner.invoke(app, ["submit", str(kernel / "v4")])
    assert result.exit_code == 2
    assert "error: kernel.toml: language fortran is not one of cuda, triton, cpp" in result.stderr


def test_a_service_that_is_away_is_exit_3(stub: Stub, kernel: Path) -> None:
    stub.routes["GET /projects/local/kernels/hgemm/suite"] = httpx.ConnectError("connection refused")
    result = runner.invoke(app, ["submit", str(kernel / "v4")])
    assert result.exit_code == 3
    assert "the service at http://stub does not answer: connection refused" in result.stderr
    assert "kernelgate up" in result.stderr


def test_an_answer_that_is_no_problem_document_is_told_in_one_line(stub: Stub, kernel: Path) -> None:
    stub.routes["POST /revisions"] = httpx.Response(502, text="<html>Bad\x1b[1m Gateway</html>")
    result = runner.invoke(app, ["submit", str(kernel / "v4")])
    assert result.exit_code == 3
    assert "POST /api/v1/revisions: HTTP 502 <html>Bad Gateway</html>" in result.stderr


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("language = 'fortran'", "kernel.toml: language"),
        (
            "constraints = { multiple_of = { q = 16 } }",
            "constraints.multiple_of.q is not a dimension of gemm (m, n, k)",
        ),
        ("colour = 'red'", "colour is not a field (allowed: label"),
        ("shared = ['../../etc/passwd']", "shared ../../etc/passwd is not a file in"),
        ("shared = ['missing.cuh']", "shared missing.cuh is not a file in"),
    ],
)
def test_a_wrong_manifest_is_refused_before_anything_is_sent(stub: Stub, kernel: Path, change: str, said: str) -> None:
    manifest = kernel / "v4" / "kernel.toml"
    kept = "".join(line for line in manifest.read_text().splitlines(keepends=True) if line[:8] != change[:8])
    manifest.write_text(change + "\n" + kept)
    result = runner.invoke(app, ["submit", str(kernel / "v4")])
    assert result.exit_code == 2
    assert said in result.stderr
    assert not stub.requests


def test_shared_headers_and_sources_are_in_the_bundle_and_nothing_else(kernel: Path) -> None:
    folder = kernel / "v4"
    (kernel / "common.cuh").write_text("// shared\n")
    (folder / "tile.cuh").write_text("// own\n")
    for name in ("hgemm.cu~", "a.out", ".hidden.cu"):
        (folder / name).write_text("junk")
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "x.py").write_text("junk")
    (folder / "kernel.toml").write_text("shared = ['common.cuh']\n" + (folder / "kernel.toml").read_text())
    read = read_folder(folder)
    assert set(read.files) == {"kernel.toml", "hgemm.cu", "tile.cuh", "common.cuh"}
    assert read.digest == digest(read.files)


@pytest.mark.parametrize("name", ["v4/secret.h", "v4/kernel.toml", "common.cuh"])
def test_a_link_that_leads_out_of_the_kernels_folder_is_sent_to_nobody(stub: Stub, kernel: Path, name: str) -> None:
    """A checkout of a stranger's branch, on a machine with secrets."""
    manifest = kernel / "v4" / "kernel.toml"
    outside = kernel.parent / "token"
    outside.write_text(manifest.read_text())
    if name == "common.cuh":
        manifest.write_text("shared = ['common.cuh']\n" + manifest.read_text())
    (kernel / name).unlink(missing_ok=True)
    (kernel / name).symlink_to(outside)
    result = runner.invoke(app, ["submit", str(kernel / "v4")])
    assert (result.exit_code, "a link that leads out of" in result.stderr, stub.requests) == (2, True, [])
    (kernel / name).unlink()
    (kernel / "shared.h").write_bytes(outside.read_bytes())
    (kernel / name).symlink_to(kernel / "shared.h")
    assert read_folder(kernel / "v4").files[Path(name).name] == outside.read_bytes()


def test_a_folder_without_manifest_or_suite_says_what_is_missing(stub: Stub, kernel: Path, tmp_path: Path) -> None:
    nothing = runner.invoke(app, ["submit", str(tmp_path)])
    assert (nothing.exit_code, "kernel.toml is missing" in nothing.stderr) == (2, True)
    (kernel / "suite.toml").unlink()
    lonely = runner.invoke(app, ["submit", str(kernel / "v4")])
    assert (lonely.exit_code, "--kernel" in lonely.stderr) == (2, True)


def test_cancel_ends_what_is_unfinished(stub: Stub) -> None:
    stub.routes |= {ONE: queued(), "DELETE /evaluations/ev_1": httpx.Response(204)}
    assert "ev_1 cancelled" in runner.invoke(app, ["cancel", "ev_1"]).output
    stub.routes[ONE] = evaluation(state=State.FINISHED)
    assert "nothing is running or waiting" in runner.invoke(app, ["cancel", "ev_1"]).output
    assert len(stub.asked("DELETE /evaluations/ev_1")) == 1
