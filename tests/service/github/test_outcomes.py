"""What a node says of a pull request's kernel, and what GitHub's check concludes: every row of the table."""

from typing import Any

import pytest

from contract.job import Job
from contract.outcomes import Reason, Stage
from contract.report import Failure, Report
from service.columns import now
from service.models import Node
from tests.service.client import node_info, report
from tests.service.github.gated import KERNEL, Gated, Judge, base_files, revision, suite, times

LISTED = ("v1_naive", "v2_blocked")


def fails(reason: Reason, stage: Stage, message: str) -> Judge:
    cases: dict[str, Any] = {"cases": (), "checks": ()}
    return lambda _job: report(failure=Failure(reason=reason, stage=stage, message=message), **cases)


def compiles(job: Job) -> Report:
    return report(device_class=job.device_class, built_only=True, cases=(), checks=())


def opened(gated: Gated, policy: str = "", *, device_classes: str = '["cpu"]') -> str:
    text = suite(*LISTED, policy=policy).replace('device_classes = ["cpu"]', f"device_classes = {device_classes}")
    main = gated.git.commit({**base_files(), f"{KERNEL}/suite.toml": text}, branch="main")
    head = gated.git.commit(revision("v1_naive", "new"), main)
    gated.push_to(1, head)
    return head


@pytest.mark.parametrize(
    ("judge", "policy", "conclusion", "title"),
    [
        (times(1.0), "", "success", "sgemm_cpu on cpu: nothing is slower"),
        (times(0.9), "", "success", "nothing is slower"),
        (times(1.05), "", "failure", "5.0 % slower (allowed 0.5 %)"),
        (times(700.0), "", "failure", " % slower (allowed 0.5 %)"),
        (times(1.05), "allowed_slowdown = 0.1", "success", "nothing is slower"),
        (fails(Reason.WRONG_VALUES, Stage.VERIFY, "off by one"), "", "failure", "off by one"),
        (fails(Reason.COMPILE_ERROR, Stage.BUILD, "sgemm.cpp:1:1: error: no"), "", "failure", "build failed"),
        (fails(Reason.CLOCKS_DISAGREE, Stage.MEASURE, "by a tenth"), "", "failure", "by a tenth"),
        (times(1.05, count=1), "", "success", "not proven"),
        (times(1.05, count=1), 'inconclusive = "fail"', "failure", "inconclusive"),
        (fails(Reason.DEVICE_UNHEALTHY, Stage.MEASURE, "Xid 79"), "", "timed_out", "Xid 79"),
        (compiles, "", "timed_out", "no card of the class was at hand"),
    ],
    ids=[
        "passed: the same",
        "passed: faster",
        "slower",
        "slower by so much that it could be another unit elsewhere",
        "as much slower as is allowed",
        "incorrect",
        "build_failed",
        "untrusted",
        "inconclusive",
        "inconclusive, where the policy fails it",
        "infrastructure_error",
        "built",
    ],
)
def test_each_outcome_has_its_conclusion(gated: Gated, judge: Judge, policy: str, conclusion: str, title: str) -> None:
    head = opened(gated, policy)
    gated.measure(judge)
    check = gated.concluded(head, conclusion)
    assert title in check["output"]["title"]
    assert {conclusion for _, conclusion in check["history"]} <= {None, conclusion}


def test_compiling_is_enough_for_a_class_of_which_the_policy_asks_no_more(gated: Gated) -> None:
    head = opened(gated, 'build_only_device_classes = ["h200"]', device_classes='["cpu", "h200"]')
    for waiting in gated.wait_queued(2):
        job = gated.node.claim(waiting["id"], build_only_classes=["h200"])
        gated.node.finish(job, compiles(job) if job.build_only else times(1.0)(job))
    check = gated.concluded(head, "success")
    assert "compiled; the suite asks for no more on this class" in check["output"]["summary"]


def test_a_node_that_only_compiles_is_none_for_what_has_to_be_measured(make_gated: Any) -> None:
    gated: Gated = make_gated(github_node_wait_s=0.5)
    with gated.running.database.write() as session:
        session.add(Node(**node_info("builder", build_only_classes=["h200"]), last_seen_at=now()))
    head = opened(gated, device_classes='["h200"]')
    assert "no healthy node of class h200" in gated.concluded(head, "timed_out")["output"]["title"]


def test_what_is_cancelled_by_hand_is_cancelled_and_lets_nothing_through(gated: Gated) -> None:
    head = opened(gated)
    [waiting] = gated.wait_queued()
    gated.api.ok("DELETE", f"/evaluations/{waiting['id']}")
    gated.concluded(head, "cancelled")


def test_a_closed_pull_request_ends_what_runs_for_it(gated: Gated) -> None:
    head = opened(gated)
    gated.wait_queued()
    gated.deliver("pull_request", gated.payload(action="closed", number=1, pull_request=gated.pull(1, head)))
    assert "closed" in gated.concluded(head, "cancelled")["output"]["title"]
    assert gated.queued() == []
