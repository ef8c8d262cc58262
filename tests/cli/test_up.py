from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from cli.local.home import Home, Running, find_home, service_address
from cli.local.redis import LONGEST_SOCKET_PATH, socket_path

LIMIT_S = 60.0


def until(holds: Callable[[], object]) -> None:
    give_up = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < give_up, "it did not happen in time"
        time.sleep(0.05)


def start_up(home: Home, *options: str) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KERNELGATE_")}
    return subprocess.Popen(
        [sys.executable, "-m", "cli.main", "up", "--port", "0", *options],
        env={**environment, "KERNELGATE_HOME": str(home.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def up(home: Home) -> Iterator[subprocess.Popen[str]]:
    process = start_up(home)
    try:
        until(lambda: home.running() or process.poll() is not None)
        assert process.poll() is None, process.communicate()[0]
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=LIMIT_S)


def child_of(process: subprocess.Popen[str], word: str) -> psutil.Process:
    for child in psutil.Process(process.pid).children():
        if any(word in part for part in child.cmdline()):
            return child
    raise LookupError(word)


def test_up_serves_starts_again_what_dies_and_leaves_no_orphans(up: subprocess.Popen[str], home: Home) -> None:
    running = home.running()
    assert running is not None
    headers = {"Authorization": f"Bearer {home.token()}"}
    with httpx.Client(base_url=running.url, headers=headers, trust_env=False) as client:
        assert client.get("/api/v1/projects").json()["items"][0]["slug"] == "local"
        assert client.get("/readyz").json()["broker"] == "ok"

        second = start_up(home)
        said = second.communicate(timeout=LIMIT_S)[0]
        assert (second.returncode, running.url in said, "already running" in said) == (0, True, True)
        link = re.search(rf"{re.escape(running.url)}/login#code=(\S+)", said)
        assert link is not None
        signed_in = [httpx.post(f"{running.url}/api/v1/session", json={"code": link[1]}) for _ in range(2)]
        assert [answer.status_code for answer in signed_in] == [201, 401]

        before = child_of(up, "redis-server")
        before.kill()
        until(lambda: not before.is_running())
        until(lambda: client.get("/readyz").json()["broker"] == "ok")

        before = child_of(up, "uvicorn")
        before.kill()
        until(lambda: not before.is_running())
        until(lambda: answers(client))

    everything = psutil.Process(up.pid).children(recursive=True)
    assert len(everything) >= 3
    up.terminate()
    output = up.communicate(timeout=LIMIT_S)[0]
    assert up.returncode == 0
    assert not [process for process in everything if process.is_running()]
    assert home.running() is None
    assert "redis ended (signal 9)" in output
    assert "service ended (signal 9)" in output
    assert not (home.path / "redis.sock").exists()


def test_what_up_started_ends_even_where_it_is_killed(home: Home) -> None:
    process = start_up(home, "--no-worker")
    until(home.running)
    everything = psutil.Process(process.pid).children(recursive=True)
    assert everything
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=LIMIT_S)
    psutil.wait_procs(everything, timeout=LIMIT_S)
    assert not [child for child in everything if child.is_running()]
    assert home.running() is None


def test_a_port_that_is_taken_is_named(home: Home) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        process = start_up(home, "--port", port)
        said = process.communicate(timeout=LIMIT_S)[0]
    assert process.returncode == 2
    assert f"port {port}" in said
    assert "--port" in said


def test_the_home_is_readable_by_its_owner_alone(home: Home) -> None:
    home.keep_token("kg_secret")
    assert home.path.stat().st_mode & 0o077 == 0
    assert (home.path / "tokens" / "admin").stat().st_mode & 0o077 == 0
    assert home.token() == "kg_secret"


def test_a_long_home_keeps_its_socket_in_a_short_private_folder(tmp_path: Path) -> None:
    home = Home(tmp_path / ("x" * 120))
    path = socket_path(home)
    assert len(os.fsencode(path)) <= LONGEST_SOCKET_PATH
    assert path.parent.stat().st_mode & 0o077 == 0
    path.parent.rmdir()


def test_the_home_is_found_from_a_folder_below(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KERNELGATE_HOME", raising=False)
    (tmp_path / ".kernelgate").mkdir()
    below = tmp_path / "kernels" / "hgemm"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert find_home().path == tmp_path / ".kernelgate"


def test_the_local_token_goes_to_the_local_service_alone(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.keep_token("kg_secret")
    monkeypatch.setattr(Home, "running", lambda _: Running(url="http://127.0.0.1:1", pid=1))
    monkeypatch.delenv("KERNELGATE_URL", raising=False)
    monkeypatch.delenv("KERNELGATE_TOKEN", raising=False)
    assert service_address(home) == ("http://127.0.0.1:1", "kg_secret")
    monkeypatch.setenv("KERNELGATE_URL", "https://elsewhere.example")
    assert service_address(home) == ("https://elsewhere.example", None)
    monkeypatch.setenv("KERNELGATE_TOKEN", "kg_other")
    assert service_address(home) == ("https://elsewhere.example", "kg_other")


def answers(client: httpx.Client) -> bool:
    try:
        return client.get("/api/v1/projects").is_success
    except httpx.HTTPError:
        return False
