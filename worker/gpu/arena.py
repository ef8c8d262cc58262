"""The arena: physical memory that the judge creates and launchers map, at one address that each reserves first.

Only its mapping differs from plain device memory. A process reserves the address range before torch, CuPy or a
submission's modules can take it; who isn't on turn keeps the range but no mapping, so that it can't reach the memory.
"""

from __future__ import annotations

import os
from typing import Any

from cuda.bindings import driver as cuda

from worker.gpu.driver import check

# Far from where the driver and the C library place their own mappings on x86-64 and arm64 Linux.
ARENA_ADDRESS = 0x6000_0000_0000

_FD = cuda.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR


class AddressTakenError(RuntimeError):
    """Something else lies where the arena has to be."""


class ArenaWindow:
    """The reserved address range of `size` bytes at ARENA_ADDRESS; `size` is a multiple of `granularity()`."""

    def __init__(self, size: int) -> None:
        self.bytes = size
        self._mapped = False
        address = check(cuda.cuMemAddressReserve(size, 0, ARENA_ADDRESS, 0))
        if int(address) != ARENA_ADDRESS:
            check(cuda.cuMemAddressFree(address, size))
            raise AddressTakenError(f"the arena's address {ARENA_ADDRESS:#x} is taken: reserve it before other memory")
        self._address = address

    def map(self, handle: Any, size: int | None = None) -> None:
        mapped = size or self.bytes
        check(cuda.cuMemMap(self._address, mapped, 0, handle, 0))
        access = cuda.CUmemAccessDesc()
        access.location.type = cuda.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        access.location.id = int(check(cuda.cuCtxGetDevice()))
        access.flags = cuda.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        check(cuda.cuMemSetAccess(self._address, mapped, [access], 1))
        self._mapped_bytes = mapped
        self._mapped = True

    def unmap(self) -> None:
        if self._mapped:
            self._mapped = False
            check(cuda.cuMemUnmap(self._address, self._mapped_bytes))


class ImportedArena:
    """A launcher's view of the judge's arena. Not thread-safe; the context must be current."""

    def __init__(self, fd: int, size: int) -> None:
        self._window = ArenaWindow(size)
        self._fd = fd
        self._handle: Any = None

    def attach(self) -> None:
        if self._handle is None:
            self._handle = check(cuda.cuMemImportFromShareableHandle(self._fd, _FD))
            self._window.map(self._handle)

    def detach(self) -> None:
        """Unmap, and let go of the memory: while detached this process holds no reference to it but the descriptor."""
        if self._handle is not None:
            handle, self._handle = self._handle, None
            self._window.unmap()
            check(cuda.cuMemRelease(handle))


class CreatedArena:
    """The judge's arena: created, exported as `fd`, and mapped until closed. `bytes` is `size` rounded up."""

    def __init__(self, window: ArenaWindow, size: int) -> None:
        unit = granularity()
        self.bytes = -(-size // unit) * unit
        if self.bytes > window.bytes:
            raise ValueError(f"an arena of {self.bytes} bytes does not fit the reserved {window.bytes}")
        self._window = window
        self._handle = check(cuda.cuMemCreate(self.bytes, _properties(), 0))
        try:
            window.map(self._handle, self.bytes)
            self.fd = int(check(cuda.cuMemExportToShareableHandle(self._handle, _FD, 0)))
        except BaseException:
            window.unmap()
            cuda.cuMemRelease(self._handle)
            raise

    def close(self) -> None:
        if self._handle is not None:
            handle, self._handle = self._handle, None
            os.close(self.fd)
            self._window.unmap()
            check(cuda.cuMemRelease(handle))


def granularity() -> int:
    """Arena sizes are multiples of this many bytes."""
    minimum = cuda.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM
    return int(check(cuda.cuMemGetAllocationGranularity(_properties(), minimum)))


def _properties() -> Any:
    properties = cuda.CUmemAllocationProp()
    properties.type = cuda.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.location.type = cuda.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    properties.location.id = int(check(cuda.cuCtxGetDevice()))
    properties.requestedHandleTypes = _FD
    return properties
