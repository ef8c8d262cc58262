"""A real service on a real socket, over SQLite and over PostgreSQL, with a publisher that remembers."""

import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest
import uvicorn
from sqlmodel import SQLModel

from contract.api import Scope
from contract.names import LOCAL_PROJECT
from service.app import create_app
from service.auth import issue_token
from service.database import Database, upgrade
from service.dispatch import Wake
from service.models import Project
from service.settings import Settings
from tests.service.client import Api

BACKENDS = ("sqlite", "postgresql")


class Recorder:
    """Takes messages in the broker's place. `down`: as if Redis didn't answer."""

    def __init__(self) -> None:
        self.wakes: list[Wake] = []
        self.down = False

    def publish(self, wake: Wake) -> None:
        if self.down:
            raise ConnectionError("the broker is down")
        self.wakes.append(wake)

    def reachable(self) -> bool:
        return not self.down

    def close(self) -> None:
        pass

    def of(self, evaluation_id: str) -> list[Wake]:
        return [wake for wake in self.wakes if wake.evaluation_id == evaluation_id]


def listen() -> socket.socket:
    """On a free port. asyncio sets TCP_NODELAY only where the protocol is named: without it answers are 40 ms late."""
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


class Running:
    """The service as a test sees it: its address, its parts, and tokens."""

    def __init__(self, settings: Settings, publisher: Recorder) -> None:
        self.settings = settings
        self.publisher = publisher
        self.app = create_app(settings, publisher=publisher)
        self.services = self.app.state.services
        self.database: Database = self.services.database
        self._server = uvicorn.Server(
            uvicorn.Config(self.app, log_level="warning", ws="none", timeout_graceful_shutdown=1)
        )
        self._socket = listen()
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._clients: list[httpx.Client] = []
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]})

    def start(self) -> None:
        self._thread.start()
        wait_for(lambda: self._server.started or not self._thread.is_alive())
        assert self._server.started

    def stop(self) -> None:
        for client in self._clients:
            client.close()
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()

    def token(self, scope: Scope, **bound: str) -> str:
        with self.database.write() as session:
            return issue_token(session, scope=scope, **bound)[1]

    def api(self, token: str | None = None) -> Api:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        # Loading the certificates that nobody needs here takes longer than most tests.
        self._clients.append(httpx.Client(base_url=f"{self.url}/api/v1", headers=headers, timeout=30, verify=False))
        return Api(self._clients[-1])


class Backend:
    """One database with one service on it, which tests share and find empty."""

    def __init__(self, database_url: str, store: Path) -> None:
        # Everything is quick but the reconciler, which tests run by hand.
        self.settings = Settings(
            database_url=database_url,
            store_url=str(store),
            migrate_on_start=False,
            database_pool=6,
            poll_every_s=0.02,
            reconcile_every_s=3600,
        )
        self.database = Database(self.settings)
        self.publisher = Recorder()
        self._running: Running | None = None

    def running(self) -> Running:
        if self._running is None:
            self._running = Running(self.settings, self.publisher)
            self._running.start()
        return self._running

    def empty(self) -> None:
        with self.database.write() as session:
            # Every connection sees it, whichever transaction a late thread has open.
            for table in reversed(SQLModel.metadata.sorted_tables):
                session.connection().execute(table.delete())
            session.add(Project(slug=LOCAL_PROJECT))
        self.publisher.wakes.clear()
        self.publisher.down = False

    def stop(self) -> None:
        if self._running:
            self._running.stop()
        self.database.close()


class Backends:
    """The databases that were asked for in this session."""

    def __init__(self, request: pytest.FixtureRequest, folder: Path) -> None:
        self._request = request
        self._folder = folder
        self._made: dict[str, Backend] = {}

    def get(self, name: str) -> Backend:
        if name not in self._made:
            self._made[name] = Backend(self._url(name), self._folder / f"store-{name}")
        return self._made[name]

    def stop(self) -> None:
        for backend in self._made.values():
            backend.stop()

    def _url(self, name: str) -> str:
        url = (
            f"sqlite:///{self._folder / 'kernelgate.db'}"
            if name == "sqlite"
            else self._request.getfixturevalue("postgresql")
        )
        upgrade(Settings(database_url=url))
        return url


def wait_for(condition: Callable[[], object], *, seconds: float = 20.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.01)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The URL of an empty database in a private cluster, on a socket."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    which = shutil.which("initdb")
    initdb = found[-1] if found else Path(which) if which else None
    if initdb is None:
        pytest.fail(
            "PostgreSQL's initdb is missing: install the Debian package `postgresql` (apt-get install postgresql)"
        )
    # A socket's path may have 107 bytes; pytest's folders are longer, and closed to the cluster's user.
    folder = Path(tempfile.mkdtemp(prefix="kernelgate-pg-", dir="/tmp"))
    user = "nobody" if os.geteuid() == 0 else None
    if user:
        shutil.chown(folder, user)
    data = folder / "data"
    run = partial(subprocess.run, check=True, stdout=subprocess.DEVNULL, user=user, cwd=folder)
    run([initdb, "-D", data, "-U", "kernelgate", "-A", "trust", "--no-sync", "-E", "UTF8"])
    options = f"-k {folder} -c listen_addresses= -c fsync=off -c full_page_writes=off -c synchronous_commit=off"
    control = [initdb.with_name("pg_ctl"), "-D", data, "-w"]
    run([*control, "-o", options, "-l", folder / "log", "start"])
    try:
        yield f"postgresql+psycopg://kernelgate@/postgres?host={folder}"
    finally:
        run([*control, "-m", "immediate", "stop"])
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def backends(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backends]:
    backends = Backends(request, tmp_path_factory.mktemp("service"))
    yield backends
    backends.stop()


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest, backends: Backends) -> Backend:
    """One of the two databases, migrated and empty but for the project `local`."""
    backend = backends.get(request.param)
    backend.empty()
    return backend


@pytest.fixture
def settings(backend: Backend) -> Settings:
    return backend.settings


@pytest.fixture
def database(backend: Backend) -> Database:
    return backend.database


@pytest.fixture
def publisher(backend: Backend) -> Recorder:
    return backend.publisher


@pytest.fixture
def make_running(settings: Settings, publisher: Recorder) -> Iterator[Callable[..., Running]]:
    """Start the service with other settings."""
    started: list[Running] = []

    def make(**changes: object) -> Running:
        running = Running(settings.model_copy(update=changes), publisher)
        started.append(running)
        running.start()
        return running

    yield make
    for running in started:
        running.stop()


@pytest.fixture
def running(backend: Backend) -> Running:
    return backend.running()


@pytest.fixture
def api(running: Running) -> Api:
    """A client of scope admin, which may do all but a worker's work."""
    return running.api(running.token(Scope.ADMIN))


@pytest.fixture
def node(running: Running) -> Api:
    """A client with the token of node `node-1`."""
    return running.api(running.token(Scope.WORKER, node="node-1"))
