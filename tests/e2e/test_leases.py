"""Who may work on an evaluation: one node at a time, so many times, and nobody after its end."""

from __future__ import annotations

from contract.api import Scope
from contract.job import Job
from service.auth import issue_token
from tests.e2e.stack import Stack, until
from tests.service.client import Api, node_info, report


def test_of_two_workers_that_claim_at_once_one_wins(stack: Stack) -> None:
    other = stack.further_worker("node-2")
    try:
        with stack.gate.held("/claim") as hold:
            evaluation = stack.submit()
            # A row that stays queued is published again; the second message wakes the other worker.
            until(lambda: len(hold.arrived) == 2, "both claim")
        ended = stack.passed(evaluation)
        assert sorted(stack.gate.statuses(f"{evaluation}/claim"))[:2] == [200, 409]
        assert stack.gate.statuses(f"{evaluation}/claim").count(200) == len(ended["attempts"])
        until(stack.idle, "both are idle")
    finally:
        stack.dismiss(other)


def test_a_node_that_fell_silent_reports_too_late_and_changes_nothing(stack: Stack) -> None:
    silent = _node(stack, "node-silent")
    kernel = stack.kernel()
    with stack.gate.held("/claim"):  # the real worker comes second
        evaluation = stack.submit(kernel=kernel)
        body = {"node": node_info("node-silent")}
        job = Job.model_validate(silent.ok("POST", f"/evaluations/{evaluation}/claim", json=body))
        until(lambda: stack.api.evaluation(evaluation)["state"] == "queued", "its lease ends")
        late = silent.report(job, report())
        assert late.status_code == 409
        assert late.json()["type"] == "urn:kernelgate:problem:lease-lost"
        assert stack.api.evaluation(evaluation)["state"] == "queued"
    ended = stack.passed(evaluation)
    again = silent.report(job, report())
    assert again.status_code == 409
    assert stack.api.evaluation(evaluation) == ended
    assert ended["attempts"][0]["node"] == "node-silent"


def test_attempts_end_after_so_many_workers_died_over_one_evaluation(stack: Stack) -> None:
    stack.kill_service()
    stack.start_service(KERNELGATE_MAX_ATTEMPTS="2")
    stack.hold("verify")
    evaluation = stack.submit()
    for _ in range(2):
        until(lambda: stack.reached("verify") or _ended(stack, evaluation), "the judge runs")
        if not _ended(stack, evaluation):
            stack.worker.kill("child")
            stack.forget("verify")
    ended = stack.ended(evaluation)
    stack.release("verify")
    assert (ended["outcome"], ended["reason"]) == ("infrastructure_error", "attempts_exhausted")
    assert [attempt["end"] for attempt in ended["attempts"]] == ["expired", "expired"]
    stack.passed(stack.submit())
    stack.kill_service()
    stack.start_service()


def _ended(stack: Stack, evaluation: str) -> bool:
    return stack.api.evaluation(evaluation)["state"] == "finished"


def _node(stack: Stack, name: str) -> Api:
    with stack.database.write() as session:
        token = issue_token(session, scope=Scope.WORKER, node=name)[1]
    return stack.client(token)
