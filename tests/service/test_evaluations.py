import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import event

from tests.service.client import Api, report
from tests.service.conftest import wait_for


@pytest.fixture(autouse=True)
def suite(api: Api) -> None:
    api.bring_suite()


def test_an_evaluation_again_counts_up_and_is_published(api: Api, publisher) -> None:
    revision = api.submit("v1")
    body = {"revision": revision["id"], "device_class": "cpu"}
    again = api.ok("POST", "/evaluations", json=body)
    assert again["repeat"] == 2
    wait_for(lambda: publisher.of(again["id"]))
    assert api.ok("GET", f"/revisions/{revision['id']}")["evaluations"] == [again["id"], *revision["evaluations"]]


def test_the_same_idempotency_key_repeats_once(api: Api) -> None:
    body = {"revision": api.submit("v1")["id"], "device_class": "cpu"}
    key = {"Idempotency-Key": "again-1"}
    first = api.ok("POST", "/evaluations", json=body, headers=key)
    assert api.ok("POST", "/evaluations", json=body, headers=key) == first
    other = api.problem("POST", "/evaluations", json={**body, "build_only": True}, headers=key)
    assert other["type"] == "idempotency-key-reused"


def test_many_repeats_at_once_get_numbers_of_their_own(api: Api) -> None:
    body = {"revision": api.submit("v1")["id"], "device_class": "cpu"}
    with ThreadPoolExecutor(6) as pool:
        made = list(pool.map(lambda _: api.ok("POST", "/evaluations", json=body), range(6)))
    assert sorted(each["repeat"] for each in made) == [2, 3, 4, 5, 6, 7]


def test_another_base_starts_a_count_of_its_own(api: Api) -> None:
    one = api.submit("v1")
    two = api.submit("v2")
    other = api.submit("v3")
    body = {"revision": two["id"], "device_class": "cpu", "base": "v3"}
    made = api.ok("POST", "/evaluations", json=body)
    assert (made["repeat"], made["base"]["id"]) == (1, other["id"])
    itself = api.ok("POST", "/evaluations", json={**body, "base": two["id"]})
    assert itself["base"]["id"] == two["id"]
    assert one["id"] != two["id"]


def test_what_cannot_be_evaluated_is_refused(api: Api) -> None:
    revision = api.submit("v1")["id"]
    assert api.problem("POST", "/evaluations", json={"revision": "rev_x", "device_class": "cpu"})["field"] == "revision"
    wrong = api.problem("POST", "/evaluations", json={"revision": revision, "device_class": "b300"})
    assert wrong["type"] == "device-class-not-in-suite"
    assert api.problem("GET", "/evaluations/ev_x")["type"] == "unknown-evaluation"
    assert api.problem("GET", "/evaluations/ev_x/events")["type"] == "unknown-evaluation"
    assert api.problem("GET", "/evaluations", params={"state": "lost"})["field"] == "state"


def test_a_long_poll_ends_when_the_evaluation_does(api: Api, node: Api) -> None:
    [evaluation] = api.submit("v1")["evaluations"]
    job = node.claim(evaluation)
    threading.Timer(0.3, lambda: node.finish(job, report())).start()
    started = time.monotonic()
    found = api.evaluation(evaluation, wait=25)
    assert found["outcome"] == "passed"
    assert time.monotonic() - started < 20


def test_a_long_poll_answers_when_its_time_is_over(api: Api) -> None:
    [evaluation] = api.submit("v1")["evaluations"]
    assert api.evaluation(evaluation, wait=0.05)["state"] == "queued"


def test_more_clients_wait_than_there_are_connections(api: Api, node: Api, running) -> None:
    [evaluation] = api.submit("v1")["evaluations"]
    job = node.claim(evaluation)
    waiting = running.settings.database_pool * 4
    with ThreadPoolExecutor(waiting) as pool:
        answers = [pool.submit(api.evaluation, evaluation, wait=25) for _ in range(waiting)]
        node.beat(job)
        node.finish(job, report())
        assert {answer.result()["outcome"] for answer in answers} == {"passed"}


def test_evaluations_are_listed_by_state_kernel_and_page(api: Api, node: Api) -> None:
    made = [api.submit("v1", source=str(place))["evaluations"][0] for place in range(4)]
    node.finish(node.claim(made[0]), report())

    def listed(**query: object) -> list[str]:
        return [item["id"] for item in api.ok("GET", "/evaluations", params=query)["items"]]

    assert listed() == made[::-1]
    assert listed(state="finished") == made[:1]
    assert listed(state="queued", project="local", kernel="sgemm_cpu", device_class="cpu") == made[:0:-1]
    assert listed(kernel="other") == []
    page = api.ok("GET", "/evaluations", params={"limit": 3})
    assert page["next"] == made[1]
    assert listed(after=page["next"]) == made[:1]
    assert api.problem("GET", "/evaluations", params={"limit": 0})["field"] == "limit"
    assert api.problem("GET", "/evaluations", params={"project": "nowhere"})["type"] == "unknown-project"


def test_a_page_takes_as_many_queries_for_ten_as_for_one(api: Api, node: Api, running) -> None:
    for place in range(5):
        node.finish(node.claim(api.submit("v1", source=str(place))["evaluations"][0]), report())
    queries: list[str] = []

    def note(*call: object) -> None:
        queries.append(str(call[2]))

    counts = []
    event.listen(running.database.engine, "before_cursor_execute", note)
    try:
        for limit in (1, 5):
            queries.clear()
            assert len(api.ok("GET", "/evaluations", params={"limit": limit})["items"]) == limit
            counts.append(len(queries))
    finally:
        event.remove(running.database.engine, "before_cursor_execute", note)
    assert counts[0] == counts[1]
