"""A worker of class h200 on a machine without a card: what touches one is a stand-in, and the rest is the product."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from tests.e2e.stack import Stack
from tests.worker.jobs import FAKE_JUDGE, FAKE_RECORDER, FIXTURES

HERE = Path(__file__).parent
TOOLS = ("sanitize", "profile")
STAGES = ("record", *TOOLS)


class Card:
    """`folder`: for the stack that it is part of. `tools`: the stand-ins, which a sandbox shows them."""

    def __init__(self, folder: Path, cubin: Path) -> None:
        self.folder = folder
        self.tools = folder / "tools"
        libraries = folder / "libraries"
        for each in (self.tools, libraries):
            each.mkdir(parents=True)
        for file in (HERE / "held_program.py", FIXTURES / "fake_examined.py"):
            shutil.copy(file, self.tools)
        for stage in TOOLS:
            self._program(stage)
        library = libraries / "libnvidia-ml.so.1"
        subprocess.run(["gcc", "-shared", "-fPIC", str(HERE / "nvml.c"), "-o", str(library)], check=True)
        record = [str(self.tools / "held_program.py"), "record", str(self.tools), FAKE_RECORDER, "fine", str(cubin)]
        self.worker = {
            "KERNELGATE_DEVICE_CLASS": "h200",
            "KERNELGATE_CALIBRATION_S_A_DAY": "0",
            "KERNELGATE_JUDGE": json.dumps([FAKE_JUDGE]),
            "KERNELGATE_RECORDER": json.dumps(record),
            "KERNELGATE_EXAMINED": json.dumps([str(self.tools / "fake_examined.py"), "fine"]),
            "KERNELGATE_COMPUTE_SANITIZER": str(self.tools / "sanitize-tool"),
            "KERNELGATE_NCU": str(self.tools / "profile-tool"),
            "LD_LIBRARY_PATH": str(libraries),
        }

    def hold(self, stage: str) -> None:
        (self.tools / stage).touch()

    def release(self, stage: str) -> None:
        (self.tools / stage).unlink(missing_ok=True)

    def _program(self, stage: str) -> None:
        file = self.tools / f"{stage}-tool"
        file.write_text(f'#!/bin/sh\nexec {sys.executable} {self.tools / "held_program.py"} {stage} "$@"\n')
        file.chmod(0o755)


def submit(stack: Stack, *, source: str = "") -> str:
    """A Triton revision that is to be profiled; the evaluation's id."""
    kernel = stack.kernel(device_classes=["h200"], dtype="fp16")
    folder = FIXTURES / "copy_triton"
    files = {file.name: file.read_text() for file in sorted(folder.iterdir())}
    files["kernel.py"] += source
    return stack.submit(files, kernel=kernel, profile=True)
