"""`python -m worker.launch.baseline --device cpu|cuda --arena-fd N --arena-bytes B`: the vendor library, through torch.

Trusted host code, one process per evaluation (torch's import takes seconds), started early and kept. On CUDA a burst is
captured into one graph, so that no host time is between its calls; on a CPU the calls follow each other in a loop.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO, Protocol

from pydantic import TypeAdapter

from contract.layout import Placed, Role, SlotLayout
from contract.outcomes import Reason
from worker.launch.torch_arena import Arena, CpuArena
from worker.operators import operator_of
from worker.protocol import Attach, Detach, Go, LauncherCommand, LauncherReply, Load, Prepare

_PR_SET_PDEATHSIG = 1
Call = Callable[[Sequence[Any], Sequence[Any]], None]
Tensors = tuple[list[Any], list[Any]]


class Burst(Protocol):
    """Prepared calls."""

    def run(self) -> float | None:
        """Run them; microseconds by the device's events, None where the device has none."""


class LoopedBurst:
    def __init__(self, call: Call, tensors: list[Tensors]) -> None:
        self._call, self._tensors = call, tensors

    def run(self) -> float | None:
        for inputs, outputs in self._tensors:
            self._call(inputs, outputs)
        return None


class CapturedBurst:
    """One linear CUDA graph of all calls, between two events."""

    def __init__(self, torch: Any, call: Call, tensors: list[Tensors]) -> None:
        self._torch = torch
        self._graph = torch.cuda.CUDAGraph()
        self._stream = torch.cuda.Stream()
        with torch.cuda.graph(self._graph, stream=self._stream):
            for inputs, outputs in tensors:
                call(inputs, outputs)

    def run(self) -> float | None:
        cuda = self._torch.cuda
        began, ended = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        with cuda.stream(self._stream):
            began.record()
            self._graph.replay()
            ended.record()
        ended.synchronize()
        return float(began.elapsed_time(ended)) * 1e3


class Baseline:
    """The commands, one at a time. No tensor of the arena outlives `detach`."""

    def __init__(self, torch: Any, device: str, arena: Arena) -> None:
        self._torch, self._device, self._arena = torch, device, arena
        self._call: Call | None = None
        self._layout: SlotLayout | None = None
        self._burst: Burst | None = None

    def answer(self, command: Load | Attach | Detach | Prepare | Go) -> LauncherReply:
        if isinstance(command, Load):
            return self._load(command)
        if isinstance(command, Attach):
            self._arena.attach()
        elif isinstance(command, Detach):
            self._burst = None
            gc.collect()
            self._arena.detach()
        elif isinstance(command, Prepare):
            self._prepare(command.slots)
        elif self._burst is None:
            return LauncherReply(ok=False, reason=Reason.INTERNAL_ERROR, message="no calls are prepared")
        else:
            return LauncherReply(ok=True, elapsed_us=self._burst.run())
        return LauncherReply(ok=True)

    def _load(self, command: Load) -> LauncherReply:
        operator = operator_of(command.operator or "", command.operator_source)
        backend = command.backend or operator.backends[self._device][0]
        self._burst, self._layout = None, command.layout
        self._call = operator.baseline(self._torch, backend, command.dims)
        if self._call is None:
            return _lacks(backend, "not implemented")
        # On tensors of its own first: whether the backend has the case, and its one-time allocations outside capture.
        inputs, outputs = self._own_tensors(command.layout)
        try:
            for _ in range(2):
                self._call(inputs, outputs)
            if self._device == "cuda":
                self._torch.cuda.synchronize()
        except RuntimeError as error:
            self._call = None
            if isinstance(error, getattr(self._torch, "OutOfMemoryError", ())):
                return LauncherReply(ok=False, reason=Reason.OUT_OF_MEMORY, message=str(error)[:2000])
            return _lacks(backend, str(error)[:2000])
        del inputs, outputs
        if self._device == "cuda":
            self._torch.cuda.empty_cache()
        name, libraries = describe(self._torch, self._device, backend)
        return LauncherReply(ok=True, baseline=name, libraries=libraries)

    def _own_tensors(self, layout: SlotLayout) -> Tensors:
        def make(placed: Placed) -> Any:
            dtype = {"fp16": self._torch.float16, "fp32": self._torch.float32}[placed.tensor.dtype]
            return self._torch.zeros(placed.tensor.shape, dtype=dtype, device=self._device)

        return _by_role(layout, make)

    def _prepare(self, slots: Sequence[int]) -> None:
        if self._layout is None or self._call is None:
            raise RuntimeError("no case is loaded")
        layout, self._burst = self._layout, None
        tensors = [
            _by_role(layout, lambda placed, at=slot * layout.slot_bytes: self._arena.tensor(placed, at))  # type: ignore[misc]
            for slot in slots
        ]
        if self._device == "cuda":
            self._burst = CapturedBurst(self._torch, self._call, tensors)
        else:
            for slot in slots:
                self._arena.populate(slot * layout.slot_bytes, layout.slot_bytes)
            self._burst = LoopedBurst(self._call, tensors)


def _by_role(layout: SlotLayout, make: Callable[[Placed], Any]) -> Tensors:
    inputs = [make(placed) for placed in layout.tensors if placed.tensor.role is Role.INPUT]
    return inputs, [make(placed) for placed in layout.tensors if placed.tensor.role is Role.OUTPUT]


def _lacks(backend: str, why: str) -> LauncherReply:
    return LauncherReply(ok=False, reason=Reason.CASE_REFUSED, message=f"{backend} lacks this case: {why}")


def describe(torch: Any, device: str, backend: str) -> tuple[str, dict[str, str]]:
    """The baseline's name with its version, and the versions of all libraries that it stands on."""
    libraries = {"torch": torch.__version__}
    if device == "cpu":
        blas = "MKL" if torch.backends.mkl.is_available() else "BLAS"
        libraries["threads"] = str(torch.get_num_threads())
        return f"torch {torch.__version__} on the CPU ({blas}, {torch.get_num_threads()} threads)", libraries
    libraries["cuda"] = str(torch.version.cuda)
    libraries["cudnn"] = _dotted_cudnn(torch.backends.cudnn.version())
    if backend == "cublas":
        libraries["cublas"] = _cublas_version(torch)
        return f"cuBLAS {libraries['cublas']} (torch {torch.__version__})", libraries
    if backend == "cudnn":
        return f"SDPA cuDNN {libraries['cudnn']} (torch {torch.__version__})", libraries
    if backend == "flash":
        return f"SDPA {backend} (torch {torch.__version__})", libraries
    return f"{backend} (torch {torch.__version__})", libraries


def _dotted_cudnn(version: int | None) -> str:
    return "none" if version is None else f"{version // 10_000}.{version // 100 % 100}.{version % 100}"


def _cublas_version(torch: Any) -> str:
    """What the loaded library says of itself; torch has no call for it."""
    for name in (f"libcublas.so.{str(torch.version.cuda).split('.', maxsplit=1)[0]}", "libcublas.so"):
        try:
            ask = ctypes.CDLL(name).cublasGetProperty
        except (OSError, AttributeError):
            continue
        parts = []
        for which in range(3):  # MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL
            value = ctypes.c_int()
            if ask(which, ctypes.byref(value)):
                return "unknown"
            parts.append(str(value.value))
        return ".".join(parts)
    return "unknown"


def _arena(device: str, fd: int, size: int) -> Arena:
    """Before torch is imported: on CUDA the arena's address range has to be reserved first."""
    if device == "cpu":
        return CpuArena(fd, size)
    from worker.launch.torch_cuda_arena import CudaArena  # noqa: PLC0415 - needs a driver

    return CudaArena(fd, size)


def _exact_arithmetic(torch: Any) -> None:
    """What is asked of the kernels is asked of the baseline: fp32 sums of fp16 products, no TF32."""
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.set_grad_enabled(False)


def _channel() -> tuple[BinaryIO, BinaryIO]:
    """The protocol's pipes, off 0 and 1: what libraries print goes to stderr."""
    commands, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb", buffering=0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return commands, answers


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m worker.launch.baseline")
    parser.add_argument("--device", choices=("cpu", "cuda"), required=True)
    parser.add_argument("--arena-fd", type=int, required=True)
    parser.add_argument("--arena-bytes", type=int, required=True)
    arguments = parser.parse_args()
    if sys.platform == "linux":
        # A stopped process would not notice that its judge is gone.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    commands, answers = _channel()
    arena = _arena(arguments.device, arguments.arena_fd, arguments.arena_bytes)
    import torch  # noqa: PLC0415 - after the arena's address range is reserved

    _exact_arithmetic(torch)
    gc.freeze()  # what the imports left is never garbage: a collection need not look at it
    baseline = Baseline(torch, arguments.device, arena)
    parse: TypeAdapter[Load | Attach | Detach | Prepare | Go] = TypeAdapter(LauncherCommand)
    for line in commands:
        number, _, command = line.partition(b" ")
        try:
            reply = baseline.answer(parse.validate_json(command))
        except Exception as error:  # noqa: BLE001 - the judge is told, whatever it is
            reply = LauncherReply(
                ok=False, reason=Reason.BASELINE_FAILED, message=f"{type(error).__name__}: {error}"[:2000]
            )
        answers.write(number + b" " + reply.model_dump_json().encode() + b"\n")


if __name__ == "__main__":
    main()
