"""What a recorder needs of a language: a workspace size, scratch memory, and a call that can be captured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from contract.layout import ALIGNMENT, SlotLayout, TensorSpec
from contract.names import Digest
from worker.record.raw import Window

Tensors = tuple[TensorSpec, ...]
Dims = Mapping[str, int]


class Source(Protocol):
    """One loaded submission. Its methods raise RefusedError where the submission is at fault."""

    stream: Any

    def workspace_bytes(self, tensors: Tensors, dims: Dims) -> int: ...

    def allocate(self, size: int) -> int:
        """Address of `size` bytes of scratch memory, aligned to at least 256 bytes; frees what it gave before."""

    def warm_up(self, layout: SlotLayout, window: Window, dims: Dims) -> None:
        """Whatever a first call does once (compiling, tuning), with random inputs and outside of capture."""

    def call(self, layout: SlotLayout, window: Window, dims: Dims) -> None:
        """One call on the slot's tensors, onto `stream`."""

    def find_cubin(self, function: Any, name: str) -> Digest | None: ...

    def cubin_path(self, digest: Digest, out_dir: Path) -> str:
        """Where the cubin lies; written into `out_dir` if it lay nowhere yet."""


def scratch_windows(layout: SlotLayout, allocate: Callable[[int], int]) -> tuple[Window, Window]:
    """Two slots beside each other, both at odd multiples of ALIGNMENT.

    Host code that asks sees the alignment that every slot of the arena has, and no better one.
    """
    step = 2 * ALIGNMENT
    address = allocate(2 * layout.slot_bytes + 3 * step)
    first = -(-address // step) * step + ALIGNMENT
    second = -(-(first + layout.slot_bytes) // step) * step + ALIGNMENT
    return Window(first, layout.slot_bytes), Window(second, layout.slot_bytes)
