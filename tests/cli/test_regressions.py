from __future__ import annotations

import json
import subprocess

import httpx
import pytest
from typer.testing import CliRunner

from cli.main import app
from contract.devices import DeviceClass
from contract.gate import CommitGate, GateAnswer, GateConclusion, GateRow, RowStatus
from contract.regressions import (
    AffectedCase,
    RegressionEventOut,
    RegressionOut,
    RegressionPage,
    RegressionState,
    RevisionSpot,
)
from tests.cli.stub import AT, Stub, answer, problem

COMMIT = "a" * 40
LIST = "GET /projects/local/regressions"
GATE = f"GET /projects/local/commits/{COMMIT}/gate"
runner = CliRunner()


def spot(label: str, commit: str | None = None) -> RevisionSpot:
    return RevisionSpot(id=f"rev_{label}", label=label, commit=commit, summary="")


FOUND = RegressionOut(
    id="reg_1",
    project="local",
    direction="slower",
    state=RegressionState.NEW,
    sentence="hgemm v4 is 12 % slower than v3 at m=4096,n=4096,k=4096 on h200 (allowed 0.5 %)",
    revision=spot("v4", COMMIT),
    after=spot("v3"),
    suspects=(spot("v3a"), spot("v4", COMMIT)),
    kernels=("hgemm",),
    device_classes=(DeviceClass.H200,),
    worst_ratio=1.12,
    affected=1,
    cases=(
        AffectedCase(
            kernel="hgemm",
            device_class=DeviceClass.H200,
            case="m=4096,n=4096,k=4096",
            evidence="side_by_side",
            metric=None,
            revision=spot("v4", COMMIT),
            base=spot("v3"),
            evaluation="ev_1",
            ratio=1.12,
            interval=(1.119, 1.121),
            allowed_slowdown=0.005,
            now=1.12,
            fixed_by=None,
        ),
    ),
    fixed_by=None,
    kept=None,
    who="kernelgate",
    reason="measured \x1b[2J",
    created_at=AT,
    changed_at=AT,
    events=(RegressionEventOut(state=RegressionState.NEW, who="kernelgate", reason="measured", at=AT),),
)


def commit_gate(conclusion: GateConclusion) -> CommitGate:
    row = GateRow(
        status=RowStatus.BAD,
        kernel="hgemm",
        said="12 % slower (allowed 0.5 %)",
        device_class=DeviceClass.H200,
        case="m=4096,n=4096,k=4096",
        revision="v4",
        ratio=1.12,
        interval=(1.119, 1.121),
    )
    sentence = "hgemm v4 on h200 at 4096^3: 12 % slower (allowed 0.5 %)"
    made = GateAnswer(conclusion=conclusion, sentence=sentence, proven=True, pending=0, rows=(row,))
    return CommitGate(project="local", commit=COMMIT, kernels=("hgemm",), answer=made)


def test_by_default_what_is_open_is_listed_one_line_a_cause(stub: Stub) -> None:
    stub.routes[LIST] = RegressionPage(items=(FOUND,))
    result = runner.invoke(app, ["regressions"])
    assert result.exit_code == 0, result.output
    asked = stub.asked(LIST)[0].url.params
    assert asked.get_list("state") == ["new", "acknowledged", "expected"]
    assert asked["direction"] == "slower"
    [line] = [" ".join(line.split()) for line in result.output.splitlines() if "reg_1" in line]
    assert line == "reg_1 new 12 % slower hgemm v4 or 1 before it h200 1 2026-12-01 measured"


def test_states_classes_and_improvements_are_asked_for(stub: Stub) -> None:
    stub.routes[LIST] = RegressionPage(items=())
    arguments = ["-s", "fixed", "--state", "noise", "-k", "hgemm", "-d", "h200", "--faster"]
    assert "nothing got faster yet" in runner.invoke(app, ["regressions", *arguments]).output
    asked = stub.asked(LIST)[0].url.params
    assert (asked.get_list("state"), asked["kernel"], asked["device_class"], asked["direction"]) == (
        ["fixed", "noise"],
        "hgemm",
        "h200",
        "faster",
    )
    runner.invoke(app, ["regressions", "--all"])
    assert "state" not in stub.asked(LIST)[1].url.params
    result = runner.invoke(app, ["regressions", "--state", "gone"])
    assert result.exit_code == 2
    assert "--state gone: not one of new, acknowledged, expected, fixed, noise" in result.stderr


def test_all_pages_come_as_one_document(stub: Stub) -> None:
    more = FOUND.model_copy(update={"id": "reg_0"})
    stub.routes[LIST] = [
        answer(RegressionPage(items=(FOUND,), next="reg_1")),
        answer(RegressionPage(items=(more,))),
    ]
    result = runner.invoke(app, ["regressions", "--json"])
    assert [each["id"] for each in json.loads(result.output)] == ["reg_1", "reg_0"]
    assert stub.asked(LIST)[1].url.params["after"] == "reg_1"


def test_one_is_shown_with_its_suspects_cases_and_states(stub: Stub) -> None:
    stub.routes["GET /regressions/reg_1"] = FOUND
    result = runner.invoke(app, ["regressions", "show", "reg_1"])
    lines = [" ".join(line.split()) for line in result.output.splitlines()]
    assert lines[0] == FOUND.sentence
    assert "suspects v3a, v4 (aaaaaaaaa) (all but the last were not measured)" in lines
    assert "hgemm 4096^3 h200 1.120 [1.119, 1.121] v3 side by side 1.120" in lines
    assert "2026-12-01 00:00 new: measured (kernelgate)" in lines
    assert "\x1b[2J" not in result.output


@pytest.mark.parametrize(
    ("command", "state"),
    [("ack", "acknowledged"), ("expected", "expected"), ("noise", "noise"), ("fixed", "fixed"), ("reopen", "new")],
)
def test_saying_what_it_is_sends_state_reason_and_name(stub: Stub, command: str, state: str) -> None:
    def change(request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        assert body == {"state": state, "reason": "the fan", "who": "ada"}
        return answer(FOUND.model_copy(update={"state": RegressionState(state), "reason": "the fan"}))

    stub.routes["PATCH /regressions/reg_1"] = change
    result = runner.invoke(app, ["regressions", command, "reg_1", "--reason", "the fan", "--who", "ada"])
    assert result.exit_code == 0, result.output
    assert result.output == f"reg_1 is {state}: the fan\n"


def test_without_a_reason_nothing_is_sent(stub: Stub) -> None:
    assert runner.invoke(app, ["regressions", "ack", "reg_1"]).exit_code == 2
    assert runner.invoke(app, ["regressions", "ack", "reg_1", "--reason", " "]).exit_code == 2
    assert stub.requests == []


def test_a_state_that_can_not_follow_is_said(stub: Stub) -> None:
    stub.routes["PATCH /regressions/reg_1"] = problem(409, "state-not-reachable", "regression reg_1 is noise", "state")
    result = runner.invoke(app, ["regressions", "ack", "reg_1", "--reason", "x"])
    assert result.exit_code == 2
    assert "regression reg_1 is noise" in result.stderr


@pytest.mark.parametrize(
    ("conclusion", "code"),
    [
        (GateConclusion.SUCCESS, 0),
        (GateConclusion.FAILURE, 1),
        (GateConclusion.NOT_MEASURED, 3),
        (GateConclusion.CANCELLED, 3),
        (GateConclusion.PENDING, 3),
    ],
)
def test_the_gates_conclusion_is_the_exit_code(stub: Stub, conclusion: GateConclusion, code: int) -> None:
    stub.routes[GATE] = commit_gate(conclusion)
    result = runner.invoke(app, ["gate", COMMIT])
    assert result.exit_code == code, result.output
    assert "hgemm v4 on h200 at 4096^3: 12 % slower (allowed 0.5 %)" in result.output
    assert "1.120 [1.119, 1.121]" in result.output
    assert json.loads(runner.invoke(app, ["gate", COMMIT, "--json"]).output)["answer"]["conclusion"] == conclusion.value


def test_a_name_is_resolved_by_the_repository_in_the_folder(stub: Stub, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = runner.invoke(app, ["gate", "HEAD"])
    assert result.exit_code == 2
    assert "HEAD is no commit of the repository in this folder" in result.stderr
    named = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "init", "-q"], check=True)
    subprocess.run(["git", *named, "commit", "-q", "--allow-empty", "-m", "one"], check=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    stub.routes[f"GET /projects/local/commits/{head}/gate"] = commit_gate(GateConclusion.SUCCESS)
    assert runner.invoke(app, ["gate", "HEAD"]).exit_code == 0
    assert runner.invoke(app, ["gate", head[:8]]).exit_code == 0
    assert runner.invoke(app, ["gate", "--", "--output=x"]).exit_code == 2
