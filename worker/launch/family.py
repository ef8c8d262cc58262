"""Processes that a process started, by /proc. Empty where there is no /proc."""

from __future__ import annotations

import ctypes
import os

_PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 4, 36
_STOPPED = frozenset("TtZX")  # stopped, traced, or ended and not yet gone
_ENDED = frozenset("ZX")
_adopts = False


def adopt_orphans() -> None:
    """From now on a descendant whose parent ended becomes this process's child: none can slip away by forking twice."""
    global _adopts  # noqa: PLW0603 - a property of the process
    _adopts = _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def hide_memory() -> None:
    """Keep other processes of the same user from this one's memory and descriptors (ptrace, /proc/<pid>/mem, fd)."""
    _prctl(_PR_SET_DUMPABLE, 0)


def adopted(known: set[int]) -> list[int]:
    """Children that this process never started itself; `known` are those it did."""
    return [pid for pid in children(os.getpid()) if pid not in known] if _adopts else []


def children(pid: int) -> list[int]:
    found: list[int] = []
    for thread in _threads(pid):
        found += map(int, _read(f"/proc/{pid}/task/{thread}/children").split())
    return found


def descendants(pid: int) -> list[int]:
    found: list[int] = []
    waiting = children(pid)
    while waiting:
        child = waiting.pop()
        found.append(child)
        waiting += children(child)
    return found


def states(pid: int) -> list[str]:
    """The state of each of its threads: R, S, D, T, Z, ..."""
    stats = (_read(f"/proc/{pid}/task/{thread}/stat") for thread in _threads(pid))
    # The name before the state may hold anything, parentheses too.
    return [stat.rpartition(b")")[2].split(None, 1)[0].decode() for stat in stats if stat]


def running(pid: int) -> bool:
    """Whether any thread of the process runs or waits for a core, now."""
    return "R" in states(pid)


def stopped(pid: int) -> bool:
    """Whether none of its threads can run before it is told to go on."""
    return _STOPPED.issuperset(states(pid))


def live_threads(pid: int) -> int:
    return sum(state not in _ENDED for state in states(pid))


def _threads(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - called several times a burst
    except OSError:
        return []


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - called several times a burst
            return file.read()
    except OSError:
        return b""


def _prctl(option: int, value: int) -> bool:
    try:
        return bool(ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0)
    except (OSError, AttributeError):  # not Linux
        return False
