"""What a check says, and that it says it within GitHub's limits."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from contract.api import EvaluationOut
from contract.gate import GateAnswer, GateConclusion, GateRow, RowStatus
from contract.manifest import parse_suite
from contract.outcomes import Reason, Stage
from contract.report import Failure
from service.github.annotations import annotations_of
from service.github.checks import check_of
from service.github.conclusions import Standing
from service.github.markdown import code, escape, take_lines
from service.github.plans import Plan, Target, Version
from service.github.standing import Scene
from service.github.tables import GithubGate, GithubRepository
from tests.service.client import report
from tests.service.conftest import wait_for
from tests.service.github.gated import Gated, base_files, revision, suite, times

URL = "https://kernelgate.example.org"
VERSION = Version(
    folder="kernels/hgemm/v4", commit="a" * 40, digest="b" * 64, label="v4", source="kernels/hgemm/v4/hgemm.cu"
)
TARGET = Target(
    kernel="sgemm_cpu", suite=parse_suite(suite("v4")), head=VERSION, base=VERSION, base_from="the same folder"
)
PLAN = Plan(base_sha="c" * 40, targets=(TARGET,))


def row(place: int, status: RowStatus, said: str = "same") -> GateRow:
    return GateRow(
        status=status,
        kernel="hgemm",
        said=said,
        device_class="h200",
        case=f"m={place},n=1,k=1",
        revision="v4",
        base="v3",
        evaluation=f"ev_{place:026d}",
        verdict="slower" if status is RowStatus.BAD else "same",
        ratio=1.05,
        interval=(1.04, 1.06),
    )


def scene(*rows: GateRow, evaluations: dict[int, list[EvaluationOut]] | None = None) -> Scene:
    answer = GateAnswer(
        conclusion=GateConclusion.FAILURE, sentence="hgemm is slower", proven=False, pending=0, rows=rows
    )
    return Scene(
        gate=GithubGate(repository_id=1, kind="pull_request", head_sha="d" * 40, created_at=datetime.now(UTC)),
        repository=GithubRepository(id=1, full_name="acme/kernels", installation_id=1, project_id="prj"),
        plan=PLAN,
        standing=Standing(answer=answer),
        evaluations=evaluations or {},
        previews={},
        accepted=(),
        open=False,
    )


def evaluation(**changes: Any) -> EvaluationOut:
    values: dict[str, Any] = {
        "id": "ev_1",
        "project": "p",
        "kernel": "hgemm",
        "revision": {"id": "rev_1", "label": "v4", "digest": "b" * 64},
        "base": None,
        "device_class": "h200",
        "suite_digest": "e" * 64,
        "protocol_version": 1,
        "repeat": 1,
        "build_only": False,
        "state": "finished",
        "outcome": "build_failed",
        "reason": "compile_error",
        "message": "it doesn't compile",
        "stage": None,
        "progress": None,
        "created_at": datetime.now(UTC),
        "leased_at": None,
        "finished_at": datetime.now(UTC),
        "attempts": (),
        "stages": (),
        "environment": None,
        "statics": (),
        "checks": (),
        "cases": (),
    }
    return EvaluationOut.model_validate({**values, **changes})


@pytest.mark.parametrize("count", [1, 300, 900, 5000])
def test_every_case_is_reachable_bad_ones_first_within_githubs_limit(count: int) -> None:
    rows = [row(place, RowStatus.BAD if place < 2 else RowStatus.GOOD) for place in range(count)]
    listed = [evaluation(id=each.evaluation, outcome="passed") for each in rows[-3:]]
    body = check_of(scene(*rows, evaluations={0: listed}), public_url=URL).body
    output = body["output"]
    for text in (output["summary"], output.get("text", "")):
        assert len(text.encode()) <= 65_535
    shown = re.findall(r"m=(\d+),n=1", output["summary"] + output.get("text", ""))
    assert shown == [str(place) for place in range(len(shown))]
    assert shown[0] == "0"
    if len(shown) < count:
        assert f"{count - len(shown)} more rows" in output["text"]
        assert f"{URL}/evaluations/{rows[-1].evaluation}" in output["text"]


def test_the_summary_names_the_base_the_command_and_links() -> None:
    slower = evaluation(outcome="slower", environment={"device": "NVIDIA H200", "driver": "580.1"})
    body = check_of(scene(row(1, RowStatus.BAD), evaluations={0: [slower]}), public_url=URL).body
    summary = body["output"]["summary"]
    assert summary.startswith("**hgemm is slower**")
    assert f"kernelgate submit kernels/hgemm/v4 --base {'b' * 64} --device-class h200 --wait" in summary
    assert f"{URL}/evaluations/ev_1) on NVIDIA H200, finished" in summary
    assert f"Compared with `{'c' * 12}`" in summary
    assert body["output"]["title"] == "hgemm is slower"


def test_text_from_a_kernel_can_not_break_out_of_its_cell() -> None:
    nasty = "| </td> [x](https://evil.example) @everyone `code` \n# big <img src=x>"
    body = check_of(scene(row(1, RowStatus.BAD, said=nasty)), public_url=URL).body
    line = next(each for each in body["output"]["summary"].splitlines() if "m=1,n=1" in each)
    assert len(re.findall(r"(?<!\\)\|", line)) == 8
    assert "\\@everyone" in line
    assert "\\<img" in line
    assert code("a`b|c") == "``a`b\\|c``"
    assert escape("a\nb") == "a b"


def test_lines_are_taken_while_they_fit() -> None:
    assert take_lines(["aaaa", "bbbb", "c"], limit=10) == (["aaaa", "bbbb"], ["c"])
    assert take_lines(["aaaa", "bbbbbb", "c"], limit=10) == (["aaaa"], ["bbbbbb", "c"])


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ('hgemm.cu(12): error: identifier "x" is undefined', ("kernels/hgemm/v4/hgemm.cu", 12, "failure")),
        ("hgemm.cu:7:5: error: expected ';'", ("kernels/hgemm/v4/hgemm.cu", 7, "failure")),
        ("/tmp/job/src/common.h:3:1: warning: unused", ("kernels/hgemm/v4/common.h", 3, "warning")),
        ('  File "hgemm.cu", line 9\n    x = \n', ("kernels/hgemm/v4/hgemm.cu", 9, "failure")),
        ("no place is named", ("kernels/hgemm/v4/hgemm.cu", 1, "failure")),
    ],
)
def test_compilers_are_annotated_where_they_complain(message: str, expected: tuple[str, int, str]) -> None:
    [found] = annotations_of(PLAN, {0: [evaluation(message=message)]})
    assert (found["path"], found["start_line"], found["annotation_level"]) == expected


def test_spills_are_annotated() -> None:
    statics = [{"function": "hgemm", "architecture": "sm_90a", "registers": 255, "spill_store_bytes": 64}]
    [found] = annotations_of(PLAN, {0: [evaluation(outcome="passed", statics=statics)]})
    assert found["message"] == "hgemm spills on sm_90a: 64 bytes stored, 0 bytes loaded (255 registers)"


def test_annotations_come_fifty_a_request_and_each_once(gated: Gated) -> None:
    main = gated.git.commit(base_files(), branch="main")
    head = gated.git.commit(revision("v1_naive", "broken"), main)
    gated.push_to(1, head)
    message = "\n".join(f"sgemm.cpp:{line}:1: error: e{line}" for line in range(1, 121))
    failure = Failure(reason=Reason.COMPILE_ERROR, stage=Stage.BUILD, message=message)
    gated.measure(lambda _job: report(failure=failure, cases=(), checks=()))
    check = gated.concluded(head, "failure")
    wait_for(lambda: len(check["annotations"]) >= 120)
    assert sorted(each["start_line"] for each in check["annotations"]) == list(range(1, 121))
    assert {each["path"] for each in check["annotations"]} == {"kernels/sgemm_cpu/v1_naive/sgemm.cpp"}


def test_progress_is_shown_while_a_node_works(gated: Gated) -> None:
    main = gated.git.commit(base_files(), branch="main")
    head = gated.git.commit(revision("v1_naive", "new"), main)
    gated.push_to(1, head)
    [waiting] = gated.wait_queued()
    job = gated.node.claim(waiting["id"])
    gated.node.beat(job, {"stage": "measure", "done": 1, "total": 2, "detail": "pair 3"})
    wait_for(lambda: "measure 1/2 pair 3" in gated.check(head)["output"]["summary"])
    assert gated.check(head)["status"] == "in_progress"
    gated.node.finish(job, times(1.0)(job))
    gated.concluded(head, "success")
