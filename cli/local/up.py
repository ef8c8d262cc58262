"""`kernelgate up`: Redis, service and one worker of class cpu on this machine, kept running until stopped."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import TextIO

import httpx

from cli.errors import CliError, Exit
from cli.local import redis
from cli.local.child import Child, adopt_orphans, end_descendants, reap_orphans, wait_until
from cli.local.database import known_token, make_token, upgrade_schema
from cli.local.home import Home, Running
from cli.local.toolchains import build_only_classes
from cli.local.trust import operator_variables, sandbox_variables
from contract.api import Scope, TokenIn
from contract.devices import DeviceClass
from contract.views import SignInCode

DEFAULT_PORT = 8000
START_LIMIT_S = 60.0
WATCH_EVERY_S = 0.2

Say = Callable[[str], None]


@dataclass(frozen=True)
class Address:
    host: str
    port: int

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"


def run_up(home: Home, *, host: str, port: int | None, node: DeviceClass | None, say: Say) -> None:
    """Start everything, and return once a signal has stopped it. Says so and returns at once where it already runs.

    node: the class of the one worker; None for none.
    """
    home.make()
    with _lock(home) as held:
        if not held:
            running = home.running()
            where = f" at {running.url} (process {running.pid})" if running else ", and is still starting"
            say(f"already running{where}; data in {home.path}")
            if running:
                _say_link(home, running.url, say)
            return
        address = Address(host, _port(host, port))
        _set_environment(home, address)
        adopt_orphans()
        stop = _Stop()
        children: list[Child] = []
        try:
            with stop.on_signals():
                _start(home, address, children, node, say)
                home.say_running(Running(url=address.url, pid=os.getpid()))
                _greet(home, address, say)
                _supervise(children, stop, say)
        except _StoppedWhileStarting:
            pass
        finally:
            home.say_running(None)
            # The worker first, so that it can still report; Redis last.
            for child in reversed(children):
                child.stop()
            end_descendants()
        say("stopped")


def _start(home: Home, address: Address, children: list[Child], node: DeviceClass | None, say: Say) -> None:
    environment = dict(os.environ)
    if environment["REDIS_URL"] == redis.redis_url(redis.socket_path(home)):
        children.append(redis.redis_child(home, environment))
        _start_child(children[-1], lambda: redis.answers(redis.socket_path(home)))
    upgrade_schema()
    _token(home, Scope.ADMIN)
    children.append(_service_child(home, address, environment))
    _start_child(children[-1], lambda: _ready(address))
    if node is not None:
        environment |= operator_variables(host=address.host)
        environment |= sandbox_variables(host=address.host, node=node, say=say)
        children.append(_worker_child(home, address, environment, node))
        children[-1].start()


def _service_child(home: Home, address: Address, environment: dict[str, str]) -> Child:
    options = {"--host": address.host, "--port": str(address.port), "--timeout-graceful-shutdown": "2"}
    argv = [sys.executable, "-m", "uvicorn", "--factory", "service.app:create_app", "--no-access-log"]
    for option, value in options.items():
        argv += [option, value]
    return Child(name="service", argv=tuple(argv), environment=environment, log=home.logs / "service.log")


def _worker_child(home: Home, address: Address, environment: dict[str, str], node: DeviceClass) -> Child:
    name = f"local-{node.value}"
    own = {
        "KERNELGATE_SERVICE_URL": address.url,
        "KERNELGATE_NODE_TOKEN": _token(home, Scope.WORKER, node=name),
        "KERNELGATE_NODE_NAME": name,
        "KERNELGATE_DEVICE_CLASS": node.value,
        "KERNELGATE_BUILD_ONLY_CLASSES": json.dumps([klass.value for klass in build_only_classes()]),
        "KERNELGATE_CACHE_DIR": environment.get("KERNELGATE_CACHE_DIR") or str(home.path / "cache"),
    }
    return Child(
        name="worker",
        argv=(sys.executable, "-m", "cli.main", "worker"),
        environment={**environment, **own},
        log=home.logs / "worker.log",
        # A job that runs isn't waited for: its lease ends and it is queued again.
        stop_signals=((signal.SIGTERM, 3.0), (signal.SIGQUIT, 3.0)),
    )


def _start_child(child: Child, ready: Callable[[], bool]) -> None:
    child.start()
    if not wait_until(ready, limit_s=START_LIMIT_S, child=child):
        how = f"ended with {child.ended}" if child.ended is not None else f"was not ready within {START_LIMIT_S:.0f} s"
        raise CliError(
            f"{child.name} {how}:\n{child.last_words()}", hint=f"its log: {child.log}", code=Exit.NOT_MEASURED
        )


def _supervise(children: list[Child], stop: _Stop, say: Say) -> None:
    """Start again what dies, until a signal comes."""
    stop.wakes_loop = True
    while not stop.asked:
        for child in children:
            ended = child.ended
            if ended is not None and child.restart_due(time.monotonic()):
                how = f"signal {-ended}" if ended < 0 else f"exit {ended}"
                say(f"{child.name} ended ({how}) and is started again; its log: {child.log}")
                child.restart()
        reap_orphans(children)
        stop.wait(WATCH_EVERY_S)


def _greet(home: Home, address: Address, say: Say) -> None:
    say(f"Kernelgate runs at {address.url}; data in {home.path}; Ctrl-C stops it")
    _say_link(home, address.url, say)
    say("submit with: kernelgate submit kernels/sgemm_cpu/v1_blocked --wait")


def _say_link(home: Home, url: str, say: Say) -> None:
    """A link that signs one browser in. That none can be made stops nothing: a token signs in, too."""
    try:
        answer = httpx.post(
            f"{url}/api/v1/session/code",
            headers={"Authorization": f"Bearer {home.token()}"},
            timeout=5.0,
            trust_env=False,
        ).raise_for_status()
        code = SignInCode.model_validate(answer.json())
    except (httpx.HTTPError, ValueError):
        return
    # The address that is listened on here: KERNELGATE_PUBLIC_URL may be a proxy's.
    say(f"open in a browser, once, within 10 minutes: {url}/login#code={code.code}")


def _token(home: Home, scope: Scope, *, node: str | None = None) -> str:
    """The home's token of that scope (and node), made anew where the database doesn't know the kept one."""
    kept_as = node or scope.value
    kept = home.token(kept_as)
    if kept is not None and known_token(kept, scope):
        return kept
    made = make_token(TokenIn(scope=scope, node=node, note="made by kernelgate up"))
    assert made.secret is not None  # noqa: S101
    home.keep_token(made.secret, kept_as)
    return made.secret


def _set_environment(home: Home, address: Address) -> None:
    """Embedded defaults for this process and its children; what is already set stays."""
    os.environ.setdefault("DATABASE_URL", home.database_url)
    os.environ.setdefault("REDIS_URL", redis.redis_url(redis.socket_path(home)))
    os.environ.setdefault("KERNELGATE_STORE_URL", str(home.path / "store"))
    os.environ.setdefault("KERNELGATE_PUBLIC_URL", address.url)


def _ready(address: Address) -> bool:
    try:
        return httpx.get(f"{address.url}/readyz", timeout=2.0, trust_env=False).is_success
    except httpx.HTTPError:
        return False


def _port(host: str, asked: int | None) -> int:
    """A free port: the one asked for, else 8000, else any."""
    for port in (asked,) if asked is not None else (DEFAULT_PORT, 0):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError as error:
                reason = error.strerror
                continue
            return int(probe.getsockname()[1])
    raise CliError(f"port {asked} of {host}: {reason}", hint="name a free one with --port, or 0 for any")


@contextmanager
def _lock(home: Home) -> Iterator[bool]:
    with home.lock.open("a") as file:
        held = _try_lock(file)
        yield held


def _try_lock(file: TextIO) -> bool:
    # Home.held() takes the lock for an instant to look at it.
    for _ in range(3):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.01)
            continue
        return True
    return False


class _StoppedWhileStarting(Exception):  # noqa: N818
    pass


class _Stop:
    """SIGINT or SIGTERM: while starting they break off, afterwards they end the loop."""

    def __init__(self) -> None:
        self.asked = False
        self.wakes_loop = False

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        before = {
            number: signal.signal(number, self._asked) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        }
        try:
            yield
        finally:
            # While things are being stopped a second Ctrl-C must not leave half of them.
            for number in before:
                signal.signal(number, signal.SIG_IGN)

    def wait(self, seconds: float) -> None:
        if not self.asked:
            time.sleep(seconds)

    def _asked(self, _number: int, _frame: FrameType | None) -> None:
        self.asked = True
        if not self.wakes_loop:
            raise _StoppedWhileStarting
