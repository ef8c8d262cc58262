"""`cpp.py --arena-fd N --arena-bytes B`: calls a C++ revision's library for the judge, on a CPU.

Here the submission's host code *is* the kernel, so this process is not trusted: the judge's clock and checks are all
that count. It stands alone (standard library only, run with -I -S) and starts in a few hundredths of a second. A
library that crashes takes no one with it. One numbered LauncherCommand a line in, one LauncherReply with the same
number a line out (worker/protocol.py).
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import mmap
import os
from typing import Any

_DTYPES = {"fp16": 0, "fp32": 1}
_MADV_POPULATE_WRITE = 23  # Linux 5.14
_PR_SET_PDEATHSIG, _SIGKILL = 1, 9


class _Tensor(ctypes.Structure):
    """kg_tensor of kernelgate.h."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("shape", ctypes.c_int64 * 4),
        ("stride", ctypes.c_int64 * 4),
        ("rank", ctypes.c_int32),
        ("dtype", ctypes.c_int32),
    ]


class _Param(ctypes.Structure):
    """kg_param."""

    _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_int64)]


class _Call(ctypes.Structure):
    """kg_call."""

    _fields_ = [
        ("inputs", ctypes.POINTER(_Tensor)),
        ("outputs", ctypes.POINTER(_Tensor)),
        ("params", ctypes.POINTER(_Param)),
        ("n_inputs", ctypes.c_int32),
        ("n_outputs", ctypes.c_int32),
        ("n_params", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("workspace", ctypes.c_void_p),
        ("workspace_bytes", ctypes.c_size_t),
        ("stream", ctypes.c_void_p),
    ]


class _RefusedError(Exception):
    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class _Arena:
    def __init__(self, fd: int, size: int) -> None:
        self._fd, self._size = fd, size
        self._map: mmap.mmap | None = None
        self._pointer: Any = None

    def attach(self) -> None:
        if self._map is None:
            self._map = mmap.mmap(self._fd, self._size)
            self._pointer = ctypes.c_char.from_buffer(self._map)

    def detach(self) -> None:
        if self._map is not None:
            self._pointer = None
            self._map.close()
            self._map = None

    def address(self) -> int:
        if self._map is None:
            raise _RefusedError("internal_error", "the arena is not attached")
        return ctypes.addressof(self._pointer)

    def populate(self, first: int, size: int) -> None:
        """Map the pages now, so that no call pays for them."""
        start = first // mmap.PAGESIZE * mmap.PAGESIZE
        if self._map is None:
            return
        try:
            self._map.madvise(_MADV_POPULATE_WRITE, start, first + size - start)
        except OSError:  # an older kernel: the first touch of each page is timed
            return


class _Case:
    """A loaded case: its function, and how to build the calls for given slots."""

    def __init__(self, command: dict[str, Any]) -> None:
        try:
            library = ctypes.CDLL(command["library"])
        except OSError as error:
            raise _RefusedError("crashed", f"the library can't be loaded: {error}") from error
        try:
            self.run = getattr(library, command["entry"])
        except AttributeError as error:
            raise _RefusedError("entry_missing", f"the library exports no function {command['entry']}") from error
        self.run.argtypes, self.run.restype = [ctypes.c_void_p], ctypes.c_int
        self.layout = command["layout"]
        self._params = (_Param * len(command["dims"]))(
            *(_Param(name.encode(), value) for name, value in command["dims"].items())
        )
        self.workspace_bytes = self._asked_workspace(library)

    def _asked_workspace(self, library: ctypes.CDLL) -> int:
        try:
            ask = library.kernelgate_workspace_bytes
        except AttributeError:
            return 0
        ask.argtypes, ask.restype = [ctypes.c_void_p], ctypes.c_size_t
        shapes = self.call(None)  # lives until it is answered
        return int(ask(ctypes.addressof(shapes)))

    def call(self, slot: int | None) -> _Call:
        """One call on the slot at this address; None leaves its pointers NULL."""
        tensors = self.layout["tensors"]
        inputs = [self._tensor(placed, slot) for placed in tensors if placed["tensor"]["role"] == "input"]
        outputs = [self._tensor(placed, slot) for placed in tensors if placed["tensor"]["role"] == "output"]
        size = self.layout["workspace_bytes"]
        return _Call(
            (_Tensor * len(inputs))(*inputs),
            (_Tensor * len(outputs))(*outputs),
            self._params,
            len(inputs),
            len(outputs),
            len(self._params),
            0,
            None if slot is None or not size else slot + self.layout["workspace_offset"],
            size,
            None,
        )

    @staticmethod
    def _tensor(placed: dict[str, Any], slot: int | None) -> _Tensor:
        shape = placed["tensor"]["shape"]
        stride = [1] * len(shape)
        for axis in range(len(shape) - 2, -1, -1):
            stride[axis] = stride[axis + 1] * shape[axis + 1]
        return _Tensor(
            None if slot is None else slot + placed["offset"],
            (ctypes.c_int64 * 4)(*shape),
            (ctypes.c_int64 * 4)(*stride),
            len(shape),
            _DTYPES[placed["tensor"]["dtype"]],
        )


class _Launcher:
    def __init__(self, arena: _Arena) -> None:
        self._arena = arena
        self._case: _Case | None = None
        self._calls: list[_Call] = []
        self._addresses: list[int] = []

    def answer(self, command: dict[str, Any]) -> dict[str, Any]:
        operation = command["op"]
        if operation == "load":
            self._calls, self._addresses = [], []
            self._case = _Case(command)
            return {"ok": True, "workspace_bytes": self._case.workspace_bytes}
        if operation == "attach":
            self._arena.attach()
        elif operation == "detach":
            self._calls, self._addresses = [], []
            self._arena.detach()
        elif self._case is None:
            raise _RefusedError("internal_error", "no case is loaded")
        elif operation == "prepare":
            self._prepare(self._case, command["slots"])
        else:
            return self._go(self._case)
        return {"ok": True}

    def _prepare(self, case: _Case, slots: list[int]) -> None:
        base, size = self._arena.address(), case.layout["slot_bytes"]
        for slot in slots:
            self._arena.populate(slot * size, size)
        self._calls = [case.call(base + slot * size) for slot in slots]
        self._addresses = [ctypes.addressof(call) for call in self._calls]

    def _go(self, case: _Case) -> dict[str, Any]:
        run = case.run
        for place, address in enumerate(self._addresses):
            code = run(address)
            if code:
                raise _RefusedError("returned_error", f"call {place + 1} of {len(self._addresses)} returned {code}")
        return {"ok": True}


def main() -> None:
    parser = argparse.ArgumentParser(prog="cpp.py")
    parser.add_argument("--arena-fd", type=int, required=True)
    parser.add_argument("--arena-bytes", type=int, required=True)
    arguments = parser.parse_args()
    # What the library prints must not land between answers: the protocol moves off 0 and 1, which become nothing and
    # stderr. No child of the library gets the moved descriptors.
    commands, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), 0)
    os.dup2(2, 1)
    # A stopped process would not notice that its judge is gone.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)
    launcher = _Launcher(_Arena(arguments.arena_fd, arguments.arena_bytes))
    gc.disable()  # no pause inside a burst
    for line in commands:
        number, _, command = line.partition(b" ")
        try:
            reply = launcher.answer(json.loads(command))
        except _RefusedError as refusal:
            reply = {"ok": False, "reason": refusal.reason, "message": str(refusal)}
        answers.write(number + b" " + json.dumps(reply).encode() + b"\n")


if __name__ == "__main__":
    main()
