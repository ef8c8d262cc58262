"""One thing that this machine has or lacks, and how to ask it without waiting for ever."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Sequence
from enum import StrEnum
from typing import Literal

from contract.base import Model


class Purpose(StrEnum):
    """What a finding is needed for."""

    CPU = "cpu"
    SERVICE = "service"
    COMPILE = "compile"
    GPU = "gpu"
    ISOLATE = "isolate"
    SANITIZE = "sanitize"
    PROFILE = "profile"
    TESTS = "tests"
    WEB = "web"


MEANING: dict[Purpose, str] = {
    Purpose.CPU: "measure on the CPU",
    Purpose.SERVICE: "serve on embedded defaults",
    Purpose.COMPILE: "compile for GPUs",
    Purpose.GPU: "measure on the GPU",
    Purpose.ISOLATE: "isolate what it runs",
    Purpose.SANITIZE: "look for memory errors of kernels",
    Purpose.PROFILE: "read the GPU's counters",
    Purpose.TESTS: "run every test",
    Purpose.WEB: "build the web view",
}


class Finding(Model):
    """`detail` says what was found, `advice` what to do where something is missing."""

    name: str
    state: Literal["ok", "missing"]
    detail: str
    advice: str = ""
    needed_for: tuple[Purpose, ...]


class Answer(Model):
    """`returncode` is None for a command that is not there or did not answer in time."""

    returncode: int | None
    stdout: str = ""
    stderr: str = ""

    @property
    def complaint(self) -> str:
        lines = (self.stderr or self.stdout).strip().splitlines()
        return lines[-1][:200] if lines else f"exit status {self.returncode}"


def ask(command: Sequence[str], *, limit_s: float = 10.0) -> Answer:
    """Run a command and wait at most `limit_s`. One stuck in the driver can't be killed: it is left behind."""
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    except OSError as error:
        return Answer(returncode=None, stderr=f"{command[0]}: {error.strerror}")
    try:
        stdout, stderr = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=1.0)
        return Answer(returncode=None, stderr=f"no answer within {limit_s:.0f} s")
    return Answer(returncode=process.returncode, stdout=stdout, stderr=stderr)
