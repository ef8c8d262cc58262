"""The protocol's pipes, moved off stdin and stdout.

A kernel's printf is written to stdout by the CUDA driver, and a submission's host code prints where it likes: neither
may land between protocol lines. After `private_channel()` stdin is empty and stdout is stderr.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TextIO

from contract.base import Model


@dataclass(frozen=True)
class Channel:
    reader: TextIO
    writer: TextIO

    def send(self, message: Model, *, number: str = "") -> None:
        """`number`: of the command that this answers, where commands have one."""
        self.writer.write(f"{number} {message.model_dump_json()}\n" if number else message.model_dump_json() + "\n")
        self.writer.flush()


def private_channel() -> Channel:
    sys.stdout.flush()
    reader, writer = os.dup(0), os.dup(1)  # not inheritable, so that no child of a submission gets them
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return Channel(reader=os.fdopen(reader, encoding="utf-8"), writer=os.fdopen(writer, "w", encoding="utf-8"))
