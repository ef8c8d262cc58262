"""Runs one command and leaves none of its processes behind, whatever happens to the command or to the worker.

Started as a script by `worker.process`, by an isolated interpreter and with the standard library alone, so that it is
up in a few milliseconds. It adopts every orphan of the command (a child that calls setsid or forks twice included),
kills all of them once the command ends, and does the same when the worker dies: the kernel then sends it SIGTERM.
"""

import argparse
import contextlib
import ctypes
import os
import resource
import signal
import sys
import time
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
COULD_NOT_START = 127
KILL_LIMIT_S = 5.0


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--file-bytes", type=int, default=0)
    parser.add_argument("--memory-bytes", type=int, default=0)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    argv = options.command[1:] if options.command[:1] == ["--"] else options.command

    waited_for = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
    for number in waited_for:  # Celery's processes ignore some, and that is inherited
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_BLOCK, waited_for)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    if os.getppid() != options.parent:  # it died before the line above
        sys.exit(COULD_NOT_START)

    child = os.fork()
    if child == 0:
        _become(argv, libc=libc, file_bytes=options.file_bytes, memory_bytes=options.memory_bytes)
    status = _wait(child, waited_for)
    _kill_all()
    _end_like(status)


def _become(argv: list[str], *, libc: ctypes.CDLL, file_bytes: int, memory_bytes: int) -> None:
    try:
        os.setsid()
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if file_bytes:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
        if memory_bytes:
            resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
        signal.pthread_sigmask(signal.SIG_SETMASK, set())
        os.execvp(argv[0], argv)  # noqa: S606
    except OSError as error:
        os.write(2, f"{argv[0]}: {error.strerror}\n".encode())
    os._exit(COULD_NOT_START)


def _wait(child: int, waited_for: set[signal.Signals]) -> int:
    """The command's wait status; that of SIGKILL when this process is told to end."""
    while True:
        if signal.sigwait(waited_for) != signal.SIGCHLD:
            return signal.SIGKILL
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == child:
                    return ended[1]


def _kill_all() -> None:
    """Stop, then kill, until nothing is left to wait for: a fork bomb must not outrun its killer."""
    give_up = time.monotonic() + KILL_LIMIT_S
    while time.monotonic() < give_up:
        found = _descendants()
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in found:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.002)


def _descendants() -> list[int]:
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError):
                # The command's name may hold spaces and brackets: fields are counted from its last bracket.
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    found = {os.getpid()}
    grown = True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        found |= more
        grown = bool(more)
    return sorted(found - {os.getpid()})


def _end_like(status: int) -> None:
    """End with the command's exit code, or by the signal that ended it."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        sys.exit(code)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if -code != signal.SIGKILL:
        signal.signal(-code, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, set())
    os.kill(os.getpid(), -code)
    sys.exit(128 - code)


if __name__ == "__main__":
    main()
