"""What compute-sanitizer and Nsight Compute say of every shipped GPU revision, on this machine's GPU.

Each revision is evaluated on its kernel's first case and its verify cases, with all tools of compute-sanitizer and a
profile. Ends with 1 where memcheck found something.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import Any, get_args

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from cli.bundles import read_suite  # noqa: E402 - after the path is set
from contract.profile import PROFILE  # noqa: E402
from contract.suite import SanitizerTool  # noqa: E402

LIMIT_S = 300.0


def revisions(only: str) -> list[tuple[str, str, str]]:
    """(kernel, folder of the revision, first case)"""
    found = []
    for file in sorted((ROOT / "kernels").glob("*/suite.toml")):
        suite = read_suite(file.parent)
        if any(each != "cpu" for each in suite.device_classes):
            found += [(file.parent.name, name, suite.cases[0].id) for name in suite.revisions]
    return [one for one in found if only in f"{one[0]}/{one[1]}"]


def evaluated(kernel: str, revision: str, case: str, tool: str, *, profile: bool) -> tuple[dict[str, Any], float]:
    """The evaluation as JSON, and the seconds that it took. Its suite names `tool` alone."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(shutil.copytree(ROOT / "kernels" / kernel, Path(folder) / kernel))
        suite = copy / "suite.toml"
        suite.write_text(f'sanitize = ["{tool}"]\n{suite.read_text(encoding="utf-8")}', encoding="utf-8")
        command = [sys.executable, "-m", "cli.main", "run", str(copy / revision), "--case", case, "--verify", "--json"]
        started = time.monotonic()
        done = subprocess.run(
            [*command, *(["--profile"] if profile else [])],
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_S,
            env={**os.environ, "PYTHONPATH": str(ROOT), "KERNELGATE_MAX_PROCESSES": "1"},
        )
    if not done.stdout.strip():
        raise SystemExit(f"{kernel}/{revision}: {done.stderr[-2000:]}")
    return json.loads(done.stdout), time.monotonic() - started


def said_of(stage: str, found: dict[str, Any]) -> str:
    """What the stage found, or why it was left out."""
    left = [one["why"] for one in found["left_out"] if one["stage"] == stage]
    ended = [one for one in found["stages"] if one["stage"] == stage]
    if left:
        return f"left out: {left[0]}"
    if found["reason"] == "sanitizer_finding" or not ended:
        return f"{found['outcome']}: {found['reason']} {found['message']}"
    return f"{ended[0]['detail']} ({_seconds(ended[0]):.1f} s)"


def _seconds(stage: dict[str, Any]) -> float:
    begun, ended = (datetime.fromisoformat(stage[name]) for name in ("started_at", "ended_at"))
    return (ended - begun).total_seconds()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="revisions whose kernel/folder holds this")
    parser.add_argument("--tools", nargs="+", default=get_args(SanitizerTool), choices=get_args(SanitizerTool))
    arguments = parser.parse_args()
    found_something = False
    for kernel, revision, case in revisions(arguments.only):
        print(f"\n{kernel}/{revision}, {case}")
        for place, tool in enumerate(arguments.tools):
            found, took_s = evaluated(kernel, revision, case, tool, profile=place == 0)
            found_something |= tool == "memcheck" and found["reason"] is not None
            print(f"  {tool:<10} {said_of('sanitize', found)}; {took_s:.0f} s in all")
            if place == 0:
                print(f"  profile    {said_of('profile', found)}")
                metrics = {one["name"]: one["value"] for each in found["cases"] for one in each["metrics"]}
                print("  " + ", ".join(f"{name} {metrics[name]:.3g}" for name in PROFILE if name in metrics))
            sys.stdout.flush()
    return int(found_something)


if __name__ == "__main__":
    sys.exit(main())
