from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import update
from sqlmodel import col, select

from service.columns import now
from service.models import Attempt, Evaluation
from service.reconciler import Reconciler
from tests.service.client import Api, claim, report
from tests.service.conftest import wait_for


@pytest.fixture
def evaluation(api: Api, publisher) -> str:
    api.bring_suite()
    [evaluation] = api.submit("v1")["evaluations"]
    wait_for(lambda: publisher.of(evaluation))
    return evaluation


def reconciler(running, **changes: Any) -> Reconciler:
    return Reconciler(
        database=running.database,
        dispatcher=running.services.dispatcher,
        settings=running.settings.model_copy(update=changes),
    )


def grow_old(running, *, heartbeat_s: float = 0.0, deadline_s: float = 0.0) -> None:
    """Shift the live lease into the past."""
    with running.database.write() as session:
        attempt = session.exec(select(Attempt).where(col(Attempt.ended_at).is_(None))).one()
        attempt.heartbeat_at -= timedelta(seconds=heartbeat_s)
        attempt.deadline -= timedelta(seconds=deadline_s)
        session.add(attempt)


def make_due(running) -> None:
    with running.database.write() as session:
        session.exec(update(Evaluation).values(publish_due_at=now()))


def test_what_was_published_is_left_alone_until_it_is_due(running, publisher, evaluation: str) -> None:
    reconciler(running).reconcile()
    assert len(publisher.of(evaluation)) == 1
    make_due(running)
    reconciler(running).reconcile()
    reconciler(running).reconcile()
    assert len(publisher.of(evaluation)) == 2


def test_a_message_that_the_broker_did_not_take_is_published_once_it_is_back(api: Api, running, publisher) -> None:
    api.bring_suite()
    publisher.down = True
    [evaluation] = api.submit("v1")["evaluations"]

    def due() -> bool:
        with running.database.read() as session:
            row = session.get(Evaluation, evaluation)
            return row is not None and row.publish_due_at is not None and row.publish_due_at <= now()

    wait_for(due)
    reconciler(running).reconcile()
    assert publisher.of(evaluation) == []
    publisher.down = False
    wait_for(due)
    reconciler(running).reconcile()
    assert len(publisher.of(evaluation)) == 1


def test_two_replicas_publish_a_due_row_once(running, publisher, evaluation: str) -> None:
    make_due(running)
    replicas = [reconciler(running) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda each: each.reconcile(), replicas))
    assert len(publisher.of(evaluation)) == 2


def test_a_lease_whose_heartbeats_stopped_goes_back_to_the_queue(
    api: Api, node: Api, running, publisher, evaluation: str
) -> None:
    job = node.claim(evaluation)
    reconciler(running).reconcile()
    assert api.evaluation(evaluation)["state"] == "leased"
    grow_old(running, heartbeat_s=31)
    reconciler(running).reconcile()
    found = api.evaluation(evaluation)
    assert (found["state"], found["leased_at"], found["attempts"][0]["end"]) == ("queued", None, "expired")
    assert len(publisher.of(evaluation)) == 2
    late = node.report(job, report())
    assert (late.status_code, late.json()["type"]) == (409, "urn:kernelgate:problem:lease-lost")
    path = f"/evaluations/{evaluation}/heartbeat"
    beat = node.problem("POST", path, json=claim(), headers={"X-Kernelgate-Lease": job.lease_token})
    assert beat["type"] == "lease-lost"
    second = node.claim(evaluation)
    assert node.report(job, report()).status_code == 409
    node.finish(second, report())
    found = api.evaluation(evaluation)
    assert [attempt["end"] for attempt in found["attempts"]] == ["expired", "reported"]
    assert found["outcome"] == "passed"


def test_a_heartbeat_keeps_the_lease_but_not_past_its_deadline(api: Api, node: Api, running, evaluation: str) -> None:
    job = node.claim(evaluation)
    grow_old(running, heartbeat_s=31)
    node.beat(job)
    reconciler(running).reconcile()
    assert api.evaluation(evaluation)["state"] == "leased"
    grow_old(running, deadline_s=3601)
    node.beat(job)
    reconciler(running).reconcile()
    assert api.evaluation(evaluation)["state"] == "queued"


def test_attempts_are_capped_and_the_kernel_is_not_blamed(api: Api, node: Api, running, evaluation: str) -> None:
    for _ in range(3):
        node.claim(evaluation)
        grow_old(running, heartbeat_s=31)
        reconciler(running).reconcile()
    found = api.evaluation(evaluation)
    assert (found["state"], found["outcome"], found["reason"]) == (
        "finished",
        "infrastructure_error",
        "attempts_exhausted",
    )
    assert "node node-1 was not heard of for 31 s" in found["message"]
    assert len(found["attempts"]) == 3


def test_a_cancelled_evaluation_whose_node_is_silent_ends_cancelled(
    api: Api, node: Api, running, evaluation: str
) -> None:
    node.claim(evaluation)
    api.ok("DELETE", f"/evaluations/{evaluation}")
    grow_old(running, heartbeat_s=31)
    reconciler(running).reconcile()
    found = api.evaluation(evaluation)
    assert (found["state"], found["outcome"], found["reason"]) == ("cancelled", "cancelled", "by_request")


def test_many_reconcilers_end_a_dead_lease_once(api: Api, node: Api, running, publisher, evaluation: str) -> None:
    node.claim(evaluation)
    grow_old(running, heartbeat_s=31)
    replicas = [reconciler(running) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda each: each.reconcile(), replicas))
    assert len(api.evaluation(evaluation)["attempts"]) == 1
    assert len(publisher.of(evaluation)) == 2


def test_the_reconciler_of_a_running_service_works_by_itself(make_running, running, publisher, evaluation: str) -> None:
    make_running(reconcile_every_s=0.02)
    make_due(running)
    wait_for(lambda: len(publisher.of(evaluation)) == 2)


def test_the_longer_a_row_waits_the_rarer_it_is_published_again(running, publisher, evaluation: str) -> None:
    waits = []
    for _ in range(6):
        make_due(running)
        reconciler(running, republish_after_s=10, republish_at_most_s=100).reconcile()
        with running.database.read() as session:
            due = session.exec(select(Evaluation.publish_due_at)).one()
        waits.append(round((due - now()).total_seconds(), -1))
    assert waits == [20, 40, 80, 100, 100, 100]


def test_a_service_that_was_away_does_not_take_its_own_silence_for_the_nodes(
    api: Api, node: Api, running, evaluation: str
) -> None:
    node.claim(evaluation)
    grow_old(running, heartbeat_s=3600)
    started = reconciler(running)
    started.start()
    try:
        started.reconcile()
        assert api.evaluation(evaluation)["state"] == "leased"
    finally:
        started.stop()
    reconciler(running).reconcile()
    assert api.evaluation(evaluation)["state"] == "queued"
