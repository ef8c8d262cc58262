"""The launchers as the judge sees them: replies, deadlines, deaths, freezing."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contract.layout import SlotLayout, lay_out
from contract.outcomes import Reason
from worker.judge.device_cpu import CpuArena, CpuDevice
from worker.launch.client import Launcher, LauncherError
from worker.operators.gemm import GEMM
from worker.protocol import Attach, Detach, Load, Prepare

INCLUDE = Path(__file__).parents[3] / "worker" / "toolchains" / "include"
DIMS = {"m": 8, "n": 8, "k": 8}
LAYOUT: SlotLayout = lay_out(GEMM.tensors(DIMS, "fp32"))
SOURCE = """
#include <kernelgate.h>
#include <unistd.h>
extern "C" KG_EXPORT int first_product(const kg_call* call) {
  const float* a = (const float*)call->in[0].data;
  const float* b = (const float*)call->in[1].data;
  if (call->n_in != 2 || call->n_out != 1 || kg_param_value(call, "k") != 8) return 2;
  if (call->in[0].rank != 2 || call->in[0].stride[0] != 8 || call->in[0].stride[1] != 1) return 3;
  if (call->in[0].dtype != KG_FP32 || call->workspace != NULL) return 4;
  ((float*)call->out[0].data)[0] = a[0] * b[0];
  return 0;
}
extern "C" KG_EXPORT int sleeps(const kg_call*) { for (;;) pause(); }
extern "C" KG_EXPORT int exits(const kg_call*) { _exit(3); }
extern "C" KG_EXPORT int fails(const kg_call*) { return 9; }
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("library")
    (folder / "kernel.cpp").write_text(SOURCE, encoding="utf-8")
    compiler = shutil.which("g++")
    assert compiler, "g++ is needed"
    out = str(folder / "kernel.so")
    command = [compiler, "-shared", "-fPIC", f"-I{INCLUDE}", str(folder / "kernel.cpp"), "-o", out]
    subprocess.run(command, check=True)
    return out


@pytest.fixture
def arena() -> Iterator[CpuArena]:
    arena = CpuArena(8 * LAYOUT.slot_bytes)
    yield arena
    arena.close()


@pytest.fixture
def launcher(arena: CpuArena) -> Iterator[Launcher]:
    launcher = Launcher(CpuDevice.launcher, arena_fd=arena.fd, arena_bytes=arena.bytes, freezes=True)
    yield launcher
    launcher.close()


def load(library: str, entry: str) -> Load:
    return Load(case="m=8,n=8,k=8", dims=DIMS, layout=LAYOUT, library=library, entry=entry)


def views(arena: CpuArena) -> list[Any]:
    return [arena.tensor(LAYOUT, placed, 8) for placed in LAYOUT.tensors]


def test_calls_run_on_the_prepared_slots_only(launcher: Launcher, arena: CpuArena, library: str) -> None:
    a, b, c = views(arena)
    launcher.ask(load(library, "first_product"), limit_s=10)
    launcher.ask(Attach(), limit_s=10)
    launcher.ask(Prepare(slots=(5, 2)), limit_s=10)
    a[:], b[:] = 3, np.arange(8, dtype=np.float32)[:, None, None]
    reply, clock_us = launcher.go(limit_s=10)
    launcher.ask(Detach(), limit_s=10)
    assert reply.elapsed_us is None
    assert clock_us > 0
    assert c[:, 0, 0].tolist() == [0, 0, 6, 0, 0, 15, 0, 0]


def test_a_launcher_is_frozen_whenever_it_is_not_asked(launcher: Launcher, library: str) -> None:
    launcher.ask(load(library, "first_product"), limit_s=10)
    deadline = time.monotonic() + 5
    while state(launcher.pid) != "T":
        assert time.monotonic() < deadline


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]


@pytest.mark.parametrize(
    ("entry", "reason", "words"),
    [
        ("sleeps", Reason.TIMED_OUT, "no answer within 0.5 s"),
        ("exits", Reason.CRASHED, "exited with 3"),
        ("fails", Reason.RETURNED_ERROR, "call 1 of 1 returned 9"),
    ],
)
def test_a_call_that_goes_wrong_says_how(
    launcher: Launcher, library: str, entry: str, reason: Reason, words: str
) -> None:
    launcher.ask(load(library, entry), limit_s=10)
    launcher.ask(Attach(), limit_s=10)
    launcher.ask(Prepare(slots=(0,)), limit_s=10)
    with pytest.raises(LauncherError, match=words) as caught:
        launcher.go(limit_s=0.5)
    assert caught.value.reason is reason


def test_a_missing_entry_is_named(launcher: Launcher, library: str) -> None:
    with pytest.raises(LauncherError, match="exports no function nothing") as caught:
        launcher.ask(load(library, "nothing"), limit_s=10)
    assert caught.value.reason is Reason.ENTRY_MISSING


def test_closing_ends_a_frozen_process(arena: CpuArena, library: str) -> None:
    launcher = Launcher(CpuDevice.launcher, arena_fd=arena.fd, arena_bytes=arena.bytes, freezes=True)
    launcher.ask(load(library, "first_product"), limit_s=10)
    launcher.close()
    with pytest.raises(ProcessLookupError):
        os.kill(launcher.pid, 0)


def test_the_environment_of_the_service_does_not_reach_a_launcher(
    arena: CpuArena, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNELGATE_TOKEN", "secret")
    monkeypatch.setenv("LD_PRELOAD", "")
    launcher = Launcher(CpuDevice.launcher, arena_fd=arena.fd, arena_bytes=arena.bytes)
    launcher.ask(load(library, "first_product"), limit_s=10)
    environment = Path(f"/proc/{launcher.pid}/environ").read_bytes()
    launcher.close()
    assert b"KERNELGATE" not in environment
    assert b"LD_PRELOAD" not in environment


def test_the_baseline_multiplies_in_the_arena(arena: CpuArena) -> None:
    baseline = Launcher(
        ("-m", "worker.launch.baseline", "--device", "cpu"), arena_fd=arena.fd, arena_bytes=arena.bytes, trusted=True
    )
    a, b, c = views(arena)
    command = Load(case="m=8,n=8,k=8", dims=DIMS, layout=LAYOUT, operator="gemm", backend="blas")
    reply = baseline.ask(command, limit_s=120)
    baseline.ask(Attach(), limit_s=10)
    baseline.ask(Prepare(slots=(1, 3)), limit_s=10)
    a[:], b[:] = 2, 3
    baseline.go(limit_s=10)
    baseline.ask(Detach(), limit_s=10)
    baseline.close()
    assert reply.baseline is not None
    assert reply.baseline.startswith("torch ")
    assert c[:, 0, 0].tolist() == [0, 48, 0, 48, 0, 0, 0, 0]
