"""An evaluation's private folder, and the way in which its children are run there."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from contract.bundle import Files, check_path
from worker.process import Check, Child, Finished, Limits, environment, run
from worker.sandbox import Sandbox

_PREFIX = "kernelgate-"
_LOCK = ".lock"


class Room:
    """Below `path`: one folder a purpose. Children see it as their home."""

    def __init__(self, path: Path, *, sandbox: Sandbox, check: Check) -> None:
        self.path = path
        self.sandbox = sandbox
        self.check = check

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
        writable: Sequence[Path] = (),
    ) -> Finished:
        """A child without a GPU, to its end."""
        prefix = self.sandbox.prefix(readable=(cwd,), writable=writable, gpu=False)
        return run(
            [*prefix, *argv],
            limits=Limits(seconds=limit_s, memory_bytes=memory_bytes, file_bytes=file_bytes),
            cwd=cwd,
            env=self._environment(),
            stdin=stdin,
            check=self.check,
        )

    def start(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        limit_s: float,
        stdin: bytes,
        variables: Mapping[str, str] = MappingProxyType({}),
        **limits: Any,
    ) -> Child:
        """A child that is talked to by lines; its caller says what of the sandbox goes before it."""
        return Child(
            argv,
            limits=Limits(seconds=limit_s, **limits),
            cwd=cwd,
            env={**self._environment(), **variables},
            stdin=stdin,
            check=self.check,
        )

    def _environment(self) -> dict[str, str]:
        home = self.folder("home")
        return environment(home=home, TRITON_CACHE_DIR=str(home / "triton"), PYTHONDONTWRITEBYTECODE="1")


@contextlib.contextmanager
def open_room(parent: Path, *, sandbox: Sandbox, check: Check) -> Iterator[Room]:
    """Made for one evaluation, and gone after it; rooms of workers that were killed are cleared away."""
    _clear_abandoned(parent)
    path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
    with (path / _LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield Room(path, sandbox=sandbox, check=check)
        finally:
            shutil.rmtree(path, ignore_errors=True)


def _clear_abandoned(parent: Path) -> None:
    """A room whose lock is free has lost its worker: the system drops a lock with its process."""
    for left in parent.glob(f"{_PREFIX}*/{_LOCK}"):
        with contextlib.suppress(OSError):
            if left.stat().st_uid != os.getuid():
                continue
            with left.open("r+") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left.parent, ignore_errors=True)
