from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app
from contract.api import (
    BaseRef,
    CaseComparison,
    CompareOut,
    ImportIn,
    ImportOut,
    KernelPage,
    Point,
    Scope,
    Series,
    TokenOut,
    TokenPage,
)
from contract.devices import DeviceClass
from contract.outcomes import Outcome, Verdict
from contract.regressions import ChangeOut, ChangesOut, RevisionSpot
from contract.statics import FunctionStatics
from contract.views import KernelDetail, NodePage, Work
from tests.cli.stub import AT, Stub, answer, evaluation, node, problem, revision

CASES = ("m=1024,n=1024,k=1024", "m=4096,n=4096,k=4096")
KERNEL = KernelDetail(
    project="local",
    name="hgemm",
    operator="gemm",
    summary="Half-precision GEMM",
    device_classes=(DeviceClass.H200, DeviceClass.RTX4090),
    cases=CASES,
    metrics=("throughput", "time"),
    revisions=2,
    newest="v4",
    headlines=(),
    static_metrics={},
)
POINT = Point(
    revision="rev_4",
    evaluation="ev_1",
    label="v4",
    commit="a" * 40,
    summary="XOR \x1b[2Jswizzle",
    mainline=True,
    at=AT,
    value=440.5,
    low=440.1,
    high=440.9,
    outcome=Outcome.PASSED,
    verdict=Verdict.FASTER,
    base="v3",
    ratio=0.9852,
    interval=(0.9845, 0.9859),
    of_baseline=0.57,
)
SERIES = Series(
    project="local",
    kernel="hgemm",
    device_class=DeviceClass.H200,
    case=CASES[1],
    metric="throughput",
    unit="TFLOPS",
    better="higher",
    baseline="cuBLAS",
    baseline_value=768.0,
    points=(POINT.model_copy(update={"value": None, "outcome": Outcome.INCORRECT, "verdict": None}), POINT),
)
LISTED = "GET /projects/local/kernels"
DETAIL = "GET /projects/local/kernels/hgemm"
HISTORY = "GET /projects/local/kernels/hgemm/history"
runner = CliRunner()


@pytest.fixture
def service(stub: Stub) -> Stub:
    stub.routes |= {LISTED: KernelPage(items=(KERNEL,)), DETAIL: KERNEL, HISTORY: SERIES}
    return stub


def test_history_asks_for_the_first_class_and_case_where_none_is_named(service: Stub) -> None:
    result = runner.invoke(app, ["history", "hgemm"])
    assert result.exit_code == 0, result.output
    asked = service.asked(HISTORY)[0].url.params
    assert (asked["device_class"], asked["case"], asked["metric"]) == ("h200", CASES[0], "throughput")
    lines = [" ".join(line.split()) for line in result.output.splitlines()]
    assert lines[0] == "hgemm on h200, 4096^3, throughput baseline cuBLAS: 768.0 TFLOPS"
    assert "v4 aaaaaaaaa 440.5 0.5700 v3 0.9852 [0.9845, 0.9859] ▲ 1.5 % faster passed XOR swizzle" in lines
    assert any("incorrect" in line for line in lines)
    assert "other cases (--case): 1024^3" in lines
    assert "other classes (--device-class): rtx4090" in lines


def test_history_goes_to_the_first_series_that_has_values(service: Stub) -> None:
    empty = SERIES.model_copy(update={"points": ()})
    service.routes[HISTORY] = lambda request: answer(SERIES if request.url.params["case"] == CASES[1] else empty)
    assert "440.5" in runner.invoke(app, ["history", "hgemm"]).output
    service.routes[HISTORY] = empty
    assert "no revision has been measured" in runner.invoke(app, ["history", "hgemm"]).output


def test_history_takes_a_case_by_its_short_name(service: Stub) -> None:
    runner.invoke(app, ["history", "hgemm", "--case", "4096^3", "--metric", "time", "--device-class", "rtx4090"])
    asked = service.asked(HISTORY)[0].url.params
    assert (asked["device_class"], asked["case"], asked["metric"]) == ("rtx4090", CASES[1], "time")


def test_history_of_machine_code_is_of_no_case(service: Stub) -> None:
    metric = "registers.sm_90a"
    kernel = KERNEL.model_copy(update={"metrics": ("time", metric)})
    service.routes[DETAIL] = kernel
    point = POINT.model_copy(update={"value": 128.0, "verdict": None, "ratio": None, "interval": None})
    service.routes[HISTORY] = SERIES.model_copy(
        update={"case": "", "metric": metric, "unit": "1", "baseline": None, "points": (point,)}
    )
    change = ChangeOut(
        kind="segment",
        revision=RevisionSpot(id="rev_4", label="v4", commit=None, summary=""),
        changed={"nvcc": ("13.0.88", "13.1.2"), "triton": ("", "3.7.1")},
        **dict.fromkeys(("after", "ratio", "interval", "before_value", "after_value", "note", "regression")),
        unmeasured=(),
    )
    service.routes[HISTORY.replace("history", "changes")] = ChangesOut(
        project="local",
        kernel="hgemm",
        device_class=DeviceClass.H200,
        case="",
        metric=metric,
        changes=(change,),
        pending=None,
    )
    asked = runner.invoke(app, ["history", "hgemm", "--metric", metric, "--case", "4096^3"])
    assert asked.output.startswith("hgemm on h200, machine code, registers.sm_90a"), asked.output
    said = [" ".join(line.split()) for line in asked.output.splitlines()]
    assert "v4 aaaaaaaaa 128 passed XOR swizzle" in said
    toolchains = "nvcc 13.0.88, then 13.1.2; triton none, then 3.7.1"
    assert f"from v4 on by another toolchain ({toolchains}): not compared with what is before" in " ".join(said)
    assert [request.url.params["case"] for request in service.asked(HISTORY)] == [""]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sgemm"], "local has no kernel sgemm (it has hgemm)"),
        (["hgemm", "--case", "9^3"], "hgemm has no case 9^3 (it has 1024^3; 4096^3)"),
        (["hgemm", "--metric", "joy"], "hgemm has no metric joy (it has throughput, time)"),
    ],
)
def test_history_of_what_is_not_there_says_what_is(service: Stub, arguments: list[str], said: str) -> None:
    service.routes["GET /projects/local/kernels/sgemm"] = problem(404, "unknown-kernel", "there is none")
    result = runner.invoke(app, ["history", *arguments])
    assert result.exit_code == 2
    assert said in result.stderr


def test_compare_says_each_case_in_words(service: Stub) -> None:
    service.routes["GET /projects/local/kernels/hgemm/compare"] = CompareOut(
        project="local",
        kernel="hgemm",
        device_class=DeviceClass.H200,
        base=BaseRef(id="rev_3", label="v3", digest=None),
        head=BaseRef(id="rev_4", label="v4", digest=None),
        evaluation="ev_1",
        cases=(
            CaseComparison(
                case=CASES[1],
                verdict=Verdict.SLOWER,
                ratio=1.614,
                interval=(1.609, 1.619),
                smallest_detectable=0.006,
                measured="pairs",
                allowed="two steps of k",
                base={"time": 312.0},
                head={"time": 503.6},
            ),
            CaseComparison(
                case=CASES[0],
                verdict=None,
                ratio=None,
                interval=None,
                smallest_detectable=None,
                measured="separately",
                base={},
                head={"time": 11.3},
            ),
        ),
    )
    result = runner.invoke(app, ["compare", "v3", "v4", "--kernel", "hgemm"])
    assert result.exit_code == 0, result.output
    lines = [" ".join(line.split()) for line in result.output.splitlines()]
    assert lines[0] == "hgemm v4 against v3 on h200"
    assert any(line.startswith("4096^3 312.0 503.6 1.614 [1.609, 1.619] ▼ 61 % slower (allowed") for line in lines)
    assert any("in two evaluations: no verdict" in line for line in lines)


def test_compare_says_what_the_machine_code_says_or_why_not(service: Stub) -> None:
    def code(registers: int, **counts: int) -> FunctionStatics:
        return FunctionStatics(function="f", architecture="sm_90a", registers=registers, instructions=counts)

    route = "GET /projects/local/kernels/hgemm/compare"
    ref = {label: BaseRef(id=f"rev_{label}", label=label, digest=None) for label in ("v3", "v4")}
    sides = {"base": ref["v3"], "head": ref["v4"], "device_class": DeviceClass.H200, "evaluation": None, "cases": ()}
    known = CompareOut(
        project="local",
        kernel="hgemm",
        **sides,
        statics=(code(128, wgmma=16, bulk_copy=2), code(96, wgmma=8)),
        base_statics=(code(168, mma=64),),
    )

    def lines(compared: CompareOut) -> list[str]:
        service.routes[route] = compared
        return [
            " ".join(line.split())
            for line in runner.invoke(app, ["compare", "v3", "v4", "-k", "hgemm"]).output.splitlines()
        ]

    assert lines(known)[-2:] == [
        "machine code for sm_90a: 128 registers (v3: 168 registers)",
        "instructions: 24 wgmma, 2 bulk copy (v3: 64 mma)",
    ]
    apart = known.model_copy(
        update={"base_statics": (), "statics_apart": "built by different toolchains: v3 by nvcc 12"}
    )
    assert lines(apart)[-3:] == [
        "machine code for sm_90a: 128 registers",
        "instructions: 24 wgmma, 2 bulk copy",
        "machine code is not compared: built by different toolchains: v3 by nvcc 12",
    ]


def test_compare_of_labels_needs_the_kernel_and_of_ids_does_not(service: Stub) -> None:
    assert "--kernel" in runner.invoke(app, ["compare", "v3", "v4"]).stderr
    service.routes["GET /revisions/rev_4"] = revision()
    service.routes["GET /projects/local/kernels/hgemm/compare"] = problem(404, "unknown-revision", "no revision v3")
    assert "no revision v3" in runner.invoke(app, ["compare", "v3", "rev_4"]).stderr


def test_show_takes_an_evaluation_or_a_revision(service: Stub) -> None:
    service.routes |= {"GET /evaluations/ev_1": evaluation(), "GET /revisions/rev_4": revision()}
    assert runner.invoke(app, ["show", "ev_1"]).output == runner.invoke(app, ["show", "rev_4"]).output
    assert json.loads(runner.invoke(app, ["show", "ev_1", "--json"]).stdout)[0]["id"] == "ev_1"
    wrong = runner.invoke(app, ["show", "v4"])
    assert (wrong.exit_code, "v4 is no id" in wrong.stderr) == (2, True)


def test_watch_follows_to_the_end_and_its_code_says_how(service: Stub) -> None:
    service.routes["GET /evaluations/ev_1"] = evaluation(outcome=Outcome.SLOWER)
    assert runner.invoke(app, ["watch", "ev_1"]).exit_code == 1


def test_nodes_are_listed_with_what_they_do(service: Stub) -> None:
    ill = node(name="gpu-07", state="unhealthy", problem="NVML \x1b[5mdoes not answer")
    work = Work(evaluation="ev_1", project="local", kernel="hgemm", label="v4")
    busy = node(name="gpu-08", state="busy", work=work)
    service.routes["GET /nodes"] = NodePage(items=(ill, busy))
    output = runner.invoke(app, ["nodes"]).output
    assert "gpu-07" in output
    assert "NVML does not answer" in output
    assert "hgemm v4" in output
    assert json.loads(runner.invoke(app, ["nodes", "--json"]).stdout)[0]["state"] == "unhealthy"


def test_an_empty_list_says_what_to_do_first(stub: Stub) -> None:
    stub.routes |= {"GET /nodes": NodePage(items=()), LISTED: KernelPage(items=())}
    assert "kernelgate worker" in runner.invoke(app, ["nodes"]).output
    assert "kernelgate suite push" in runner.invoke(app, ["kernels"]).output


def test_kernels_are_listed_to_the_last_page(service: Stub) -> None:
    later = KERNEL.model_copy(update={"name": "softmax"})
    service.routes[LISTED] = [KernelPage(items=(KERNEL,), next="hgemm"), KernelPage(items=(later,))]
    output = runner.invoke(app, ["kernels"]).output
    assert "Half-precision GEMM" in output
    assert "softmax" in output
    assert [request.url.params.get("after") for request in service.asked(LISTED)] == [None, "hgemm"]


def test_a_token_secret_is_alone_on_stdout(service: Stub) -> None:
    made = TokenOut(scope=Scope.SUBMIT, id="tok_1", created_at=AT, secret="kg_tok_1_s", note="ci")
    service.routes |= {"POST /tokens": made, "GET /tokens": TokenPage(items=(made,)), "DELETE /tokens/tok_1": made}
    assert runner.invoke(app, ["token", "create", "--scope", "submit"]).stdout == "kg_tok_1_s\n"
    assert "tok_1" in runner.invoke(app, ["token", "list"]).output
    assert "revoked" in runner.invoke(app, ["token", "revoke", "tok_1"]).output
    assert runner.invoke(app, ["token", "create", "--scope", "everything"]).exit_code == 2


def test_import_sends_the_file_with_its_provenance(service: Stub, tmp_path: Path) -> None:
    file = tmp_path / "history.csv"
    file.write_text("kernel,device_class\n")
    service.routes["POST /projects/local/imports"] = ImportOut(kernels=("a",), revisions=3, added=2, metrics=9)
    result = runner.invoke(app, ["import", str(file), "--provenance", "a paper"])
    assert "a: 3 revisions, 9 values; 2 of the revisions are new" in result.output
    sent = ImportIn.model_validate_json(service.asked("POST /projects/local/imports")[0].content)
    assert (sent.provenance, sent.margin, sent.csv) == ("a paper", 0.01, "kernel,device_class\n")
    missing = runner.invoke(app, ["import", str(tmp_path / "no.csv"), "--provenance", "x"])
    assert (missing.exit_code, "no.csv" in missing.stderr) == (2, True)


def test_suite_push_says_what_it_brought(service: Stub, kernel: Path) -> None:
    result = runner.invoke(app, ["suite", "push", str(kernel)])
    assert "hgemm: 2 cases, 0 verify cases, 2 revisions listed" in result.output
    (kernel / "suite.toml").write_text("kernel = 3")
    wrong = runner.invoke(app, ["suite", "push", str(kernel)])
    assert (wrong.exit_code, "suite.toml" in wrong.stderr) == (2, True)
