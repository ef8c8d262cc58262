"""What a client sees of an evaluation while it runs, and how it ends it."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.e2e import revisions
from tests.e2e.stack import Stack, until


@pytest.mark.parametrize("stage", ["verify", "measure"])
def test_cancelling_kills_the_launchers_that_run(stack: Stack, stage: str) -> None:
    stack.hold(stage)
    try:
        evaluation = stack.submit()
        until(lambda: stack.reached(stage), f"the judge is in {stage}")
        _cancel(stack, evaluation)
    finally:
        stack.release(stage)
    assert _next_passes(stack)


def test_cancelling_kills_the_compiler(stack: Stack) -> None:
    evaluation = stack.submit(revisions.files(revisions.slow_to_compile(60, name="cancelled")))
    until(lambda: stack.processes("cc1plus"), "the compiler runs")
    _cancel(stack, evaluation)
    assert not stack.processes("cc1plus")
    assert _next_passes(stack)


def test_what_is_queued_is_cancelled_at_once_and_never_claimed(stack: Stack) -> None:
    with stack.gate.held("/claim"):
        evaluation = stack.submit()
        response = stack.api.http.delete(f"/evaluations/{evaluation}")
        assert response.status_code == 200
    ended = stack.ended(evaluation)
    assert (ended["state"], ended["reason"], ended["attempts"]) == ("cancelled", "by_request", [])
    assert 200 not in stack.gate.statuses(f"{evaluation}/claim")


def test_a_long_poll_answers_at_the_end_and_a_stream_tells_each_stage_and_ends(stack: Stack) -> None:
    stack.hold("measure")
    evaluation = stack.submit()
    until(lambda: stack.reached("measure"), "the worker measures")
    polled: list[Any] = []
    streamed: list[tuple[str, Any]] = []
    clients = [
        threading.Thread(target=lambda: polled.append(stack.api.evaluation(evaluation, wait=60))),
        threading.Thread(target=lambda: streamed.extend(stack.events(evaluation))),
    ]
    for client in clients:
        client.start()
    assert stack.api.evaluation(evaluation, wait=0.2)["state"] == "leased"
    stack.release("measure")
    for client in clients:
        client.join(60)
    ended = stack.passed(evaluation)
    assert polled == [ended]
    kinds = [kind for kind, _ in streamed]
    assert kinds[0] == "state"
    assert kinds[-1] == "finished"
    assert streamed[-1][1] == ended
    stages = [data["stage"] for kind, data in streamed if kind == "progress"]
    assert {"build", "verify", "measure"} <= set(stages)


def test_a_client_that_comes_back_hears_the_rest_and_nothing_twice(stack: Stack) -> None:
    stack.hold("verify")
    evaluation = stack.submit()
    until(lambda: stack.reached("verify"), "the worker verifies")
    with stack.api.http.stream("GET", f"/evaluations/{evaluation}/events") as stream:
        lines = stream.iter_lines()
        last = next(int(line.removeprefix("id: ")) for line in lines if line.startswith("id: "))
    stack.kill_service()
    stack.start_service()
    stack.release("verify")
    rest = stack.events(evaluation, after=last)
    stack.passed(evaluation)
    everything = stack.events(evaluation)
    # `state` carries the evaluation as it is when it is sent: what was told is the order, and the progress.
    assert [_told(*event) for event in rest] == [_told(*event) for event in everything[last:]]
    response = stack.api.http.get(f"/evaluations/{evaluation}/events", headers={"Last-Event-ID": str(len(everything))})
    assert response.status_code == 204


def _told(kind: str, data: Any) -> Any:
    return data if kind == "progress" else kind


def _cancel(stack: Stack, evaluation: str) -> None:
    response = stack.api.http.delete(f"/evaluations/{evaluation}")
    assert response.status_code in {200, 202}, response.text
    ended = stack.ended(evaluation)
    assert (ended["state"], ended["outcome"], ended["reason"]) == ("cancelled", "cancelled", "by_request")
    until(stack.idle, "everything that ran is dead, with its folder")


def _next_passes(stack: Stack) -> bool:
    return bool(stack.passed(stack.submit()))
