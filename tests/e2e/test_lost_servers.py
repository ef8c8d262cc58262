"""Redis and the service die at the worst moments: what was accepted is done, once."""

from __future__ import annotations

import time

from tests.e2e.stack import Stack, until


def test_redis_that_loses_its_data_at_idle_with_queued_work_and_while_a_job_runs_costs_no_work(stack: Stack) -> None:
    stack.kill_redis()
    stack.start_redis()
    stack.hold("measure")
    running = stack.submit()
    until(lambda: stack.reached("measure"), "the worker came back, and measures")
    queued = [stack.submit(), stack.submit()]
    stack.kill_redis()
    # Messages of two evaluations are gone, and the worker that measures has no broker.
    refused = stack.submit()
    stack.start_redis()
    stack.release("measure")
    for evaluation in (running, *queued, refused):
        ended = stack.passed(evaluation)
        assert stack.gate.statuses(f"{ended['id']}/report") == [204]


def test_a_broker_that_is_away_holds_no_request_up_and_its_work_is_done_afterwards(stack: Stack) -> None:
    stack.kill_redis()
    kernel = stack.kernel()
    began = time.monotonic()
    evaluation = stack.submit(kernel=kernel)
    # Publishing has a second of its own for each of three tries: none of that is the request's.
    assert time.monotonic() - began < 30
    assert stack.api.evaluation(evaluation)["state"] == "queued"
    # Whoever balances load must not take the service away for it.
    ready = stack.api.http.get(f"{stack.url}/readyz")
    assert (ready.status_code, ready.json()["broker"]) == (200, "unreachable")
    stack.start_redis()
    stack.passed(evaluation)


def test_a_service_restarted_in_the_middle_of_a_job_takes_the_report_of_that_very_attempt(stack: Stack) -> None:
    """However long it was away: its own silence is not the node's."""
    stack.hold("measure")
    evaluation = stack.submit()
    until(lambda: stack.reached("measure"), "the worker measures")
    stack.kill_service()
    killed = time.monotonic()
    until(lambda: time.monotonic() > killed + 3.0, "a lease's silence is over")
    stack.start_service()
    until(lambda: stack.gate.statuses(f"{evaluation}/heartbeat")[-1] == 200, "the worker is heard again")
    stack.release("measure")
    assert len(stack.passed(evaluation)["attempts"]) == 1


def test_a_service_that_is_away_when_the_report_comes_gets_it_later(stack: Stack) -> None:
    stack.hold("measure")
    evaluation = stack.submit()
    until(lambda: stack.reached("measure"), "the worker measures")
    stack.kill_service()
    stack.release("measure")
    until(lambda: 502 in stack.gate.statuses(f"{evaluation}/report"), "the report found nobody")
    stack.start_service()
    assert len(stack.passed(evaluation)["attempts"]) == 1
