"""Builds and launch records that are kept: folders of files by kind and key, checked when read, bounded in size.

Safe between processes: an entry appears whole by one rename, is copied out before it is used, and is checked against
its checksums after copying, so that whoever evicts it meanwhile causes a miss and nothing else.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

_INDEX = "entry.json"
_ABANDONED_S = 86_400.0
_POLL_S = 0.05


def key_of(**parts: str | None) -> str:
    """One key for named parts; SHA-256 over their canonical JSON."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


class Cache:
    def __init__(self, root: Path, *, max_bytes: int) -> None:
        self._root = root
        self._max_bytes = max_bytes
        self._fresh = root / "new"
        self._locks = root / "locks"
        for folder in (self._fresh, self._locks):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _sweep(self._fresh)

    def get(self, kind: str, key: str, into: Path) -> bool:
        """Copy an entry's files into the folder `into`, which is made; False, and no folder, where there is none."""
        entry = self._entry(kind, key)
        try:
            index = json.loads((entry / _INDEX).read_text())
            into.mkdir(parents=True)
            for name, checksum in index.items():
                target = into / name
                shutil.copyfile(entry / name, target)
                if _checksum(target) != checksum:
                    raise ValueError(name)  # noqa: TRY301
            os.utime(entry / _INDEX)
        except FileNotFoundError:
            self._forget(entry, into)
            return False
        except (OSError, ValueError, AttributeError, TypeError):
            self._forget(entry, into)
            return False
        return True

    def put(self, kind: str, key: str, folder: Path) -> None:
        """Keep copies of the plain files directly in `folder`. A second entry of one key changes nothing."""
        fresh = Path(tempfile.mkdtemp(dir=self._fresh))
        index = {}
        for file in sorted(folder.iterdir()):
            if file.is_file() and not file.is_symlink():
                shutil.copyfile(file, fresh / file.name)
                index[file.name] = _checksum(fresh / file.name)
        (fresh / _INDEX).write_text(json.dumps(index))
        entry = self._entry(kind, key)
        entry.parent.mkdir(parents=True, exist_ok=True)
        try:
            fresh.rename(entry)
        except OSError:  # another process was first
            shutil.rmtree(fresh, ignore_errors=True)
        self._evict()

    @contextlib.contextmanager
    def lock(self, kind: str, key: str, *, check: Callable[[], None]) -> Iterator[None]:
        """Held by whoever makes an entry, so that nobody makes it twice. Waiting ends when `check` raises."""
        with (self._locks / f"{kind}-{key[:4]}").open("w") as file:
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    check()
                    time.sleep(_POLL_S)
            yield

    def _entry(self, kind: str, key: str) -> Path:
        return self._root / kind / key

    def _forget(self, entry: Path, into: Path) -> None:
        shutil.rmtree(into, ignore_errors=True)
        if entry.exists():
            self._discard(entry)

    def _discard(self, entry: Path) -> None:
        # Out of sight at once by a rename; then file by file.
        grave = self._fresh / f"gone-{entry.name[:16]}-{os.getpid()}-{time.monotonic_ns()}"
        with contextlib.suppress(OSError):
            entry.rename(grave)
            shutil.rmtree(grave, ignore_errors=True)

    def _evict(self) -> None:
        entries = []
        for entry in self._root.glob("*/*"):
            if entry.parent in (self._fresh, self._locks):
                continue
            with contextlib.suppress(OSError):
                used = (entry / _INDEX).stat().st_mtime
                entries.append((used, sum(file.stat().st_size for file in entry.iterdir()), entry))
        total = sum(size for _, size, _ in entries)
        for _, size, entry in sorted(entries, key=lambda item: item[0]):
            if total <= self._max_bytes:
                return
            self._discard(entry)
            total -= size


def _checksum(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _sweep(folder: Path) -> None:
    """What a killed process left half made."""
    for left in folder.iterdir():
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > _ABANDONED_S:
                shutil.rmtree(left, ignore_errors=True)
