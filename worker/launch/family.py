"""Processes that a process started, by /proc. Empty where there is no /proc."""

from __future__ import annotations

import ctypes
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """From now on a descendant whose parent ended becomes this process's child: none can slip away by forking twice."""
    try:
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    except (OSError, AttributeError):  # not Linux
        return


def children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        threads = [entry.name for entry in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return found
    for thread in threads:
        try:
            found += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_text(encoding="ascii").split())
        except OSError:
            continue
    return found


def descendants(pid: int) -> list[int]:
    found: list[int] = []
    waiting = children(pid)
    while waiting:
        child = waiting.pop()
        found.append(child)
        waiting += children(child)
    return found


def running(pid: int) -> bool:
    """Whether any thread of the process runs or waits for a core, now."""
    try:
        threads = [entry.name for entry in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return False
    for thread in threads:
        try:
            stat = Path(f"/proc/{pid}/task/{thread}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        # The name before the state may hold anything, parentheses too.
        if stat.rpartition(")")[2].split()[0] == "R":
            return True
    return False
