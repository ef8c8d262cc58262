"""An evaluation's private folder, and the way in which its children are run there."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from contract.bundle import Files, check_path
from worker.process import Check, Child, DiskFull, Finished, Limits, environment, run
from worker.sandbox import Sandbox

_PREFIX = "kernelgate-"
_LOCK = ".lock"
_LOOK_EVERY_S = 0.25
_MAX_FILES = 20_000
# A disk with less than this left is full: the database, or the next job, may be on it.
FREE_BYTES = 1 << 30


class Room:
    """Below `path`: one folder a purpose. Children see it as their home."""

    def __init__(self, path: Path, *, sandbox: Sandbox, check: Check, disk_bytes: int) -> None:
        self.path = path
        self.sandbox = sandbox
        self.check = check
        self._disk_bytes = disk_bytes

    def folder(self, *names: str) -> Path:
        made = self.path.joinpath(*names)
        made.mkdir(parents=True, exist_ok=True)
        return made

    def write(self, files: Files, *names: str) -> Path:
        folder = self.folder(*names)
        for name, content in files.items():
            check_path(name)
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        return folder

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        limit_s: float,
        stdin: bytes = b"",
        memory_bytes: int = 0,
        file_bytes: int = 0,
        readable: Sequence[Path] = (),
        writable: Sequence[Path] = (),
    ) -> Finished:
        """A child without a GPU, to its end. One that fills the disk ends as if killed, with what it did in stderr.

        Of what it left in `writable`, plain files and folders stay."""
        prefix = self.sandbox.prefix(readable=(cwd, *readable), writable=writable, gpu=False)
        began = time.monotonic()
        try:
            return run(
                [*prefix, *argv],
                limits=Limits(seconds=limit_s, memory_bytes=memory_bytes, file_bytes=file_bytes),
                cwd=cwd,
                env=self._environment(),
                stdin=stdin,
                check=self._watching(writable),
                after=partial(only_plain, writable),
            )
        except DiskFull as error:
            return Finished(
                returncode=-signal.SIGKILL,
                stdout=b"",
                stderr=f"{error}\n".encode(),
                timed_out=False,
                seconds=time.monotonic() - began,
            )

    def start(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        limit_s: float,
        stdin: bytes,
        variables: Mapping[str, str] = MappingProxyType({}),
        writable: Sequence[Path] = (),
        **limits: Any,
    ) -> Child:
        """A child that is talked to by lines; its caller says what of the sandbox goes before it. Its lines raise
        DiskFull once it has written too much to `writable`, where plain files and folders stay once it has ended."""
        return Child(
            argv,
            limits=Limits(seconds=limit_s, **limits),
            cwd=cwd,
            env={**self._environment(), **variables},
            stdin=stdin,
            check=self._watching(writable),
            after=partial(only_plain, writable),
        )

    def _watching(self, folders: Sequence[Path]) -> Check:
        """`check`, and every now and then a look at the disk."""
        next_look = time.monotonic() + _LOOK_EVERY_S

        def check() -> None:
            nonlocal next_look
            self.check()
            if folders and time.monotonic() > next_look:
                self._look_at(folders)
                next_look = time.monotonic() + _LOOK_EVERY_S

        return check

    def _look_at(self, folders: Sequence[Path]) -> None:
        if (problem := _too_much(folders, self._disk_bytes)) is not None:
            raise DiskFull(f"it was ended: {problem}")
        if shutil.disk_usage(self.path).free < FREE_BYTES:
            raise DiskFull("it was ended: it left no room on the node's disk")

    def _environment(self) -> dict[str, str]:
        home = self.folder("home")
        return environment(home=home, TRITON_CACHE_DIR=str(home / "triton"), PYTHONDONTWRITEBYTECODE="1")


@contextlib.contextmanager
def open_room(parent: Path, *, sandbox: Sandbox, check: Check, disk_bytes: int = 4 << 30) -> Iterator[Room]:
    """Made for one evaluation, and gone after it; rooms of workers that were killed are cleared away.

    Raises DiskFull where the disk is full before anything has run. `disk_bytes`: what one child may write there.
    """
    _clear_abandoned(parent)
    if shutil.disk_usage(parent).free < FREE_BYTES:
        raise DiskFull(f"the node's disk is full: less than {FREE_BYTES >> 20} MiB are free in its work folder")
    path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
    with (path / _LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield Room(path, sandbox=sandbox, check=check, disk_bytes=disk_bytes)
        finally:
            _clear(path)


def only_plain(folders: Sequence[Path]) -> None:
    """Remove what is neither file nor folder: a link leads whoever reads or writes there next out of the room, a pipe
    keeps its reader for ever."""
    waiting = [str(folder) for folder in folders]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif not entry.is_file(follow_symlinks=False):
                    os.unlink(entry.path)  # noqa: PTH108 - as scandir gives it


def _clear_abandoned(parent: Path) -> None:
    """A room whose lock is free has lost its worker: the system drops a lock with its process."""
    for left in parent.glob(f"{_PREFIX}*/{_LOCK}"):
        with contextlib.suppress(OSError):
            if left.stat().st_uid != os.getuid():
                continue
            with left.open("r+") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _clear(left.parent)


def _clear(folder: Path) -> None:
    """With folders that are deeper than Python can follow, or that their maker may not read."""
    for command in (("rm", "-rf"), ("chmod", "-R", "u+rwX"), ("rm", "-rf")):
        if folder.exists():
            subprocess.run([*command, "--", str(folder)], capture_output=True, check=False)


def _too_much(folders: Sequence[Path], limit: int) -> str | None:
    """What is wrong with the size of these folders. One that can't be looked into is too much."""
    used, files, waiting = 0, 0, [str(folder) for folder in folders]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    status = entry.stat(follow_symlinks=False)
                    used, files = used + status.st_blocks * 512, files + 1
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except FileNotFoundError:
            continue
        except OSError as error:
            return f"a folder that it made can't be read ({error.strerror})"
        if used > limit:
            return f"it wrote more than {limit >> 20} MiB to disk"
        if files > _MAX_FILES:
            return f"it made more than {_MAX_FILES} files"
    return None
