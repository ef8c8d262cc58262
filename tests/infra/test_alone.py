"""The rule of tests/conftest.py, seen from outside: a small run in two processes."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = """
import os
import time
from pathlib import Path

import pytest

LOG = Path(os.environ["LOG"])


def stay(name):
    with LOG.open("a") as log:
        log.write(f"{name} in\\n")
    time.sleep(0.05)
    with LOG.open("a") as log:
        log.write(f"{name} out\\n")


@pytest.mark.parametrize("n", range(12))
def test_others(n):
    stay("other")


@pytest.mark.alone
@pytest.mark.parametrize("n", range(4))
def test_measuring(n):
    stay("alone")
"""


def test_nothing_runs_beside_a_test_that_measures(tmp_path):
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "conftest.py").write_text((ROOT / "tests/conftest.py").read_text())
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = alone\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "LOG": str(tmp_path / "log")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "16 passed" in done.stdout, done.stdout
    inside: list[str] = []
    beside = 0
    for line in (tmp_path / "log").read_text().splitlines():
        name, way = line.split()
        if way == "in":
            inside.append(name)
        else:
            inside.remove(name)
        assert "alone" not in inside or inside == ["alone"]
        beside = max(beside, len(inside))
    assert beside == 2
