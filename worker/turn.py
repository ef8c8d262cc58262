"""Whose turn it is on a node: one evaluation at a time, and in between what an idle node does for itself."""

from __future__ import annotations

import contextlib
import fcntl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from worker.settings import WorkerSettings

_LOOK_EVERY_S = 0.1


@contextlib.contextmanager
def taken(settings: WorkerSettings) -> Iterator[None]:
    """Wait for the node, whatever a restarted worker's predecessor still does. Who is idle meanwhile is told to end."""
    settings.cache_dir.mkdir(parents=True, exist_ok=True)
    with settings.lock_file.open("w") as lock:
        try:
            while not _try(lock):
                _wanted(settings).touch()
                time.sleep(_LOOK_EVERY_S)
        finally:
            _wanted(settings).unlink(missing_ok=True)
        yield
        settings.lock_file.touch()


@contextlib.contextmanager
def taken_if_idle(settings: WorkerSettings, *, since_s: float) -> Iterator[bool]:
    """Whether nobody has the node, nor had it in the last `since_s` seconds; then it is taken."""
    settings.cache_dir.mkdir(parents=True, exist_ok=True)
    with settings.lock_file.open("a") as lock:
        quiet = time.time() - settings.lock_file.stat().st_mtime >= since_s
        yield quiet and _try(lock)


def busy(settings: WorkerSettings) -> bool:
    """Whether someone has the node."""
    with contextlib.suppress(FileNotFoundError), settings.lock_file.open() as lock:
        return not _try(lock)
    return False


def wanted(settings: WorkerSettings) -> bool:
    """Whether an evaluation waits for the node."""
    return _wanted(settings).exists()


def _wanted(settings: WorkerSettings) -> Path:
    return settings.lock_file.with_suffix(".wanted")


def _try(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
