"""The worker's judge, which waits in a stage, with its launchers running, while a file of that stage's name exists.

python held_judge.py FOLDER
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from worker.judge import __main__ as program
from worker.judge import judge
from worker.judge.measure import Measurement

FOLDER = Path(sys.argv[1])


def wait(stage: str) -> None:
    if (FOLDER / stage).exists():
        (FOLDER / f"{stage}.reached").touch()
    while (FOLDER / stage).exists():
        time.sleep(0.01)


_verify_case = judge.verify_case
_rounds = Measurement._rounds


def verify_case(*arguments: Any, **named: Any) -> Iterator[Any]:
    yield from _verify_case(*arguments, **named)
    wait("verify")


def rounds(self: Measurement, *arguments: Any) -> None:
    wait("measure")
    _rounds(self, *arguments)


judge.verify_case = verify_case
Measurement._rounds = rounds  # type: ignore[method-assign]

if __name__ == "__main__":
    program.main()
