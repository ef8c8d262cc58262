"""Child processes with a time limit, a cap on their output, and a certain end."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self

NANNY = str(Path(__file__).with_name("nanny.py"))
POLL_S = 0.05
KILL_LIMIT_S = 10.0
OUTPUT_BYTES = 1 << 20
LINE_BYTES = 64 << 20

Check = Callable[[], None]


class Cancelled(Exception):  # noqa: N818 - the glossary's word, and no error
    """Whoever asked for the evaluation no longer wants it, or the lease is lost. What ran has been killed."""


class TimedOut(Exception):  # noqa: N818
    """The child was killed at its time limit."""


class DiskFull(Exception):  # noqa: N818
    """The child wrote more than it may, or what it may write to has no room left. It has been killed."""


class LineTooLong(Exception):  # noqa: N818
    """A child that speaks in lines sent one without an end."""


@dataclass(frozen=True, kw_only=True)
class Finished:
    """`returncode` is negative for a signal. Output beyond the cap is dropped from its middle."""

    returncode: int
    stdout: bytes
    stderr: bytes
    timed_out: bool
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Limits:
    """`file_bytes` caps each file that a child writes; `memory_bytes` its address space (never for CUDA: it
    reserves terabytes). 0: no cap."""

    seconds: float
    output_bytes: int = OUTPUT_BYTES
    file_bytes: int = 0
    memory_bytes: int = 0


class Capped:
    """Keeps the beginning and the end of a stream of any length."""

    def __init__(self, limit: int) -> None:
        self._half = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self.dropped = 0

    def add(self, data: bytes) -> None:
        room = self._half - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        excess = len(self._tail) - self._half
        if excess > 0:
            del self._tail[:excess]
            self.dropped += excess

    def value(self) -> bytes:
        note = f"\n[... {self.dropped} bytes left out ...]\n".encode() if self.dropped else b""
        return bytes(self._head + note + self._tail)


def _nothing() -> None: ...


class Child:
    """A running command under its nanny. Leaving the context kills its whole tree, and then calls `after`."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        limits: Limits,
        cwd: Path,
        env: Mapping[str, str],
        stdin: bytes = b"",
        check: Check = _nothing,
        after: Callable[[], None] = _nothing,
    ) -> None:
        self._check, self._after = check, after
        self._started = time.monotonic()
        self.ends_at = self._started + limits.seconds
        self.stderr = Capped(limits.output_bytes)
        nanny = [sys.executable, "-I", "-S", NANNY, "--parent", str(os.getpid())]
        nanny += ["--file-bytes", str(limits.file_bytes), "--memory-bytes", str(limits.memory_bytes), "--"]
        self._process = subprocess.Popen(
            [*nanny, *argv],
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._pending = stdin
        self._selector = selectors.DefaultSelector()
        for stream, event in (
            (self._process.stdout, selectors.EVENT_READ),
            (self._process.stderr, selectors.EVENT_READ),
            (self._process.stdin, selectors.EVENT_WRITE),
        ):
            assert stream is not None  # noqa: S101 - all three are pipes
            os.set_blocking(stream.fileno(), False)
            self._selector.register(stream, event)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._selector.close()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            with contextlib.suppress(OSError):
                stream.close()  # type: ignore[union-attr]
        self._after()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    def chunks(self) -> Iterator[bytes]:
        """What the child writes to stdout, until it ends; raises TimedOut, or what `check` raises."""
        while True:
            ended = self._process.poll() is not None
            output, busy = self._pump(0.0 if ended else POLL_S)
            if output:
                yield output
            if ended and not busy:
                return
            if not self._selector.get_map() and not ended:
                # It closed its pipes and runs on.
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(POLL_S)
            self._check()
            if time.monotonic() > self.ends_at:
                raise TimedOut

    def lines(self) -> Iterator[bytes]:
        """stdout by lines. Move `ends_at` to give each step a limit of its own."""
        rest = b""
        for chunk in self.chunks():
            *whole, rest = (rest + chunk).split(b"\n")
            if len(rest) > LINE_BYTES:
                raise LineTooLong
            yield from whole
        if rest:
            yield rest

    def wait(self) -> int:
        """The return code, once `chunks` or `lines` has ended or the child was killed."""
        code = self._process.wait(KILL_LIMIT_S)
        return 128 - code if code > 128 else code  # a shell's and bubblewrap's way to say a signal

    def kill(self) -> None:
        """SIGTERM lets the nanny kill every descendant; SIGKILL to the nanny is for one that was itself attacked."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self._process.poll() is not None:
                return
            self._process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(KILL_LIMIT_S)

    def _pump(self, timeout: float) -> tuple[bytes, bool]:
        """(stdout read, whether any stream moved)."""
        output, busy = b"", False
        if not self._selector.get_map():
            return output, busy
        for key, _ in self._selector.select(timeout):
            stream = key.fileobj
            if stream is self._process.stdin:
                self._write(self._process.stdin)
                continue
            data = self._read(stream)  # type: ignore[arg-type]
            busy = busy or bool(data)
            if stream is self._process.stdout:
                output = data
            else:
                self.stderr.add(data)
        return output, busy

    def _read(self, stream: IO[bytes]) -> bytes:
        try:
            data = os.read(stream.fileno(), 1 << 16)
        except BlockingIOError:
            return b""
        if not data:
            self._selector.unregister(stream)
        return data

    def _write(self, stream: IO[bytes] | None) -> None:
        assert stream is not None  # noqa: S101
        try:
            written = os.write(stream.fileno(), self._pending[: 1 << 16]) if self._pending else 0
            self._pending = self._pending[written:]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._pending = b""
        if not self._pending:
            self._selector.unregister(stream)
            with contextlib.suppress(OSError):
                stream.close()


def run(
    argv: Sequence[str],
    *,
    limits: Limits,
    cwd: Path,
    env: Mapping[str, str],
    stdin: bytes = b"",
    check: Check = _nothing,
    after: Callable[[], None] = _nothing,
) -> Finished:
    """Run to the end, or to the limit. Whatever `check` raises ends the child and passes through."""
    stdout = Capped(limits.output_bytes)
    timed_out = False
    with Child(argv, limits=limits, cwd=cwd, env=env, stdin=stdin, check=check, after=after) as child:
        try:
            for chunk in child.chunks():
                stdout.add(chunk)
        except TimedOut:
            timed_out = True
            child.kill()
        returncode = child.wait()
    return Finished(
        returncode=returncode,
        stdout=stdout.value(),
        stderr=child.stderr.value(),
        timed_out=timed_out,
        seconds=child.seconds,
    )


_PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
_PASSED_ON_PREFIXES = ("CUDA_", "NVIDIA_", "OMP_", "MKL_", "OPENBLAS_")


def environment(*, home: Path, **more: str) -> dict[str, str]:
    """What a child sees: an allow-list, since the worker's own environment holds the node's token.

    HOME and TMPDIR are the evaluation's private folder; Python finds the project where this process found it and
    never in the working folder.
    """
    kept = {
        name: value for name, value in os.environ.items() if name in _PASSED_ON or name.startswith(_PASSED_ON_PREFIXES)
    }
    root = str(Path(__file__).resolve().parent.parent)
    private = {"HOME": str(home), "TMPDIR": str(home), "PYTHONPATH": root, "PYTHONSAFEPATH": "1"}
    return {"PATH": os.defpath, **kept, **private, "PYTHONNOUSERSITE": "1", **more}
