import json
import threading
from typing import Any

import pytest

from contract.api import EvaluationOut
from contract.job import Progress
from service.api import events
from tests.service.client import Api, report


@pytest.fixture
def evaluation(api: Api) -> str:
    api.bring_suite()
    return api.submit("v1")["evaluations"][0]


def stream(api: Api, evaluation: str, *, last: str | None = None) -> list[dict[str, Any]]:
    """Every event until the stream ends."""
    headers = {"Last-Event-ID": last} if last else {}
    told: list[dict[str, Any]] = []
    current: dict[str, Any] = {}
    with api.http.stream("GET", f"/evaluations/{evaluation}/events", headers=headers) as response:
        assert response.status_code in {200, 204}
        for line in response.iter_lines():
            field, _, value = line.partition(": ")
            if field in {"id", "event", "data"}:
                current[field] = value
            elif not line and current:
                told.append(current)
                current = {}
    return told


def test_the_stream_tells_each_step_and_ends_with_the_evaluation(api: Api, node: Api, evaluation: str) -> None:
    told: list[dict[str, Any]] = []
    listener = threading.Thread(target=lambda: told.extend(stream(api, evaluation)))
    listener.start()
    job = node.claim(evaluation)
    node.beat(
        job, {"stage": "build"}, {"stage": "measure", "done": 1, "total": 2, "detail": "a\n\nevent: finished\x1b"}
    )
    node.finish(job, report())
    listener.join(timeout=20)
    assert not listener.is_alive()
    assert [(event["id"], event["event"]) for event in told] == [
        ("1", "state"),
        ("2", "state"),
        ("3", "progress"),
        ("4", "progress"),
        ("5", "finished"),
    ]
    progress = Progress.model_validate_json(told[3]["data"])
    assert (progress.stage, progress.done, progress.total) == ("measure", 1, 2)
    assert progress.detail == "a\n\nevent: finished"
    assert progress.at is not None
    assert EvaluationOut.model_validate_json(told[-1]["data"]).outcome == "passed"


def test_the_last_event_has_the_outcome_even_where_the_end_comes_while_the_stream_looks(
    api: Api, node: Api, evaluation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = node.claim(evaluation)
    look = events.events_after
    # The first look only tells whether there is anything to tell.
    steps = [lambda: None, lambda: node.finish(job, report())]

    def end_between(*args: Any, **options: Any) -> Any:
        if steps:
            steps.pop(0)()
        return look(*args, **options)

    monkeypatch.setattr(events, "events_after", end_between)
    told = stream(api, evaluation)
    assert told[-1]["event"] == "finished"
    assert EvaluationOut.model_validate_json(told[-1]["data"]).outcome == "passed"


def test_a_stream_resumes_after_the_last_event_and_is_empty_after_the_end(api: Api, node: Api, evaluation: str) -> None:
    node.finish(node.claim(evaluation), report())
    assert [event["id"] for event in stream(api, evaluation)] == ["1", "2", "3"]
    assert [event["id"] for event in stream(api, evaluation, last="2")] == ["3"]
    assert stream(api, evaluation, last="3") == []
    response = api.http.get(f"/evaluations/{evaluation}/events", headers={"Last-Event-ID": "3"})
    assert response.status_code == 204
    assert api.problem("GET", f"/evaluations/{evaluation}/events", headers={"Last-Event-ID": "x"})["status"] == 422


def test_a_cancelled_evaluation_ends_its_stream(api: Api, evaluation: str) -> None:
    api.ok("DELETE", f"/evaluations/{evaluation}")
    last = stream(api, evaluation)[-1]
    assert last["event"] == "finished"
    assert json.loads(last["data"])["state"] == "cancelled"
