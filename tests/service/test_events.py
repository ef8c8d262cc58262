import json
import threading
from typing import Any

import pytest

from contract.api import EvaluationOut
from contract.job import Progress
from tests.service.client import Api, report


@pytest.fixture
def evaluation(api: Api) -> str:
    api.bring_suite()
    return api.submit("v1")["evaluations"][0]


def stream(api: Api, evaluation: str, *, last: str | None = None) -> list[dict[str, Any]]:
    """Every event until the stream ends."""
    headers = {"Last-Event-ID": last} if last else {}
    events: list[dict[str, Any]] = []
    current: dict[str, Any] = {}
    with api.http.stream("GET", f"/evaluations/{evaluation}/events", headers=headers) as response:
        assert response.status_code in {200, 204}
        for line in response.iter_lines():
            field, _, value = line.partition(": ")
            if field in {"id", "event", "data"}:
                current[field] = value
            elif not line and current:
                events.append(current)
                current = {}
    return events


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
