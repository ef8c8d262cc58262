"""Caps on memory and on the number of processes, by cgroup: v2, v1, or none where nothing is delegated to this user.

A folder is made for each job of this process, and below it one for each command, by the shell that becomes it
(`ENTER`): so a command is capped before it runs, whoever starts it, and none takes its neighbour's memory.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_MOUNT = Path("/sys/fs/cgroup")
_NAME = "kernelgate"
_WORKER = f"{_NAME}-worker"
_GONE_LIMIT_S = 2.0
_CONTROLLERS = ("memory", "pids")
# Enters a folder of its own below each of `$1`, sets the caps `$2` there ("file=value ..."), caps files at `$3` blocks
# of 512 bytes where it isn't empty, and becomes the rest. A cap that a hierarchy doesn't have is left out; one that
# can't be set ends the command.
ENTER = """\
set -e
ulimit -c 0
if [ -n "$3" ]; then ulimit -f "$3"; fi
for group in $1; do
  mkdir "$group/$$"
  for cap in $2; do
    if [ -e "$group/$$/${cap%%=*}" ]; then echo "${cap#*=}" > "$group/$$/${cap%%=*}"; fi
  done
  echo 0 > "$group/$$/cgroup.procs"
done
shift 3
exec "$@"
"""


@dataclass(frozen=True)
class Cgroups:
    """`bases`: where this process may make folders, one a hierarchy. `version` is 1 or 2."""

    version: int
    bases: tuple[Path, ...]

    def open(self, name: str) -> Job:
        """Folders for one job; raises OSError. `name` tells them from those of other jobs."""
        folders = tuple(base / f"{_NAME}-{os.getpid()}-{name}" for base in self.bases)
        for folder in folders:
            folder.mkdir()
            if self.version == 2:
                (folder / "cgroup.subtree_control").write_text("+memory +pids")
        return Job(folders=folders, version=self.version)

    def sweep(self) -> None:
        """Remove folders whose process is gone."""
        for base in self.bases:
            for folder in base.glob(f"{_NAME}-*-*"):
                pid = folder.name.split("-")[1]
                if pid.isdigit() and not Path(f"/proc/{pid}").exists():
                    _remove(folder)


@dataclass(frozen=True)
class Job:
    folders: tuple[Path, ...]
    version: int

    def caps(self, *, memory_bytes: int, processes: int) -> str:
        """`$2` of `ENTER`. Swap would only make a job that takes too much slow."""
        if self.version == 2:
            return f"memory.max={memory_bytes} memory.swap.max=0 memory.oom.group=1 pids.max={processes}"
        memory = f"memory.limit_in_bytes={memory_bytes} memory.memsw.limit_in_bytes={memory_bytes}"
        return f"{memory} pids.max={processes}"

    def reached(self) -> set[str]:
        """Which caps ended or refused something in any of this job's commands: `memory`, `processes`."""
        found = set()
        for group in self._groups():
            if _count(group / ("memory.events" if self.version == 2 else "memory.oom_control"), "oom_kill"):
                found.add("memory")
            if _count(group / "pids.events", "max"):
                found.add("processes")
        return found

    def close(self) -> None:
        """Kill what is left in it, and remove its folders."""
        for group in (*self._groups(), *self.folders):
            for pid in _pids(group):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, 9)
        for folder in self.folders:
            _remove(folder, limit_s=_GONE_LIMIT_S)

    def _groups(self) -> Iterator[Path]:
        for folder in self.folders:
            with contextlib.suppress(OSError):
                yield from [child for child in folder.iterdir() if child.is_dir()]


@cache
def find() -> Cgroups | None:
    """What this process may use; None where memory or processes can't be capped. Tried, not believed."""
    own = dict(_own())
    try:
        if all(name in own for name in _CONTROLLERS):
            bases = tuple(_visible(_MOUNT / name, own[name]) for name in _CONTROLLERS)
            found = Cgroups(version=1, bases=tuple(dict.fromkeys(bases)))
        else:
            found = Cgroups(version=2, bases=(_delegated(_MOUNT / own.get("", "/").lstrip("/")),))
        found.sweep()
        found.open("trial").close()
    except OSError:
        return None
    return found


def _own() -> Iterator[tuple[str, str]]:
    """(controller, path) of this process; the unified hierarchy's controller is ''."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            for controller in controllers.split(","):
                yield controller, path


def _visible(mount: Path, path: str) -> Path:
    """In a container the mount may begin where the path ends."""
    own = mount / path.lstrip("/")
    return own if own.is_dir() else mount


def _delegated(own: Path) -> Path:
    """Controllers are passed on only by a folder without processes: ours move to a leaf of their own."""
    base = own.parent if own.name == _WORKER else own
    wanted = set(_CONTROLLERS)
    if not wanted <= set((base / "cgroup.controllers").read_text().split()):
        raise PermissionError("memory and pids are not delegated")
    control = base / "cgroup.subtree_control"
    if not wanted <= set(control.read_text().split()):
        leaf = base / _WORKER
        leaf.mkdir(exist_ok=True)
        for pid in _pids(base):
            with contextlib.suppress(ProcessLookupError):
                (leaf / "cgroup.procs").write_text(str(pid))
        control.write_text("+memory +pids")
    return base


def _pids(group: Path) -> list[int]:
    try:
        return [int(line) for line in (group / "cgroup.procs").read_text().split()]
    except OSError:
        return []


def _count(file: Path, name: str) -> int:
    with contextlib.suppress(OSError):
        for line in file.read_text().splitlines():
            key, _, value = line.partition(" ")
            if key == name:
                return int(value)
    return 0


def _remove(folder: Path, *, limit_s: float = 0.0) -> None:
    """A cgroup's folder goes once its last process has been waited for."""
    give_up = time.monotonic() + limit_s
    while True:
        try:
            for child in [child for child in folder.iterdir() if child.is_dir()]:
                child.rmdir()
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            if time.monotonic() > give_up:
                return
            time.sleep(0.01)
        else:
            return
