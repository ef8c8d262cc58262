"""A .cu built into a shared object: its C entry point, called under capture."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cuda.bindings import driver as cuda

from contract.layout import SlotLayout
from contract.names import Digest
from contract.outcomes import Reason
from worker.gpu.driver import CudaError, check, error_of, new_stream
from worker.inspect.elf import Elf, ElfError
from worker.record.abi import build_call
from worker.record.raw import RefusedError, Window
from worker.record.source import Dims, Tensors

_WORKSPACE_SYMBOL = "kernelgate_workspace_bytes"


class CudaSource:
    def __init__(self, library: Path, entry: str, cubins: Mapping[Digest, str]) -> None:
        self.stream = new_stream()
        self._scratch: Any = None
        self._cubins = dict(cubins)
        self._digests = _functions_of(cubins)
        self._entry_name = entry
        try:
            self._library = ctypes.CDLL(str(library))
        except OSError as error:
            raise RefusedError(Reason.ENTRY_MISSING, f"the library can't be loaded: {error}") from error
        try:
            self._entry = self._library[entry]
        except AttributeError as error:
            raise RefusedError(Reason.ENTRY_MISSING, f'the library has no extern "C" {entry}') from error
        self._entry.restype = ctypes.c_int

    def workspace_bytes(self, tensors: Tensors, dims: Dims) -> int:
        try:
            ask = self._library[_WORKSPACE_SYMBOL]
        except AttributeError:
            return 0
        ask.restype = ctypes.c_size_t
        built = build_call([(spec, 0) for spec in tensors], dims)
        return int(ask(ctypes.byref(built.call)))

    def allocate(self, size: int) -> int:
        if self._scratch is not None:
            check(cuda.cuMemFree(self._scratch))
            self._scratch = None
        try:
            self._scratch = check(cuda.cuMemAlloc(size))
        except CudaError as error:
            raise RefusedError(
                Reason.NOT_RECORDABLE, f"no {size} bytes of memory for two calls' tensors and workspace: {error}"
            ) from error
        return int(self._scratch)

    def warm_up(self, layout: SlotLayout, window: Window, dims: Dims) -> None:
        """Nothing: a library is compiled already, and under capture nothing runs."""

    def call(self, layout: SlotLayout, window: Window, dims: Dims) -> None:
        built = build_call(
            [(placed.tensor, window.base + placed.offset) for placed in layout.tensors],
            dims,
            workspace=window.base + layout.workspace_offset if layout.workspace_bytes else 0,
            workspace_bytes=layout.workspace_bytes,
            stream=int(self.stream),
        )
        code = int(self._entry(ctypes.byref(built.call)))
        if code:
            raise RefusedError(Reason.RETURNED_ERROR, f"{self._entry_name} returned {code}{_as_cuda(code)}")

    def find_cubin(self, function: Any, name: str) -> Digest | None:
        del function
        found = self._digests.get(name, ())
        if len(found) > 1:
            raise RefusedError(Reason.NOT_RECORDABLE, f"{name} is in more than one cubin: give it a name of its own")
        return found[0] if found else None

    def cubin_path(self, digest: Digest, out_dir: Path) -> str:
        del out_dir
        return self._cubins[digest]


def _functions_of(cubins: Mapping[Digest, str]) -> dict[str, list[Digest]]:
    found: dict[str, list[Digest]] = {}
    for digest in sorted(cubins):
        try:
            symbols = Elf(Path(cubins[digest]).read_bytes()).symbols(".symtab")
        except ElfError as error:
            raise RefusedError(Reason.NOT_RECORDABLE, f"{cubins[digest]}: {error}") from error
        for name in {symbol.name for symbol in symbols if symbol.is_defined_function}:
            found.setdefault(name, []).append(digest)
    return found


def _as_cuda(code: int) -> str:
    """What the code would mean as a cudaError_t, which most entry points return; the numbers are the driver's."""
    try:
        known = cuda.CUresult(code)
    except ValueError:
        return ""
    return f" (as a CUDA error: {error_of(known)})"
