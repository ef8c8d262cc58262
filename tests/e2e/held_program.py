"""Stands in for a program of a card's stages, and stays at work while a file of the stage's name lies beside it.

`held_program.py record FOLDER PROGRAM [arguments]`: then PROGRAM records.
`held_program.py sanitize|profile [options] --log-file LOG python examined JOB`: runs what it is given, as
compute-sanitizer and ncu do, and finds nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

stage, *arguments = sys.argv[1:]


def stay() -> None:
    """With a child in its own session and one in another."""
    children: list[subprocess.Popen[bytes]] = []
    while Path(__file__).with_name(stage).exists():
        if not children:
            children = [subprocess.Popen(["sleep", "1000"], start_new_session=apart) for apart in (False, True)]
        time.sleep(0.02)
    for child in children:
        child.kill()
        child.wait()


def counters(metrics: list[str]) -> str:
    lines = (
        ["ID", "Kernel Name", *metrics],
        ["", "", *("%" for _ in metrics)],
        ["0", "spilled", *("50" for _ in metrics)],
    )
    return "\n".join(",".join(f'"{cell}"' for cell in line) for line in lines) + "\n"


if stage == "record":
    stay()
    os.execv(sys.executable, [sys.executable, *arguments[1:]])
log = Path(arguments[arguments.index("--log-file") + 1])
target = arguments[arguments.index(sys.executable) :]
asked = arguments[arguments.index("--metrics") + 1].split(",") if "--metrics" in arguments else []
code = subprocess.run(target, check=False).returncode
stay()
log.write_text(counters(asked) if asked else "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n")
sys.exit(code)
