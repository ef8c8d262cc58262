"""Deliveries of one repository are worked off one at a time by replicas that share a database."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlmodel import select

from service.columns import now
from service.database import Database
from service.github import events, gates, inbox, installations
from service.github.inbox import Incoming
from service.github.tables import GithubDelivery, GithubGate, GithubRepository
from tests.service.conftest import BACKENDS, Backends

HEADS = [f"{number:040x}" for number in range(1, 9)]


@pytest.fixture(params=BACKENDS)
def replicas(request: pytest.FixtureRequest, backends: Backends) -> Any:
    """The databases of two replicas: the same one, each with connections of its own."""
    backend = backends.get(request.param)
    backend.empty()
    both = [Database(backend.settings) for _ in range(2)]
    with both[0].write() as session:
        installations.remember(session, repository_id=1, full_name="acme/kernels", installation_id=55)
    yield both
    for each in both:
        each.close()


def payload(action: str, head: str, minute: int) -> dict[str, Any]:
    return {
        "pull_request": {
            "number": 7,
            "state": "open",
            "head": {"sha": head, "repo": {"id": 1}},
            "base": {"ref": "main", "repo": {"id": 1}},
            "updated_at": f"2026-01-01T00:{minute:02d}:00Z",
        },
        "action": action,
    }


def work_off(database: Database, action: str, head: str, minute: int) -> None:
    try:
        with database.write() as session:
            row = session.get_one(GithubRepository, 1)
            events._pull_request(session, row, action, payload(action, head, minute))
    except installations.RefusedDeliveryError:
        pass  # something newer came first


def test_pushes_that_are_worked_off_at_once_leave_one_current_gate_the_newest(replicas: list[Database]) -> None:
    barrier = threading.Barrier(len(HEADS))

    def one(place: int) -> None:
        barrier.wait()
        work_off(replicas[place % 2], "synchronize", HEADS[place], place)

    with ThreadPoolExecutor(len(HEADS)) as pool:
        list(pool.map(one, range(len(HEADS))))
    with replicas[0].read() as session:
        rows = session.exec(select(GithubGate)).all()
    assert [row.head_sha for row in rows if row.current_since] == [HEADS[-1]]
    assert {row.state for row in rows if row.head_sha != HEADS[-1]} <= {gates.DONE}


def test_the_same_commit_in_several_deliveries_at_once_is_one_gate(replicas: list[Database]) -> None:
    barrier = threading.Barrier(8)

    def one(place: int) -> None:
        barrier.wait()
        work_off(replicas[place % 2], "opened", HEADS[0], 1)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, range(8)))
    with replicas[0].read() as session:
        [gate] = session.exec(select(GithubGate)).all()
    assert gate.head_sha == HEADS[0]


# On SQLite every writer waits for every other.
@pytest.mark.parametrize("replicas", ["postgresql"], indirect=True)
def test_whoever_holds_the_repository_is_waited_for_and_another_one_is_not(replicas: list[Database]) -> None:
    with replicas[0].write() as session:
        installations.remember(session, repository_id=2, full_name="acme/other", installation_id=55)
    went_on = {1: threading.Event(), 2: threading.Event()}

    def lock(repository_id: int) -> None:
        with replicas[1].write() as session:
            gates.lock(session, session.get_one(GithubRepository, repository_id))
            went_on[repository_id].set()

    with ThreadPoolExecutor(2) as pool:
        with replicas[0].write() as session:
            gates.lock(session, session.get_one(GithubRepository, 1))
            waiting = [pool.submit(lock, each) for each in (1, 2)]
            assert went_on[2].wait(20)
            assert not went_on[1].wait(0.3)
        assert went_on[1].wait(20)
        for each in waiting:
            each.result()


def test_a_delivery_is_kept_once_and_taken_once(replicas: list[Database]) -> None:
    barrier = threading.Barrier(8)
    incoming = Incoming(id="d1", event="push", action="", body="{}")

    def one(place: int) -> tuple[bool, bool]:
        database = replicas[place % 2]
        barrier.wait()
        with database.write() as session:
            kept = inbox.keep(session, incoming)
        barrier.wait()
        with database.write() as session:
            taken = inbox.take(session, "d1", moment=now(), hold_s=60) is not None
        return kept, taken

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(one, range(8)))
    assert sum(kept for kept, _ in found) == 1
    assert sum(taken for _, taken in found) == 1
    with replicas[0].read() as session:
        assert session.get_one(GithubDelivery, "d1").tries == 1
