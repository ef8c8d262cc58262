"""`python -m worker.launch.cuda --arena-fd N --arena-bytes B`: replays launch records for the judge.

Trusted host code, one fresh process for each side of each pair, ready in a fraction of a second: it holds cuda.bindings
and neither torch nor CuPy. One LauncherCommand a line on stdin, one LauncherReply a line on stdout.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
from pathlib import Path

from pydantic import TypeAdapter

from contract.outcomes import Reason
from worker.gpu.arena import ImportedArena
from worker.gpu.channel import private_channel
from worker.gpu.driver import CudaError, disable_persisting_l2, open_context
from worker.gpu.replay import RecordError, Replay, check_record
from worker.protocol import Attach, Detach, Go, LauncherCommand, LauncherReply, Load, Prepare

_PR_SET_PDEATHSIG = 1
# What CUDA says of an image that this device can't run.
_WRONG_ARCHITECTURE = frozenset({"CUDA_ERROR_NO_BINARY_FOR_GPU", "CUDA_ERROR_INVALID_SOURCE"})


class Launcher:
    """The commands, one at a time. `arena` is mapped only between attach and detach."""

    def __init__(self, arena: ImportedArena) -> None:
        self._arena = arena
        self._replay: Replay | None = None

    def answer(self, command: Load | Attach | Detach | Prepare | Go) -> LauncherReply:
        try:
            return self._answer(command)
        except RecordError as error:
            return LauncherReply(ok=False, reason=error.reason, message=str(error))
        except CudaError as error:
            return LauncherReply(ok=False, reason=_reason(error, command), message=f"{command.op}: {error}")

    def _answer(self, command: Load | Attach | Detach | Prepare | Go) -> LauncherReply:
        if isinstance(command, Load):
            return self._load(command)
        if isinstance(command, Attach):
            self._arena.attach()
            disable_persisting_l2()
        elif isinstance(command, Detach):
            if self._replay is not None:
                self._replay.release()
            self._arena.detach()
        elif self._replay is None:
            return LauncherReply(ok=False, reason=Reason.INTERNAL_ERROR, message="no case is loaded")
        elif isinstance(command, Prepare):
            self._replay.prepare(command.slots, watched=command.watched)
        else:
            elapsed_us = self._replay.run()
            return LauncherReply(ok=True, elapsed_us=elapsed_us, watched_us=self._replay.watched_us())
        return LauncherReply(ok=True)

    def _load(self, command: Load) -> LauncherReply:
        if command.record is None:
            return LauncherReply(ok=False, reason=Reason.INTERNAL_ERROR, message="a replayed case needs its record")
        check_record(command.record, command.layout)
        if self._replay is not None:
            self._replay.close()
            self._replay = None
        images = {digest: Path(path).read_bytes() for digest, path in command.cubins.items()}
        self._replay = Replay(command.record, images)
        return LauncherReply(ok=True, workspace_bytes=command.layout.workspace_bytes)


def _reason(error: CudaError, command: Load | Attach | Detach | Prepare | Go) -> Reason:
    """Whose fault it is. Attach and detach touch the judge's memory alone; what else fails is the replayed code's."""
    if error.name in _WRONG_ARCHITECTURE:
        return Reason.ARCHITECTURE_UNSUPPORTED
    if isinstance(command, Attach | Detach) and not error.sticky:
        return Reason.OUT_OF_MEMORY if error.name == "CUDA_ERROR_OUT_OF_MEMORY" else Reason.INTERNAL_ERROR
    return Reason.CRASHED


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m worker.launch.cuda")
    parser.add_argument("--arena-fd", type=int, required=True)
    parser.add_argument("--arena-bytes", type=int, required=True)
    arguments = parser.parse_args()
    # A launcher that waits for a kernel without end would not notice that its judge is gone.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    channel = private_channel()
    # All code is resident before a burst starts: no lazy loading between two timed calls.
    os.environ["CUDA_MODULE_LOADING"] = "EAGER"
    open_context()
    launcher = Launcher(ImportedArena(arguments.arena_fd, arguments.arena_bytes))
    commands: TypeAdapter[Load | Attach | Detach | Prepare | Go] = TypeAdapter(LauncherCommand)
    for line in channel.reader:
        number, _, command = line.partition(" ")
        channel.send(launcher.answer(commands.validate_json(command)), number=number)


if __name__ == "__main__":
    main()
