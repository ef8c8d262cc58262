"""An idle node tells the service that it is there; one at work says nothing beside its heartbeats."""

import fcntl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from contract.job import NodeInfo
from tests.worker.jobs import settings, until
from tests.worker.service_stub import Stub
from worker.client import ServiceClient
from worker.presence import Presence
from worker.turn import busy


@contextmanager
def presence(stub: Stub, tmp_path: Path, about=None, learning=lambda: False) -> Iterator[Presence]:
    run = settings(tmp_path)
    run.cache_dir.mkdir(exist_ok=True)
    told = NodeInfo(name="test-node", device_class="cpu", host="here", device="a CPU")
    with ServiceClient(stub.url, "token", sleep=lambda _: None) as client:
        made = Presence(run, client=client, about=about or (lambda: told), learning=learning, every_s=0.01)
        made.start()
        yield made
        made.stop()
        made._thread.join(10)
        assert not made._thread.is_alive()


def test_an_idle_node_says_again_and_again_that_it_is_there(tmp_path):
    with Stub() as stub, presence(stub, tmp_path):
        until(lambda: len(stub.present) > 2)
        assert {node.name for node in stub.present} == {"test-node"}


def test_a_node_at_work_is_neither_asked_nor_told_of(tmp_path):
    asked = threading.Event()

    def about() -> NodeInfo:
        asked.set()
        return NodeInfo(name="test-node", device_class="cpu", host="here", device="a CPU")

    run = settings(tmp_path)
    run.cache_dir.mkdir()
    with Stub() as stub, run.lock_file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with presence(stub, tmp_path, about):
            assert busy(run)
            assert not asked.wait(0.2)
            fcntl.flock(lock, fcntl.LOCK_UN)
            assert asked.wait(10)
            until(lambda: bool(stub.present))


def test_a_node_that_learns_is_there_and_is_not_asked_again(tmp_path):
    asked, learning = [], threading.Event()

    def about() -> NodeInfo:
        asked.append(1)
        return NodeInfo(name="test-node", device_class="cpu", host="here", device="a CPU")

    run = settings(tmp_path)
    run.cache_dir.mkdir(exist_ok=True)
    with Stub() as stub, run.lock_file.open("w") as lock, presence(stub, tmp_path, about, learning.is_set):
        until(lambda: bool(stub.present))
        fcntl.flock(lock, fcntl.LOCK_EX)
        learning.set()
        before = len(asked)
        told = len(stub.present)
        until(lambda: len(stub.present) > told + 3)
        assert len(asked) <= before + 1


@pytest.mark.parametrize("what", [RuntimeError("no device"), OSError("no more processes")])
def test_a_failure_is_logged_and_does_not_end_the_telling(tmp_path, what):
    failures = [what]

    def about() -> NodeInfo:
        if failures:
            raise failures.pop()
        return NodeInfo(name="test-node", device_class="cpu", host="here", device="a CPU")

    with Stub() as stub, presence(stub, tmp_path, about):
        until(lambda: bool(stub.present))
