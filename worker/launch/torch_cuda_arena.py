"""The arena as torch tensors on CUDA. Made before torch is imported: it reserves the arena's address range."""

from __future__ import annotations

from typing import Any

from contract.layout import Placed
from worker.gpu.arena import ARENA_ADDRESS, ImportedArena
from worker.gpu.driver import open_context

_TYPESTR = {"fp16": "<f2", "fp32": "<f4"}


class _Memory:
    """What torch.as_tensor takes for device memory that isn't its own (CUDA array interface, version 3)."""

    def __init__(self, address: int, shape: tuple[int, ...], typestr: str) -> None:
        self.__cuda_array_interface__ = {
            "data": (address, False),
            "shape": shape,
            "typestr": typestr,
            "strides": None,
            "version": 3,
        }


class CudaArena:
    def __init__(self, fd: int, size: int) -> None:
        open_context()
        self._imported = ImportedArena(fd, size)

    def attach(self) -> None:
        self._imported.attach()

    def detach(self) -> None:
        self._imported.detach()

    def tensor(self, placed: Placed, slot_at: int) -> Any:
        import torch  # noqa: PLC0415 - after the range is reserved

        address = ARENA_ADDRESS + slot_at + placed.offset
        memory = _Memory(address, placed.tensor.shape, _TYPESTR[placed.tensor.dtype])
        return torch.as_tensor(memory, device="cuda")

    def populate(self, first: int, size: int) -> None:
        """Device memory is mapped as a whole."""
