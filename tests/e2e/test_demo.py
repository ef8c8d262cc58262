"""The demo on a small copy of the project: one revision that is right, and the two that are to be caught."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.alone
PROJECT = Path(__file__).parents[2]
LIMIT_S = 240.0
GOOD, BAD = "v3_packed_threads", ("demo_slow_stride", "demo_wrong_tail")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """kernels/ with sgemm_cpu alone, its newest revision and the bad ones, on one small case; one history."""
    kernel = tmp_path / "kernels" / "sgemm_cpu"
    for name in (GOOD, *BAD):
        shutil.copytree(PROJECT / "kernels" / "sgemm_cpu" / name, kernel / name)
    (kernel / "suite.toml").write_text(
        'kernel = "sgemm_cpu"\noperator = "gemm"\ndtype = "fp32"\ndevice_classes = ["cpu"]\n'
        f'revisions = ["{GOOD}"]\n[[cases]]\ndims = {{ m = 192, n = 192, k = 192 }}\n'
        "[[verify_cases]]\ndims = { m = 17, n = 31, k = 23 }\n"
    )
    (tmp_path / "data").mkdir()
    shutil.copy(PROJECT / "data" / "published_history.csv", tmp_path / "data")
    return tmp_path


def demo(root: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KERNELGATE_")}
    return subprocess.run(
        [sys.executable, "-m", "cli.main", "demo", "--root", str(root), "--json"],
        env={**environment, "KERNELGATE_HOME": str(root / "home")},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


def test_the_demo_catches_what_is_bad_and_adds_nothing_the_second_time(root: Path) -> None:
    first = demo(root)
    assert first.returncode == 0, first.stderr
    rows = json.loads(first.stdout)
    outcomes = {row["revision"]: row["outcome"] for row in rows}
    assert outcomes == {"v3": "passed", "v3-slow": "slower", "v3-wrong": "incorrect"}
    slow = next(row for row in rows if row["revision"] == "v3-slow")
    assert slow["ratio"] > 1.005
    assert slow["interval"][0] > 1.0
    assert slow["throughput"]["unit"] == "GFLOPS"
    assert slow["of_baseline"]["value"] > 0
    assert first.stderr.count("caught: sgemm_cpu") == 2
    assert "kernelgate history attention_b300" in first.stderr

    second = demo(root)
    assert second.returncode == 0, second.stderr
    assert json.loads(second.stdout) == rows
    assert "all there already" in second.stderr
    left = [process for process in psutil.process_iter(["environ"]) if str(root) in str(process.info["environ"])]
    assert not left
