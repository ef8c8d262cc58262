"""The whole product as processes of its own: Redis, the service, and Celery workers of class cpu behind a gate."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx
import psutil

from cli.local import redis
from cli.local.child import Child
from cli.local.home import Home
from contract.api import Scope
from service.auth import issue_token
from service.database import Database, upgrade
from service.settings import Settings
from tests.e2e import revisions
from tests.e2e.gate import Gate
from tests.service.client import Api
from worker.sandbox import choose
from worker.settings import WorkerSettings

LIMIT_S = 120.0
HELD_JUDGE = Path(__file__).with_name("held_judge.py")
# Everything quick, but no shorter than a busy machine needs.
SERVICE = {
    "KERNELGATE_HEARTBEAT_S": "0.5",
    "KERNELGATE_HEARTBEAT_TIMEOUT_S": "2.5",
    "KERNELGATE_RECONCILE_EVERY_S": "0.3",
    "KERNELGATE_REPUBLISH_AFTER_S": "1",
    "KERNELGATE_REPUBLISH_AT_MOST_S": "2",
    "KERNELGATE_MAX_ATTEMPTS": "20",
    "KERNELGATE_POLL_EVERY_S": "0.05",
}
WORKER = {
    "KERNELGATE_DEVICE_CLASS": "cpu",
    "KERNELGATE_MAX_PROCESSES": "1",
    "KERNELGATE_CALL_LIMIT_S": "4",
    "KERNELGATE_COMPILE_LIMIT_S": "15",
    "KERNELGATE_SOFT_SHUTDOWN_S": "2",
    "KERNELGATE_OWN_OPERATORS": '["local", "neighbours"]',
}


def until(true: Callable[[], object], what: str, *, limit_s: float = LIMIT_S) -> None:
    give_up = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < give_up, f"not within {limit_s:g} s: {what}"
        time.sleep(0.02)


class Worker:
    def __init__(self, stack: Stack, name: str) -> None:
        self.work = stack.folder / f"work-{name}"
        self.work.mkdir()
        with stack.database.write() as session:
            token = issue_token(session, scope=Scope.WORKER, node=name)[1]
        own = {
            "KERNELGATE_SERVICE_URL": stack.gate.url,
            "KERNELGATE_NODE_TOKEN": token,
            "KERNELGATE_NODE_NAME": name,
            "KERNELGATE_CACHE_DIR": str(stack.folder / f"cache-{name}"),
            "KERNELGATE_WORK_DIR": str(self.work),
            # The tests of the sandbox need one; these take what the machine has.
            "KERNELGATE_SANDBOX": "on" if choose(WorkerSettings()).isolates else "off",
            "KERNELGATE_JUDGE": json.dumps([str(HELD_JUDGE), str(stack.holds)]),
        }
        self.child = Child(
            name=name,
            argv=(sys.executable, "-m", "worker", "--loglevel", "INFO"),
            environment={**stack.environment, **WORKER, **own, **stack.worker_changes},
            log=stack.folder / f"{name}.log",
            stop_signals=((signal.SIGTERM, 10.0), (signal.SIGQUIT, 5.0)),
        )

    @property
    def process(self) -> psutil.Process:
        assert self.child.process is not None
        return psutil.Process(self.child.process.pid)

    @property
    def ready(self) -> bool:
        return bool(self._pool())

    def start(self) -> None:
        self.child.start()
        until(lambda: self.ready, f"{self.child.name} has its process\n{self.child.last_words()}")

    def _pool(self) -> list[psutil.Process]:
        """Celery's one child, which runs the tasks."""
        return [each for each in self.process.children() if each.status() != psutil.STATUS_ZOMBIE]

    def kill(self, victim: str) -> None:
        """SIGKILL Celery's `child` or its `parent`, and see everything end that ran below."""
        below = self.process.children(recursive=True)
        if victim == "parent":
            below.append(self.process)
            self.process.kill()
            assert self.child.process is not None
            self.child.process.wait()
        else:
            [pool] = self._pool()
            pool.kill()
        until(lambda: not any(alive(each) for each in below), f"killed {victim} leaves nothing: {below}")
        if victim == "parent":
            self.start()
        else:
            until(lambda: self.ready, "Celery has another child")

    def stop(self) -> None:
        self.child.stop()


def alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class Stack:
    """One of each, and further workers on request. `worker`, `service`: their settings that differ."""

    def __init__(
        self,
        folder: Path,
        *,
        database_url: str | None = None,
        worker: Mapping[str, str] | None = None,
        service: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.worker_changes = worker or {}
        self.service_changes = service or {}
        self.holds = folder / "holds"
        self.holds.mkdir()
        self._home = Home(folder)
        self._home.make()
        self.socket = redis.socket_path(self._home)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("KERNELGATE_")}
        self.environment = {
            **kept,
            "DATABASE_URL": database_url or f"sqlite:///{folder / 'kernelgate.db'}",
            "REDIS_URL": redis.redis_url(self.socket),
            "KERNELGATE_STORE_URL": str(folder / "store"),
        }
        settings = Settings(database_url=self.environment["DATABASE_URL"])
        upgrade(settings)
        self.database = Database(settings)
        with self.database.write() as session:
            self.token = issue_token(session, scope=Scope.ADMIN)[1]
        self.port = _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.gate = Gate(self.port)
        self._http = httpx.Client(
            base_url=f"{self.url}/api/v1",
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=LIMIT_S,
            trust_env=False,
        )
        self.api = Api(self._http)
        self._clients = [self._http]
        self.redis = redis.redis_child(self._home, self.environment)
        self.service = self._service()
        self.worker = Worker(self, "node-1")
        self._further: list[Worker] = []
        self._kernels = 0

    def start(self) -> None:
        self.start_redis()
        self.start_service()
        self.worker.start()

    def mend(self) -> None:
        """What a test that failed may have left undone."""
        for stage in ("verify", "measure"):
            self.release(stage)
        for child, start in ((self.redis, self.start_redis), (self.service, self.start_service)):
            if child.ended is not None:
                start()
        if self.worker.child.ended is not None:
            self.worker.start()

    def start_redis(self) -> None:
        self.redis.start()
        until(lambda: redis.answers(self.socket), f"Redis answers\n{self.redis.last_words()}")

    def start_service(self, **changes: str) -> None:
        """`changes`: for this start only."""
        self.service.environment = {**self._service().environment, **changes}
        self.service.start()
        until(self._serves, f"the service answers\n{self.service.last_words()}")

    def kill_service(self) -> None:
        self._kill(self.service)

    def kill_redis(self) -> None:
        """With its data: it keeps none on a disk."""
        self._kill(self.redis)

    def further_worker(self, name: str) -> Worker:
        worker = Worker(self, name)
        self._further.append(worker)
        worker.start()
        return worker

    def dismiss(self, worker: Worker) -> None:
        self._further.remove(worker)
        worker.stop()

    def client(self, token: str) -> Api:
        headers = {"Authorization": f"Bearer {token}"}
        self._clients.append(httpx.Client(base_url=self._http.base_url, headers=headers, trust_env=False))
        return Api(self._clients[-1])

    def stop(self) -> None:
        for client in self._clients:
            client.close()
        for name in ("verify", "measure"):
            (self.holds / name).unlink(missing_ok=True)
        for worker in (*self._further, self.worker):
            worker.stop()
        self.service.stop()
        self.redis.stop()
        self.gate.close()
        self.database.close()
        left = self.processes()
        assert not left, left

    # ------------------------------------------------------------ what tests do

    def kernel(self, **suite: Any) -> str:
        """A new kernel, so that nothing of another test is its base."""
        self._kernels += 1
        name = f"kernel{self._kernels}"
        self.api.bring_suite(**revisions.suite(name, **suite))
        return name

    def submit(self, files: dict[str, str] | None = None, *, kernel: str | None = None, **more: Any) -> str:
        """The evaluation's id."""
        body = {"project": "local", "kernel": kernel or self.kernel(), "files": files or self.right(), **more}
        [evaluation] = self.api.ok("POST", "/revisions", json=body)["evaluations"]
        return str(evaluation)

    def right(self, label: str = "v1") -> dict[str, str]:
        return revisions.files(revisions.source(), label=label)

    def ended(self, evaluation_id: str, *, limit_s: float = LIMIT_S) -> Any:
        """The evaluation at its end, and what must hold of every one: it ended once, with at most one report."""
        give_up = time.monotonic() + limit_s
        evaluation = self.api.evaluation(evaluation_id, wait=10)
        while evaluation["state"] not in {"finished", "cancelled"}:
            assert time.monotonic() < give_up, f"no end: {evaluation}\n{self.worker.child.last_words(40)}"
            evaluation = self.api.evaluation(evaluation_id, wait=10)
        ends = [attempt["end"] for attempt in evaluation["attempts"]]
        assert ends.count("reported") <= 1, ends
        assert None not in ends, ends
        assert [kind for kind, _ in self.events(evaluation_id)].count("finished") == 1
        return evaluation

    def passed(self, evaluation_id: str) -> Any:
        """The same, where it must have passed and be in the history once."""
        evaluation = self.ended(evaluation_id)
        assert evaluation["outcome"] == "passed", evaluation
        assert evaluation["attempts"][-1]["end"] == "reported"
        path = f"/projects/local/kernels/{evaluation['kernel']}/history"
        [case] = evaluation["cases"]
        query = {"device_class": "cpu", "case": case["case"], "metric": "time"}
        series = self.api.ok("GET", path, params=query)
        assert [point["evaluation"] for point in series["points"]] == [evaluation_id]
        return evaluation

    def events(self, evaluation_id: str, *, after: int = 0) -> list[tuple[str, Any]]:
        """Kind and data of every server-sent event to the evaluation's end."""
        found = []
        headers = {"Last-Event-ID": str(after)}
        with self._http.stream("GET", f"/evaluations/{evaluation_id}/events", headers=headers) as stream:
            stream.raise_for_status()
            kind = ""
            for line in stream.iter_lines():
                name, _, value = line.partition(": ")
                if name == "event":
                    kind = value
                elif name == "data":
                    found.append((kind, json.loads(value)))
        return found

    def hold(self, stage: str) -> None:
        (self.holds / stage).touch()

    def reached(self, stage: str) -> bool:
        return (self.holds / f"{stage}.reached").exists()

    def forget(self, stage: str) -> None:
        """`reached` is about the next judge."""
        (self.holds / f"{stage}.reached").unlink(missing_ok=True)

    def release(self, stage: str) -> None:
        (self.holds / stage).unlink(missing_ok=True)
        (self.holds / f"{stage}.reached").unlink(missing_ok=True)

    def processes(self, name: str = "") -> list[psutil.Process]:
        """Every process that this stack started, by its environment, which all of them inherit in part."""
        found = []
        for process in psutil.process_iter(["environ", "name"]):
            environment = process.info["environ"] or {}
            ours = any(str(self.folder) in value for value in environment.values())
            if ours and process.pid != os.getpid() and name in (process.info["name"] or "") and alive(process):
                found.append(process)
        return found

    def idle(self) -> bool:
        """Nothing runs but servers and Celery's two processes, and no evaluation's folder is left."""
        workers = (self.worker, *self._further)
        servers = {child.process.pid for child in (self.redis, self.service) if child.process}
        for worker in workers:
            servers |= {worker.process.pid, *(each.pid for each in worker._pool())}
        stray = [each for each in self.processes() if each.pid not in servers]
        return not stray and not any(list(worker.work.iterdir()) for worker in workers)

    # ------------------------------------------------------------

    def _service(self) -> Child:
        options = ("--factory", "service.app:create_app", "--host", "127.0.0.1", "--port", str(self.port))
        return Child(
            name="service",
            argv=(sys.executable, "-m", "uvicorn", *options, "--log-level", "warning"),
            environment={**self.environment, **SERVICE, **self.service_changes},
            log=self.folder / "service.log",
        )

    def _serves(self) -> bool:
        try:
            return bool(httpx.get(f"{self.url}/readyz", timeout=5.0, trust_env=False).is_success)
        except httpx.HTTPError:
            return False

    def _kill(self, child: Child) -> None:
        assert child.process is not None
        child.process.kill()
        child.process.wait()


def _free_port() -> int:
    """None of those that the system gives to connections: one of them could have it before the service does."""
    while True:
        port = random.randint(10_000, 30_000)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
