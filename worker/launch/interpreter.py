"""`python -m worker.launch.interpreter --arena-fd N --arena-bytes B`: calls a Triton launcher in Triton's interpreter.

For verifying without a card: the kernels run as Python on the CPU, program by program, in the judge's arena. This
process runs the submission's code, so that nothing it says counts but what it wrote. It is never the one that compiles:
Triton reads TRITON_INTERPRET where it is imported. One LauncherCommand a line in, one LauncherReply a line out.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import os
import signal
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import TypeAdapter

from contract.layout import SlotLayout, by_role
from contract.outcomes import Reason
from worker.gpu.channel import private_channel
from worker.launch.torch_arena import CpuArena
from worker.protocol import Attach, Detach, Go, LauncherCommand, LauncherReply, Load, Prepare

_PR_SET_PDEATHSIG = 1
_MESSAGE = 4000
# What Triton and torch say to code that wants a card: no fault of the code.
_NEEDS_A_CARD = ("active drivers", "NVIDIA driver", "Torch not compiled with CUDA", "No CUDA GPUs")
_Tensors = tuple[tuple[Any, ...], tuple[Any, ...]]


class _FailedError(Exception):
    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Launcher:
    def __init__(self, arena: CpuArena) -> None:
        self._arena = arena
        self._source: Path | None = None
        self._module: ModuleType | None = None
        self._load: Load | None = None
        self._calls: list[tuple[_Tensors, Any]] = []

    def answer(self, command: Load | Attach | Detach | Prepare | Go) -> LauncherReply:
        try:
            return self._answer(command)
        except _FailedError as error:
            return LauncherReply(ok=False, reason=error.reason, message=str(error)[:_MESSAGE])

    def _answer(self, command: Load | Attach | Detach | Prepare | Go) -> LauncherReply:
        if isinstance(command, Load):
            return self._loaded(command)
        if isinstance(command, Attach):
            self._arena.attach()
        elif isinstance(command, Detach):
            self._calls = []
            self._arena.detach()
        elif self._load is None:
            raise _FailedError(Reason.INTERNAL_ERROR, "no case is loaded")
        elif isinstance(command, Prepare):
            size = self._load.layout.slot_bytes
            self._calls = [self._call(self._load.layout, slot * size) for slot in command.slots]
        else:
            self._go(self._load)
        return LauncherReply(ok=True)

    def _loaded(self, command: Load) -> LauncherReply:
        if command.source is None or command.entry is None:
            raise _FailedError(Reason.INTERNAL_ERROR, "an interpreted case needs its source")
        if self._module is None:
            self._source = Path(command.source)
            self._module = self._guarded(self._source.name, lambda: _import(Path(command.source or "")))
        if not callable(getattr(self._module, command.entry, None)):
            raise _FailedError(Reason.ENTRY_MISSING, f"the module has no function {command.entry}")
        self._load, self._calls = command, []
        return LauncherReply(ok=True, workspace_bytes=self._workspace_bytes(command))

    def _workspace_bytes(self, load: Load) -> int:
        import torch  # noqa: PLC0415 - after the environment is set

        ask = getattr(self._module, "workspace_bytes", None)
        if ask is None:
            return 0
        dtypes = {"fp16": torch.float16, "fp32": torch.float32}
        metas = [
            (placed.tensor, torch.empty(placed.tensor.shape, dtype=dtypes[placed.tensor.dtype], device="meta"))
            for placed in load.layout.tensors
        ]
        return int(self._guarded("workspace_bytes", lambda: int(ask(*by_role(metas), dict(load.dims)))))

    def _call(self, layout: SlotLayout, slot_at: int) -> tuple[_Tensors, Any]:
        tensors = [(placed.tensor, self._arena.tensor(placed, slot_at)) for placed in layout.tensors]
        workspace = None
        if layout.workspace_bytes:
            workspace = self._arena.raw(slot_at + layout.workspace_offset, layout.workspace_bytes)
        return by_role(tensors), workspace

    def _go(self, load: Load) -> None:
        entry = getattr(self._module, load.entry or "")
        for (inputs, outputs), workspace in self._calls:
            self._guarded(load.entry or "", partial(entry, inputs, outputs, dict(load.dims), workspace))

    def _guarded(self, what: str, act: Callable[[], Any]) -> Any:
        """The result of a submission's function; what it raises becomes a _FailedError."""
        try:
            return act()
        except Exception as error:
            if why := _not_for_the_interpreter(error):
                raise _FailedError(Reason.CASE_REFUSED, why) from error
            place = self._place(error)
            raise _FailedError(
                Reason.RETURNED_ERROR, f"{what} raised {type(error).__name__}: {error}{place}"
            ) from error

    def _place(self, error: BaseException) -> str:
        """Where in the submission it arose: the innermost of its own lines."""
        found = ""
        cause: BaseException | None = error
        while cause is not None:
            for frame in traceback.extract_tb(cause.__traceback__):
                if self._source is not None and Path(frame.filename) == self._source:
                    found = f" ({self._source.name}:{frame.lineno})"
            cause = cause.__cause__
        return found


def _not_for_the_interpreter(error: BaseException) -> str | None:
    """What the interpreter or a machine without a card lacks, where that is all that is wrong."""
    cause: BaseException | None = error
    while cause is not None:
        lacks = isinstance(cause, NotImplementedError) and "interpreter" in str(cause)
        lacks = lacks or (isinstance(cause, AttributeError) and "InterpreterBuilder" in str(cause))
        if lacks or any(words in str(cause) for words in _NEEDS_A_CARD):
            return f"Triton's interpreter can't run it: {str(cause)[:300]}"
        cause = cause.__cause__
    return None


def _import(path: Path) -> ModuleType:
    """The module, with its folder last on the path: no file of a submission stands in for torch or Triton."""
    spec = importlib.util.spec_from_file_location("submission", path)
    if spec is None or spec.loader is None:
        raise _FailedError(Reason.ENTRY_MISSING, f"{path.name} is no Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules["submission"] = module
    sys.path.append(str(path.parent))
    spec.loader.exec_module(module)
    return module


def _choose_first_configurations() -> None:
    """Autotuning would time them, which says nothing here and needs a driver."""
    from triton.runtime.autotuner import Autotuner  # noqa: PLC0415 - after the environment is set

    def untimed(_tuner: Any, *_args: Any, **_more: Any) -> list[float]:
        return [0.0, 0.0, 0.0]

    def uncached(_tuner: Any, _key: Any, _configs: Any, choose: Callable[[], None]) -> bool:
        choose()
        return False

    Autotuner._bench, Autotuner.check_disk_cache = untimed, uncached  # noqa: SLF001 - as triton_compile does


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m worker.launch.interpreter")
    parser.add_argument("--arena-fd", type=int, required=True)
    parser.add_argument("--arena-bytes", type=int, required=True)
    arguments = parser.parse_args()
    # A stopped process would not notice that its judge is gone.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    channel = private_channel()
    # Blocks are too small to share out, and threads that wait for the next one spin.
    os.environ.update(TRITON_INTERPRET="1", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
    _choose_first_configurations()
    launcher = Launcher(CpuArena(arguments.arena_fd, arguments.arena_bytes))
    commands: TypeAdapter[Load | Attach | Detach | Prepare | Go] = TypeAdapter(LauncherCommand)
    for line in channel.reader:
        number, _, command = line.partition(" ")
        channel.send(launcher.answer(commands.validate_json(command)), number=number)


if __name__ == "__main__":
    main()
