from __future__ import annotations

import httpx
import pytest

from cli.errors import CliError, Exit, ProblemError
from cli.follow import FRUITLESS_STREAMS, PATIENCE_S, follow
from contract.job import Progress
from contract.outcomes import Stage, State
from tests.cli.stub import Stub, evaluation, events, events_then, no_pause, problem, queued

EVENTS, ONE = "GET /evaluations/ev_1/events", "GET /evaluations/ev_1"
BUILDING = Progress(stage=Stage.BUILD, done=1, total=2, detail="sm_90a")


def test_progress_comes_from_the_stream_and_a_change_of_state_is_read() -> None:
    stub = Stub()
    stub.routes = {
        ONE: [queued(), evaluation()],
        EVENTS: events(BUILDING.model_dump_json(), '{"state":"finished","outcome":"passed"}'),
    }
    updates = list(follow(stub.client(), "ev_1", pause=no_pause))
    assert updates == [queued(), BUILDING, evaluation()]


def test_an_event_that_carries_the_evaluation_needs_no_request() -> None:
    stub = Stub()
    stub.routes = {ONE: queued(), EVENTS: events(evaluation().model_dump_json())}
    assert list(follow(stub.client(), "ev_1", pause=no_pause)) == [queued(), evaluation()]
    assert len(stub.asked(ONE)) == 1


def test_what_has_ended_already_is_not_streamed() -> None:
    stub = Stub()
    stub.routes = {ONE: evaluation()}
    assert list(follow(stub.client(), "ev_1", pause=no_pause)) == [evaluation()]
    assert not stub.asked(EVENTS)


def test_a_dropped_stream_is_resumed_after_the_last_event() -> None:
    stub = Stub()
    stub.routes = {
        ONE: [queued(), queued(), evaluation()],
        EVENTS: [
            events_then([BUILDING.model_dump_json()] * 3, httpx.ReadError("reset")),
            events('{"state":"finished"}'),
        ],
    }
    updates = list(follow(stub.client(), "ev_1", pause=no_pause))
    assert updates[-1] == evaluation()
    assert [request.headers.get("Last-Event-ID") for request in stub.asked(EVENTS)] == [None, "3"]


def test_where_streams_bring_nothing_long_polls_take_over() -> None:
    stub = Stub()
    polls = [queued()] * (FRUITLESS_STREAMS + 1) + [queued(), evaluation()]
    stub.routes = {ONE: polls, EVENTS: lambda _: events()}
    assert list(follow(stub.client(), "ev_1", pause=no_pause))[-1] == evaluation()
    assert len(stub.asked(EVENTS)) == FRUITLESS_STREAMS
    assert stub.asked(ONE)[-1].url.params["wait"] == "30"


def test_a_service_that_restarts_is_waited_for() -> None:
    stub = Stub()
    away = httpx.ConnectError("refused")
    stub.routes = {
        ONE: [queued(), away, away, problem(503, "unavailable", "starting"), evaluation()],
        EVENTS: lambda _: events_then([], httpx.ReadError("reset")),
    }
    pauses: list[float] = []
    assert list(follow(stub.client(), "ev_1", pause=pauses.append))[-1] == evaluation()
    assert pauses == sorted(pauses)
    assert len(pauses) == 3


def test_a_service_that_stays_away_ends_the_wait_and_says_how_to_go_on() -> None:
    stub = Stub()
    stub.routes = {ONE: [queued(), httpx.ConnectError("refused")], EVENTS: httpx.ConnectError("refused")}
    clock = iter(range(0, 10_000, 10))
    with pytest.raises(CliError, match="does not answer") as caught:
        list(follow(stub.client(), "ev_1", pause=no_pause, now=lambda: float(next(clock))))
    assert caught.value.code is Exit.NOT_MEASURED
    assert "kernelgate watch ev_1" in (caught.value.hint or "")
    assert f"{PATIENCE_S:.0f} s" in caught.value.message


def test_a_refusal_is_not_tried_again() -> None:
    stub = Stub()
    stub.routes = {ONE: [queued(), problem(401, "unauthorised", "revoked")], EVENTS: events()}
    with pytest.raises(ProblemError, match="revoked"):
        list(follow(stub.client(), "ev_1", pause=no_pause))
    assert len(stub.asked(ONE)) == 2


def test_a_cancelled_evaluation_ends_the_wait() -> None:
    stub = Stub()
    cancelled = queued(state=State.CANCELLED)
    stub.routes = {ONE: [queued(), cancelled], EVENTS: events('{"state":"cancelled"}')}
    assert list(follow(stub.client(), "ev_1", pause=no_pause))[-1] == cancelled
