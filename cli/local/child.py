"""One child process of `up`: started, watched, started again, and ended with all it started."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
HEALTHY_AFTER_S = 30.0
LONGEST_PAUSE_S = 15.0

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass
class Child:
    """`argv` with `environment`, its output in `log`. `stop_signals`: each is tried for so many seconds, in order."""

    name: str
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    log: Path
    stop_signals: tuple[tuple[signal.Signals, float], ...] = ((signal.SIGTERM, 8.0),)
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    failures: int = 0
    restarts: int = field(default=0, init=False)

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.argv,
                env=dict(self.environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # A session of its own: Ctrl-C in the terminal reaches the supervisor alone, which ends its
                # children in order.
                start_new_session=True,
                preexec_fn=_end_with_parent,  # noqa: PLW1509 - one prctl; the supervisor has no threads
            )
        self.started_at = time.monotonic()

    @property
    def ended(self) -> int | None:
        """The exit code once it has ended; None while it runs."""
        return self.process.poll() if self.process else 0

    def restart_due(self, now: float) -> bool:
        """Whether a child that ended may start again: at once, then with doubling pauses while it keeps ending."""
        if self.ended is None:
            if self.failures and now - self.started_at > HEALTHY_AFTER_S:
                self.failures = 0
            return False
        pause_s = min(LONGEST_PAUSE_S, 2.0 ** (self.failures - 1)) if self.failures else 0.0
        return now - self.started_at >= pause_s

    def restart(self) -> None:
        self.failures += 1
        self.restarts += 1
        self.start()

    def stop(self) -> None:
        """End it and its process group; SIGKILL where it doesn't listen."""
        if self.process is None:
            return
        for number, patience_s in self.stop_signals:
            if self.process.poll() is not None:
                break
            self.process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(patience_s)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def last_words(self, lines: int = 15) -> str:
        """The end of its log."""
        try:
            return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
        except OSError:
            return ""


def wait_until(ready: Callable[[], bool], *, limit_s: float, child: Child, every_s: float = 0.05) -> bool:
    """Poll `ready` until it holds (True), or the child ends or `limit_s` passes (False)."""
    give_up = time.monotonic() + limit_s
    while time.monotonic() < give_up:
        if ready():
            return True
        if child.ended is not None:
            return False
        time.sleep(every_s)
    return False


def adopt_orphans() -> None:
    """From now on a grandchild whose parent died is ours, so that `end_descendants` finds it."""
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1)


def end_descendants() -> None:
    """Kill whatever is left below this process."""
    import psutil  # noqa: PLC0415

    for _ in range(5):  # what is killed may just have started another
        left = psutil.Process().children(recursive=True)
        if not left:
            return
        for process in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(left, timeout=2.0)


def reap_orphans(children: Iterable[Child]) -> None:
    """Collect adopted orphans that have ended; what `children` hold is left to them."""
    import psutil  # noqa: PLC0415

    ours = {child.process.pid for child in children if child.process}
    for process in psutil.Process().children():
        if process.pid not in ours:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process.pid, os.WNOHANG)


def _end_with_parent() -> None:
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
