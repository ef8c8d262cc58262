"""The sandbox, property by property: each is held only if trying to break it from inside has failed."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cli.doctor.findings import Finding, Purpose
from worker.sandbox import SHM_BYTES, TMP_BYTES, NoSandbox, Sandbox, choose
from worker.settings import WorkerSettings

PROBE = Path(__file__).parent / "probes" / "escape.py"
LIMIT_S = 30.0
MEMORY_BYTES = 256 << 20
PROCESSES = 32
_NEEDED = (Purpose.ISOLATE,)
_NAMESPACES = ("user", "pid", "net", "ipc", "uts", "mnt")
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm", "fd", "core", "console")
_STANDARD = ("stdin", "stdout", "stderr")
# goal of the probe -> (the property's name, what is so when it is held)
PROPERTIES = {
    "files": ("host's files", "passwords, home, other jobs and the rest of the disk can't be read"),
    "writing": ("writing", "only a job's own folders can be written, and only so much"),
    "network": ("network", "nothing outside is reached: no address, no socket of the host"),
    "processes": ("processes", "the host's can't be seen or signalled; own namespaces"),
    "privileges": ("privileges", "no capabilities, no nested namespaces, no variables of the worker"),
    "kernel": ("kernel", "no setting can be written; no device but the harmless ones, no GPU"),
    "outliving": ("end", "what a job leaves running ends with it"),
    "forking": ("process limit", "a fork bomb is stopped"),
    "allocating": ("memory limit", "who takes too much is ended"),
}


def confinement(settings: WorkerSettings | None = None) -> Iterator[Finding]:
    """A finding a property. `settings` are those of the worker whose sandbox is tried."""
    small = {"sandbox": "on", "sandbox_memory_bytes": MEMORY_BYTES, "sandbox_processes": PROCESSES}
    sandbox = choose((settings or WorkerSettings()).model_copy(update=small))
    if isinstance(sandbox, NoSandbox):
        for name, _ in PROPERTIES.values():
            yield _finding(name, broken=sandbox.problem or "no sandbox", advice="as for the sandbox itself")
        return
    with tempfile.TemporaryDirectory() as folder, bait(Path(folder)) as known:
        for goal, (name, held) in PROPERTIES.items():
            broken = attempt(goal, sandbox, known, folder=Path(folder))
            how = f" ({sandbox.caps})" if goal in ("forking", "allocating") else ""
            yield _finding(name, broken=broken, held=held + how, advice=_advice(goal))


def attempt(goal: str, sandbox: Sandbox, known: dict[str, Any], *, folder: Path) -> str | None:
    """What the probe achieved inside the sandbox; None where it achieved nothing."""
    readable, writable = folder / "readable", folder / "writable"
    for place in (readable, writable):
        place.mkdir(exist_ok=True)
    prefix = sandbox.prefix(readable=(readable, PROBE), writable=(writable,), gpu=False)
    try:
        done = subprocess.run(
            [*prefix, sys.executable, "-I", "-S", str(PROBE), goal],
            input=json.dumps(known | {"read_only": [str(readable)]}),
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
            cwd=writable,
            start_new_session=True,
            env={"PATH": os.defpath},
        )
    except subprocess.TimeoutExpired:
        return "it was still there after its parent's end" if goal == "outliving" else "it did not end"
    finally:
        sandbox.close()
    if done.stdout.strip():
        return done.stdout.strip().replace("\n", ", ")[:300]
    # Killed for memory is what was hoped for; any other end says nothing about the property.
    killed = goal == "allocating" and done.returncode in (-9, 137)
    return None if done.returncode == 0 or killed else f"the probe failed: {done.stderr.strip()[-200:]}"


@contextlib.contextmanager
def bait(folder: Path) -> Iterator[dict[str, Any]]:
    """What the probe should not reach: a secret, services on this machine, this process."""
    secret = folder / "secret"
    secret.write_text("another job's")
    abstract = f"kernelgate-doctor-{os.getpid()}"
    with contextlib.ExitStack() as sockets:
        port = sockets.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1]
        for address in (str(folder / "socket"), f"\0{abstract}"):
            server = sockets.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            server.bind(address)
            server.listen()
        yield {
            "secrets": [str(secret), str(Path.home() / ".bashrc"), str(Path.home() / ".cache")],
            "hidden": ["home", "var", "run", "boot", "mnt", "srv"],
            "tmpfs_bytes": max(TMP_BYTES, SHM_BYTES),
            "port": port,
            "socket": str(folder / "socket"),
            "abstract": abstract,
            "pid": os.getpid(),
            "namespaces": {name: str(Path(f"/proc/self/ns/{name}").readlink()) for name in _NAMESPACES},
            "variables": [name for name in os.environ if name.startswith("KERNELGATE_")],
            "devices": [*_DEVICES, *_STANDARD],
            "processes": PROCESSES,
            "memory_bytes": MEMORY_BYTES,
        }


def _advice(goal: str) -> str:
    if goal in ("forking", "allocating"):
        return "run the worker as a systemd service with Delegate=yes: docs/operations.md"
    return "take no code of strangers on this machine, and report this"


def _finding(name: str, *, broken: str | None, held: str = "", advice: str) -> Finding:
    return Finding(
        name=f"  {name}",
        state="ok" if broken is None else "missing",
        detail=held if broken is None else broken,
        advice="" if broken is None else advice,
        needed_for=_NEEDED,
    )
