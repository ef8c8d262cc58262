"""The arena's memory as torch tensors, on a CPU."""

from __future__ import annotations

import contextlib
import mmap
import sys
from typing import Any, Protocol

from contract.layout import DTYPE_BYTES, Placed

_MADV_POPULATE_WRITE = 23  # Linux 5.14


class Arena(Protocol):
    def attach(self) -> None: ...

    def detach(self) -> None:
        """No tensor may be in use any more."""

    def tensor(self, placed: Placed, slot_at: int) -> Any:
        """The tensor in the slot at this byte of the arena."""

    def populate(self, first: int, size: int) -> None:
        """Map the pages of [first, first + size) now."""


class CpuArena:
    def __init__(self, fd: int, size: int) -> None:
        self._fd, self._size = fd, size
        self._map: mmap.mmap | None = None

    def attach(self) -> None:
        if self._map is None:
            self._map = mmap.mmap(self._fd, self._size)

    def detach(self) -> None:
        # torch keeps the map itself alive as long as a tensor is; it is unmapped with the last one.
        self._map = None

    def tensor(self, placed: Placed, slot_at: int) -> Any:
        import torch  # noqa: PLC0415 - after main() has set it up

        dtype = {"fp16": torch.float16, "fp32": torch.float32}[placed.tensor.dtype]
        count = placed.tensor.bytes // DTYPE_BYTES[placed.tensor.dtype]
        flat = torch.frombuffer(self._map, dtype=dtype, count=count, offset=slot_at + placed.offset)
        return flat.view(placed.tensor.shape)

    def raw(self, at: int, size: int) -> Any:
        """Bytes of the arena, as a uint8 tensor."""
        import torch  # noqa: PLC0415 - after main() has set it up

        return torch.frombuffer(self._map, dtype=torch.uint8, count=size, offset=at)

    def populate(self, first: int, size: int) -> None:
        start = first // mmap.PAGESIZE * mmap.PAGESIZE
        if self._map is not None and sys.platform == "linux":
            with contextlib.suppress(OSError):
                self._map.madvise(_MADV_POPULATE_WRITE, start, first + size - start)
