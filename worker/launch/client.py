"""The judge's handle of a launcher: a child process that answers one line of JSON to each command.

Nothing that the child says or does can hold the judge up: every answer has a deadline and a size, what it prints goes
to a capped file, and ending it ends everything it started. Each command has a number that its answer begins with, so
that an answer given in advance is none.
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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pydantic import ValidationError

from contract.base import Model
from contract.outcomes import Reason
from worker.launch.family import adopted, children, descendants, live_threads, stopped
from worker.launch.patience import Patience
from worker.protocol import Detach, Go, LauncherReply

MAX_REPLY_BYTES = 1 << 16
MAX_STDERR_BYTES = 1 << 20
_MESSAGE_BYTES = 2000
# Nothing of the service's or the user's environment reaches a launcher but this.
_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TMPDIR", "VIRTUAL_ENV")
_DEVICE_PREFIXES = ("CUDA_", "NVIDIA_", "OMP_", "MKL_")
_ROOT = Path(__file__).resolve().parents[2]
_LIVE: set[int] = set()  # launchers of this process
_STOP_LIMIT_S = 10.0
_CPU_OF_PROCESS = 2  # CPUCLOCK_SCHED: Linux's clock of another process's computing


class LauncherError(Exception):
    """The launcher failed: it died, was late, or answered ok=False."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True)
class Pause:
    """Some time after a burst began everything stands still, and `look` is called."""

    after_s: float
    look: Callable[[], None]


class Launcher:
    """`freezes`: whoever is not asked is stopped (CPU, where its threads would slow down whoever is measured).

    One that freezes and is not `trusted` runs host code of a submission: whatever a call started, thread or process,
    must have ended when the call is answered. `believed`: the reasons that such a process may give for a failure; any
    other would be an excuse. By default all are.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        arena_fd: int,
        arena_bytes: int,
        run_as: Sequence[str] = (),
        freezes: bool = False,
        trusted: bool = False,
        believed: frozenset[Reason] | None = None,
        patience: Patience | None = None,
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
            cwd="/",  # where a submission may write, a file of its own could stand in for a module
        )
        _LIVE.add(self._process.pid)
        with contextlib.suppress(OSError, ValueError):
            resource.prlimit(self._process.pid, resource.RLIMIT_CORE, (0, 0))
            if not trusted:
                resource.prlimit(self._process.pid, resource.RLIMIT_FSIZE, (MAX_STDERR_BYTES, MAX_STDERR_BYTES))
                # Whoever takes all memory is the one to go, not the judge or its rival.
                Path(f"/proc/{self._process.pid}/oom_score_adj").write_text("1000", encoding="ascii")
        assert self._process.stdin is not None  # noqa: S101
        assert self._process.stdout is not None  # noqa: S101
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._out, False)
        os.set_blocking(self._in, False)
        self._freezes, self._frozen = freezes, False
        self._watched = freezes and not trusted
        self._believed, self._patience = believed, patience
        self._own: set[int] = set()
        self._within: int | None = None  # in a sandbox, its first process: everything else there is below it
        self._own_threads = 0
        self._asked = 0
        self._alive = True

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._alive

    def cpu_s(self) -> float:
        """Seconds that it has computed so far, on all cores; of use where it stands still."""
        used = 0.0
        for pid in self._own:
            with contextlib.suppress(OSError):
                used += time.clock_gettime(~pid << 3 | _CPU_OF_PROCESS)
        return used

    def ask(self, command: Model, *, limit_s: float) -> LauncherReply:
        """The answer to one command; raises LauncherError where it is late, none, or ok=False."""
        return self._timed(command, limit_s)[0]

    def go(self, *, limit_s: float, pause: Pause | None = None) -> tuple[LauncherReply, float]:
        """Run what was prepared: the answer, and its microseconds by this process's clock.

        A frozen launcher is thawed inside that time, and the clock stops once it stands still again: what an answer
        leaves undone is either timed or not done. With a `pause` the time means nothing.
        """
        return self._timed(Go(), limit_s, pause)

    def _timed(self, command: Model, limit_s: float, pause: Pause | None = None) -> tuple[LauncherReply, float]:
        if self._watched and not self._own:
            self._exchange(Detach(), limit_s, None)  # no code of the submission is loaded yet
            self._own = {self.pid, *descendants(self.pid)}
            self._own_threads = sum(map(live_threads, self._own))
            self._within = next((pid for pid in children(self.pid) if children(pid)), None)
        reply, elapsed_us = self._exchange(command, limit_s, pause)
        if self._watched:
            self._check_alone()
        if not reply.ok:
            reason = reply.reason or Reason.INTERNAL_ERROR
            if self._believed is not None and reason not in self._believed:
                reason = Reason.CRASHED
            raise LauncherError(reason, reply.message)
        return reply, elapsed_us

    def _exchange(self, command: Model, limit_s: float, pause: Pause | None) -> tuple[LauncherReply, float]:
        self._asked += 1
        number = b"%d " % self._asked
        line = number + command.model_dump_json().encode() + b"\n"
        started = time.perf_counter()
        self._thaw()
        self._send(line, started + limit_s, limit_s)
        if pause is not None and not self._answered_within(pause.after_s):
            self.freeze()
            pause.look()
            self._thaw()
        answer = self._receive(started + limit_s, limit_s)
        self.freeze()
        elapsed_us = (time.perf_counter() - started) * 1e6
        if self._patience is not None and not self._patience.spend(elapsed_us / 1e6):
            self.close()
            raise LauncherError(
                Reason.TIMED_OUT, f"all its calls together took longer than {self._patience.limit_s:g} s"
            )
        try:
            # Without its number it is an answer to no command of ours.
            said = answer[len(number) :] if answer.startswith(number) else b""
            return LauncherReply.model_validate_json(said), elapsed_us
        except ValidationError as error:
            self.close()
            raise LauncherError(Reason.CRASHED, f"the launcher's answer can't be read: {answer[:200]!r}") from error

    def _check_alone(self) -> None:
        """Nothing but the launcher itself is left, now that it stands still. Raises LauncherError."""
        family = {self.pid, *descendants(self.pid)}
        others = [pid for pid in family - self._own if live_threads(pid)] + adopted(_LIVE)
        threads = sum(map(live_threads, family & self._own)) - self._own_threads
        if others or threads > 0:
            self.close()
            raise LauncherError(
                Reason.LEFT_RUNNING,
                f"{len(others)} processes and {max(0, threads)} threads were left behind: what a call starts has to"
                " end before it returns",
            )

    def freeze(self) -> None:
        """Stop it, and wait until all of it stands still. Raises LauncherError where it doesn't."""
        if not (self._freezes and self._alive) or self._frozen:
            return
        self._frozen = True
        deadline = time.perf_counter() + _STOP_LIMIT_S
        self._signal(signal.SIGSTOP)
        while moving := [pid for pid in self._family() if not stopped(pid)]:
            for pid in moving:  # a process that was just being made, perhaps
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
            if time.perf_counter() > deadline:
                self.close()
                raise LauncherError(Reason.LEFT_RUNNING, "what it started can't be stopped")

    def _thaw(self) -> None:
        if self._frozen:
            self._frozen = False
            self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        """To its process group, and to what has left the group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)
        for pid in descendants(self._within or self.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def _family(self) -> list[int]:
        """Where a submission's code may run. Looked at within the time of a burst, so without bubblewrap's own."""
        return descendants(self._within) if self._within else [self.pid, *descendants(self.pid)]

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

    def _answered_within(self, seconds: float) -> bool:
        poll = select.poll()
        poll.register(self._out, select.POLLIN)
        return bool(poll.poll(seconds * 1e3))

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
    kept = {
        name: value for name, value in os.environ.items() if name in _ENVIRONMENT or name.startswith(_DEVICE_PREFIXES)
    }
    # Modules come from this project and the interpreter's own folders: none from the working folder or a home.
    return {**kept, "PYTHONPATH": str(_ROOT), "PYTHONSAFEPATH": "1", "PYTHONNOUSERSITE": "1"}


def end_strays() -> None:
    """End what a submission's double fork left: processes that this one adopted."""
    for pid in adopted(_LIVE):
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
