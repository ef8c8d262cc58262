"""Compiles a Triton launcher's kernels for an architecture without having its card. Run as a process of its own.

The launcher is called with tensors that have no memory (torch's `meta` device), under a driver that names the wanted
architecture; launches compile and stop there. Autotuning takes the first configuration that fits the architecture.
"""

from __future__ import annotations

import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
from triton.backends.compiler import GPUTarget
from triton.compiler.errors import CompileTimeAssertionFailure
from triton.runtime.autotuner import Autotuner
from triton.runtime.driver import driver
from triton.runtime.errors import OutOfResources, PTXASError
from triton.runtime.jit import JITFunction

from contract.layout import Role
from worker.inspect.limits import LIMITS
from worker.toolchains.triton_job import CompileCase, CompiledFunction, CompileJob, CompileResult


def capability_of(architecture: str) -> int:
    """90 for sm_90a. Triton adds the `a` where it belongs."""
    return int("".join(char for char in architecture if char.isdigit()))


class _StubUtils:
    """Answers what launchers ask of a device before they launch."""

    def __init__(self, *, shared_bytes: int) -> None:
        self._shared_bytes = shared_bytes

    def get_device_properties(self, _device: int) -> dict[str, int]:
        # The number of multiprocessors only sizes persistent grids: nothing is launched.
        return {
            "max_shared_mem": self._shared_bytes,
            "multiprocessor_count": 132,
            "max_num_regs": 65_536,
            "warpSize": 32,
            "sm_clock_rate": 1_000_000,
            "mem_clock_rate": 1_000_000,
            "mem_bus_width": 1024,
        }


class _StubDriver:
    """Triton's driver interface for a card that isn't there."""

    launcher_cls = None

    def __init__(self, *, capability: int, shared_bytes: int) -> None:
        self._capability = capability
        self.utils = _StubUtils(shared_bytes=shared_bytes)

    def get_current_target(self) -> Any:
        return GPUTarget("cuda", self._capability, 32)

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, _device: int) -> None: ...

    def get_current_stream(self, _device: int | None = None) -> int:
        return 0

    def get_device_capability(self, _device: int | None = None) -> tuple[int, int]:
        return divmod(self._capability, 10)

    def get_active_torch_device(self) -> Any:
        return torch.device("meta")

    def is_active(self) -> bool:
        return True


def _pretend(capability: int, shared_bytes: int) -> None:
    """Make torch and Triton believe in one card of this capability."""
    driver.set_active(_StubDriver(capability=capability, shared_bytes=shared_bytes))
    properties = SimpleNamespace(
        name="none",
        major=capability // 10,
        minor=capability % 10,
        multi_processor_count=132,
        shared_memory_per_block_optin=shared_bytes,
        warp_size=32,
    )
    torch.cuda.is_available = lambda: True
    torch.cuda.current_device = lambda: 0
    torch.cuda.device_count = lambda: 1
    torch.cuda.get_device_capability = lambda _device=None: divmod(capability, 10)
    torch.cuda.get_device_properties = lambda _device=None: properties


class _Collector:
    """Turns every launch into a compilation and keeps what came out."""

    def __init__(self, *, out: Path, shared_limit: int) -> None:
        self._out = out
        self._shared_limit = shared_limit
        self.functions: dict[str, CompiledFunction] = {}

    def install(self) -> None:
        compile_only = JITFunction.run
        collector = self

        def run(function: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
            del warmup
            kernel = compile_only(function, *args, grid=grid, warmup=True, **kwargs)
            collector._keep(kernel)
            return kernel

        def first_that_fits(tuner: Any, *args: Any, config: Any, **meta: Any) -> list[float]:
            # Autotuner.run calls this for each configuration, with one `nargs` for all, and takes the least.
            if getattr(tuner, "_found_for", None) is tuner.nargs:
                return [float("inf")] * 3
            kept = dict(collector.functions)
            try:
                kernel = tuner.fn.run(*args, **{**meta, **config.all_kwargs()})
            except (OutOfResources, CompileTimeAssertionFailure, PTXASError):
                return [float("inf")] * 3
            finally:
                collector.functions = kept
            if kernel.metadata.shared > collector._shared_limit:
                return [1e9] * 3
            tuner._found_for = tuner.nargs  # noqa: SLF001 - a mark of this function's own
            return [1.0] * 3

        JITFunction.run = run
        Autotuner._bench = first_that_fits  # noqa: SLF001 - the one place where Triton lets a choice be made

    def _keep(self, kernel: Any) -> None:
        name = f"{kernel.hash}.code"
        if name not in self.functions:
            (self._out / name).write_bytes(kernel.asm["cubin"])
            self.functions[name] = CompiledFunction(
                function=kernel.name,
                cubin=name,
                shared_bytes=kernel.metadata.shared,
                threads=kernel.metadata.num_warps * 32,
            )


def _load(source: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("kernelgate_revision", source)
    assert spec is not None and spec.loader is not None  # noqa: S101, PT018 - a .py file has both
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _call(entry: Any, case: CompileCase) -> None:
    dtypes = {"fp16": torch.float16, "fp32": torch.float32}
    made: dict[Role, list[Any]] = {Role.INPUT: [], Role.OUTPUT: []}
    for spec in case.tensors:
        made[spec.role].append(torch.empty(spec.shape, dtype=dtypes[spec.dtype], device="meta"))
    workspace = torch.empty(1 << 20, dtype=torch.uint8, device="meta")
    entry(tuple(made[Role.INPUT]), tuple(made[Role.OUTPUT]), dict(case.dims), workspace)


def compile_all(job: CompileJob) -> CompileResult:
    shared = LIMITS[job.architecture].shared_bytes_a_block
    _pretend(capability_of(job.architecture), shared)
    collector = _Collector(out=Path(job.out), shared_limit=shared)
    collector.install()
    case_id = "import"
    try:
        entry = getattr(_load(Path(job.source)), job.entry)
        for case in job.cases:
            case_id = case.case
            _call(entry, case)
    except Exception as error:  # noqa: BLE001 - whatever the submission raises is its compile error
        return CompileResult(error=f"{case_id}: {_last_words(error, Path(job.source))}")
    return CompileResult(functions=tuple(collector.functions.values()))


def _last_words(error: BaseException, source: Path) -> str:
    """The error, and where in the submission it arose; the frames between are Triton's and this program's."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) == source]
    places = [f"{source.name}:{frame.lineno} in {frame.name}: {frame.line}" for frame in frames]
    said = "".join(traceback.format_exception_only(error)).strip()
    return "\n".join([*places[-10:], said])[-6000:]


def main() -> None:
    job = CompileJob.model_validate_json(sys.stdin.buffer.read())
    result = compile_all(job)
    (Path(job.out) / "compiled.json").write_text(result.model_dump_json())


if __name__ == "__main__":
    main()
