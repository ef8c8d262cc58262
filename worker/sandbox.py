"""The room in which submitted code runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol


class Sandbox(Protocol):
    """`isolates` goes into every result's environment, as `sandbox`."""

    isolates: bool

    def prefix(self, *, readable: Sequence[Path], writable: Sequence[Path], gpu: bool) -> tuple[str, ...]:
        """What goes before a command so that it sees these paths (beside the system's and the toolchains') and,
        with `gpu`, the node's device, and nothing else."""


class NoSandbox:
    """Runs commands as they are, with the worker's own rights: for code that is trusted, and it says so."""

    isolates = False

    def prefix(self, *, readable: Sequence[Path], writable: Sequence[Path], gpu: bool) -> tuple[str, ...]:
        del readable, writable, gpu
        return ()
