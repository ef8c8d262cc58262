"""A Triton module: its launcher runs once outside of capture, where it compiles and tunes, and then under capture."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from cuda.bindings import driver as cuda
from triton.compiler.errors import CompilationError
from triton.runtime.driver import driver
from triton.runtime.errors import OutOfResources, PTXASError

from contract.layout import Role, SlotLayout, TensorSpec, by_role
from contract.names import Digest
from contract.outcomes import Reason
from worker.record.raw import RefusedError, Window
from worker.record.source import Dims, Tensors

_TORCH = {"fp16": torch.float16, "fp32": torch.float32}


class TritonSource:
    def __init__(self, path: Path, entry: str) -> None:
        torch.cuda.init()
        self._torch_stream = torch.cuda.Stream()
        self.stream = cuda.CUstream(self._torch_stream.cuda_stream)
        self._scratch = torch.empty(0, dtype=torch.uint8, device="cuda")
        self._images: dict[Digest, bytes] = {}
        self._by_function: dict[int, Digest] = {}
        self._watch_loads()
        self._module = _import(path)
        self._entry_name = entry
        self._entry = getattr(self._module, entry, None)
        if not callable(self._entry):
            raise RefusedError(Reason.ENTRY_MISSING, f"{path.name} has no function {entry}")

    def workspace_bytes(self, tensors: Tensors, dims: Dims) -> int:
        ask = getattr(self._module, "workspace_bytes", None)
        if ask is None:
            return 0
        metas = [(spec, torch.empty(spec.shape, dtype=_TORCH[spec.dtype], device="meta")) for spec in tensors]
        return int(_guarded("workspace_bytes", lambda: ask(*by_role(metas), dict(dims))))

    def allocate(self, size: int) -> int:
        self._scratch = torch.empty(0, dtype=torch.uint8, device="cuda")
        torch.cuda.empty_cache()
        try:
            self._scratch = torch.empty(size, dtype=torch.uint8, device="cuda")
        except torch.OutOfMemoryError as error:
            raise RefusedError(
                Reason.NOT_RECORDABLE, f"no {size} bytes of memory for two calls' tensors and workspace"
            ) from error
        return int(self._scratch.data_ptr())

    def warm_up(self, layout: SlotLayout, window: Window, dims: Dims) -> None:
        with torch.cuda.stream(self._torch_stream):
            for spec, tensor in self._tensors(layout, window):
                if spec.role is Role.INPUT:
                    tensor.normal_()
                else:
                    tensor.zero_()
            _guarded(self._entry_name, lambda: self._run_to_end(layout, window, dims), cuda_error=Reason.CRASHED)

    def call(self, layout: SlotLayout, window: Window, dims: Dims) -> None:
        with torch.cuda.stream(self._torch_stream):
            _guarded(self._entry_name, lambda: self._run(layout, window, dims))

    def find_cubin(self, function: Any, name: str) -> Digest | None:
        """By the function that Triton loaded: autotuned variants share a name."""
        del name
        return self._by_function.get(int(function))

    def cubin_path(self, digest: Digest, out_dir: Path) -> str:
        path = out_dir / f"{digest}.cubin"
        if not path.exists():
            path.write_bytes(self._images[digest])
        return str(path)

    def _run(self, layout: SlotLayout, window: Window, dims: Dims) -> None:
        inputs, outputs = by_role(self._tensors(layout, window))
        workspace = None
        if layout.workspace_bytes:
            workspace = self._bytes(window.base + layout.workspace_offset, layout.workspace_bytes)
        self._entry(inputs, outputs, dict(dims), workspace)  # type: ignore[misc]  # checked callable

    def _run_to_end(self, layout: SlotLayout, window: Window, dims: Dims) -> None:
        self._run(layout, window, dims)
        self._torch_stream.synchronize()

    def _tensors(self, layout: SlotLayout, window: Window) -> list[tuple[TensorSpec, Any]]:
        return [
            (
                placed.tensor,
                self._bytes(window.base + placed.offset, placed.tensor.bytes)
                .view(_TORCH[placed.tensor.dtype])
                .view(placed.tensor.shape),
            )
            for placed in layout.tensors
        ]

    def _bytes(self, address: int, size: int) -> Any:
        first = address - self._scratch.data_ptr()
        return self._scratch[first : first + size]

    def _watch_loads(self) -> None:
        """Note which cubin each loaded function comes from: Triton's one place that loads them tells us."""
        utils = driver.active.utils
        load = utils.load_binary

        def load_and_note(name: str, image: bytes, *rest: Any) -> Any:
            loaded = load(name, image, *rest)
            digest = hashlib.sha256(image).hexdigest()
            self._images[digest] = image
            self._by_function[int(loaded[1])] = digest
            return loaded

        utils.load_binary = load_and_note


def _import(path: Path) -> ModuleType:
    """The module, with its folder last on the path: no file of a submission stands in for torch or Triton."""
    spec = importlib.util.spec_from_file_location("submission", path)
    if spec is None or spec.loader is None:
        raise RefusedError(Reason.ENTRY_MISSING, f"{path.name} is no Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules["submission"] = module
    sys.path.append(str(path.parent))
    loader = spec.loader
    _guarded(path.name, lambda: loader.exec_module(module), reason=Reason.COMPILE_ERROR)
    return module


def _guarded(
    what: str,
    act: Callable[[], Any],
    *,
    reason: Reason = Reason.RETURNED_ERROR,
    cuda_error: Reason = Reason.RETURNED_ERROR,
) -> Any:
    """The result of a submission's function; what it raises becomes a RefusedError."""
    try:
        return act()
    except RefusedError:
        raise
    except (CompilationError, PTXASError) as error:
        raise RefusedError(Reason.COMPILE_ERROR, f"{what}: {error}") from error
    except OutOfResources as error:
        raise RefusedError(Reason.NOT_RECORDABLE, f"{what}: {error}") from error
    except Exception as error:
        found = cuda_error if "CUDA" in f"{type(error).__name__} {error}" else reason
        raise RefusedError(found, f"{what} raised {type(error).__name__}: {error}") from error
