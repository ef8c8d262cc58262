"""The central story over PostgreSQL, as over SQLite: submit, verdict, history, and the same again without a service."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import revisions
from tests.e2e.stack import Stack, until

# The fixture that starts a private cluster.
from tests.service.conftest import postgresql

__all__ = ["postgresql"]
SLOW = 'for (int again = 0; again < 15; ++again) { asm volatile("" ::: "memory"); gemm(call, m); }'
CASE = {"m": 64, "n": 64, "k": 64}


@pytest.fixture(params=["sqlite", "postgresql"])
def stack(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stack]:
    url = request.getfixturevalue("postgresql") if request.param == "postgresql" else None
    stack = Stack(tmp_path, database_url=url, worker={"KERNELGATE_MAX_PROCESSES": "16"})
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()


@pytest.mark.alone
def test_submit_verdict_history_and_reproduce(stack: Stack, tmp_path: Path) -> None:
    kernel = stack.kernel(revisions=["v1", "v2"], cases=[{"dims": CASE}], policy={"allowed_slowdown": 0.5})
    first = stack.ended(stack.submit(revisions.files(revisions.source(), label="v1"), kernel=kernel))
    assert (first["outcome"], first["base"]) == ("passed", None)
    second = stack.ended(stack.submit(revisions.files(revisions.source(SLOW), label="v2"), kernel=kernel))
    assert second["outcome"] == "slower", second
    assert second["base"]["label"] == "v1"
    [case] = second["cases"]
    assert case["judgement"]["interval"][0] > 1.2
    assert {stage["stage"] for stage in second["stages"]} >= {
        "fetch",
        "build",
        "inspect",
        "verify",
        "measure",
        "report",
    }

    query = {"device_class": "cpu", "case": case["case"], "metric": "time"}
    series = stack.api.ok("GET", f"/projects/local/kernels/{kernel}/history", params=query)
    assert [(point["label"], point["outcome"]) for point in series["points"]] == [("v1", "passed"), ("v2", "slower")]
    assert series["points"][1]["verdict"] == "slower"
    assert series["points"][0]["value"] < series["points"][1]["value"]
    until(stack.idle, "the worker is idle")

    here = _run_here(tmp_path, kernel, case["case"])
    assert here["outcome"] == "slower"
    assert here["cases"][0]["judgement"]["interval"][0] > 1.2


def _run_here(tmp_path: Path, kernel: str, case: str) -> dict:
    root = tmp_path / "kernels" / kernel
    for label, body in (("v1", ""), ("v2", SLOW)):
        (root / label).mkdir(parents=True)
        for name, text in revisions.files(revisions.source(body), label=label).items():
            (root / label / name).write_text(text)
    (root / "suite.toml").write_text(
        f'kernel = "{kernel}"\noperator = "gemm"\ndtype = "fp32"\ndevice_classes = ["cpu"]\n'
        'revisions = ["v1", "v2"]\n[policy]\nallowed_slowdown = 0.5\n[[cases]]\ndims = { m = 64, n = 64, k = 64 }\n'
    )
    command = [sys.executable, "-m", "cli.main", "run", str(root / "v2"), "--base", str(root / "v1"), "--case", case]
    done = subprocess.run(
        [*command, "--json"],
        env={**os.environ, "KERNELGATE_CACHE_DIR": str(tmp_path / "cache-run"), "KERNELGATE_MAX_PROCESSES": "16"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    return json.loads(done.stdout)
