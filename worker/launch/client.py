"""The judge's handle of a launcher: a child process that answers one line of JSON to each command.

Nothing that the child says or does can hold the judge up: every answer has a deadline and a size, what it prints goes
to a capped file, and ending it ends everything it started.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import IO

from pydantic import ValidationError

from contract.base import Model
from contract.outcomes import Reason
from worker.launch.family import children, descendants
from worker.protocol import Go, LauncherReply

MAX_REPLY_BYTES = 1 << 16
MAX_STDERR_BYTES = 1 << 20
_MESSAGE_BYTES = 2000
# Nothing of the service's or the user's environment reaches a launcher but this.
_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PYTHONPATH", "TMPDIR", "VIRTUAL_ENV")
_LIVE: set[int] = set()  # launchers of this process
_DEVICE_PREFIXES = ("CUDA_", "NVIDIA_", "OMP_", "MKL_")


class LauncherError(Exception):
    """The launcher failed: it died, was late, or answered ok=False."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Launcher:
    """`freezes`: whoever is not asked is stopped (CPU, where its threads would slow down whoever is measured)."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        arena_fd: int,
        arena_bytes: int,
        run_as: Sequence[str] = (),
        freezes: bool = False,
        trusted: bool = False,
    ) -> None:
        command = [*run_as, sys.executable, *arguments]
        command += ["--arena-fd", str(arena_fd), "--arena-bytes", str(arena_bytes)]
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=_environment(),
            pass_fds=(arena_fd,),
            start_new_session=True,
        )
        _LIVE.add(self._process.pid)
        with contextlib.suppress(OSError, ValueError):
            resource.prlimit(self._process.pid, resource.RLIMIT_CORE, (0, 0))
            if not trusted:
                resource.prlimit(self._process.pid, resource.RLIMIT_FSIZE, (MAX_STDERR_BYTES, MAX_STDERR_BYTES))
        assert self._process.stdin is not None  # noqa: S101
        assert self._process.stdout is not None  # noqa: S101
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._out, False)
        os.set_blocking(self._in, False)
        self._freezes, self._frozen = freezes, False
        self._alive = True

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._alive

    def ask(self, command: Model, *, limit_s: float) -> LauncherReply:
        """The answer to one command; raises LauncherError where it is late, none, or ok=False."""
        return self._timed(command, limit_s)[0]

    def go(self, *, limit_s: float) -> tuple[LauncherReply, float]:
        """Run what was prepared: the answer, and its microseconds by this process's clock.

        A frozen launcher is thawed inside that time, and frozen again before its answer is read: between the moments
        when the clock starts and stops is the only time it has.
        """
        return self._timed(Go(), limit_s)

    def _timed(self, command: Model, limit_s: float) -> tuple[LauncherReply, float]:
        line = command.model_dump_json().encode() + b"\n"
        started = time.perf_counter()
        self._thaw()
        self._send(line, started + limit_s, limit_s)
        answer = self._receive(started + limit_s, limit_s)
        elapsed_us = (time.perf_counter() - started) * 1e6
        self.freeze()
        try:
            reply = LauncherReply.model_validate_json(answer)
        except ValidationError as error:
            self.close()
            raise LauncherError(Reason.CRASHED, f"the launcher's answer can't be read: {answer[:200]!r}") from error
        if not reply.ok:
            raise LauncherError(reply.reason or Reason.INTERNAL_ERROR, reply.message)
        return reply, elapsed_us

    def freeze(self) -> None:
        if self._freezes and self._alive and not self._frozen:
            self._frozen = True
            self._signal(signal.SIGSTOP)

    def _thaw(self) -> None:
        if self._frozen:
            self._frozen = False
            self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        """To its process group, and to what has left the group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)
        for pid in descendants(self._process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def close(self) -> None:
        """End the process and everything it started."""
        if not self._alive:
            return
        self._alive = False
        self._signal(signal.SIGKILL)
        self._process.wait()
        _LIVE.discard(self._process.pid)
        end_strays()
        for stream in (self._process.stdin, self._process.stdout, self._stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def _send(self, line: bytes, deadline: float, limit_s: float) -> None:
        while line:
            self._wait(self._in, select.POLLOUT, deadline, limit_s)
            try:
                line = line[os.write(self._in, line) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                raise self._died() from None

    def _receive(self, deadline: float, limit_s: float) -> bytes:
        answer = b""
        while not answer.endswith(b"\n"):
            self._wait(self._out, select.POLLIN, deadline, limit_s)
            try:
                part = os.read(self._out, MAX_REPLY_BYTES)
            except BlockingIOError:
                continue
            if not part:
                raise self._died()
            answer += part
            if len(answer) > MAX_REPLY_BYTES:
                self.close()
                raise LauncherError(Reason.CRASHED, "the launcher's answer has no end")
        return answer

    def _wait(self, fd: int, event: int, deadline: float, limit_s: float) -> None:
        poll = select.poll()
        poll.register(fd, event)
        if not poll.poll(max(0.0, deadline - time.perf_counter()) * 1e3):
            self.close()
            raise LauncherError(Reason.TIMED_OUT, f"no answer within {limit_s:g} s; killed")

    def _died(self) -> LauncherError:
        """Its stdout has ended: say how."""
        try:
            status: int | None = self._process.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            status = None
        said = self._said()
        self.close()
        how = "closed its answers" if status is None else f"exited with {status}"
        if status is not None and (status < 0 or status > 128):  # a shell's and bubblewrap's way to say a signal
            how = f"was ended by {_signal_name(-status if status < 0 else status - 128)}"
        return LauncherError(Reason.CRASHED, f"the process {how} during the call{said}")

    def _said(self) -> str:
        size = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, size - _MESSAGE_BYTES))
        text = self._stderr.read().decode(errors="replace").strip()
        return f"; it said:\n{text}" if text else ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _environment() -> dict[str, str]:
    return {
        name: value for name, value in os.environ.items() if name in _ENVIRONMENT or name.startswith(_DEVICE_PREFIXES)
    }


def end_strays() -> None:
    """End children of this process that are no launchers: left behind by a submission's double fork."""
    for pid in children(os.getpid()):
        if pid not in _LIVE:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
