"""Builds a fixture, records it and replays it, without the judge's core: the smallest whole path."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from contract.layout import Role
from contract.record import LaunchRecord
from contract.suite import Suite
from worker.judge.device_cuda import CudaArena, CudaDevice
from worker.launch.client import Launcher
from worker.operators import OPERATORS, operator_of_suite
from worker.operators.base import Operator
from worker.protocol import (
    Attach,
    GpuArtifact,
    Load,
    Prepare,
    RecordCase,
    Recorded,
    RecorderSays,
    RecordFailed,
    RecordJob,
    Side,
)

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = Path(__file__).parent / "fixtures"
LIMIT_S = 60.0
_SAYS: TypeAdapter[Any] = TypeAdapter(RecorderSays)


@dataclass(frozen=True)
class Library:
    path: Path
    cubins: dict[str, str]


@functools.cache
def device() -> CudaDevice:
    return CudaDevice()


@functools.cache
def arena() -> CudaArena:
    return device().arena(6 << 30)


@functools.cache
def room() -> Path:
    return Path(tempfile.mkdtemp(prefix="kernelgate-gpu-"))


@functools.cache
def architecture() -> str:
    capability = device().xp.cuda.Device().compute_capability
    return f"sm_{capability}{'a' if int(capability) >= 90 else ''}"


@functools.cache
def build(source: Path, *flags: str) -> Library:
    folder = room() / f"{source.parent.name}-{source.stem}"
    folder.mkdir()
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    virtual = architecture().replace("sm_", "compute_")
    library = folder / "kernel.so"
    subprocess.run(
        [
            nvcc, "-O3", "-std=c++17", "-shared", "-Xcompiler=-fPIC", "-cudart=static", *flags,
            f"-gencode=arch={virtual},code={architecture()}", f"-I{ROOT / 'worker' / 'toolchains' / 'include'}",
            f"-I{source.parent}", "--keep", f"--keep-dir={folder}", str(source), "-o", str(library),
        ],
        check=True,
        timeout=120,
        cwd=folder,
    )  # fmt: skip
    cubins = {
        hashlib.sha256(f.read_bytes()).hexdigest(): str(f) for f in folder.glob("*.cubin") if "dlink" not in f.name
    }
    return Library(path=library, cubins=cubins)


def case_id(dims: dict[str, int]) -> str:
    return ",".join(f"{name}={value}" for name, value in dims.items())


def record_all(
    source: Path, *, entry: str, cases: list[dict[str, int]], operator: Operator, cubins: dict[str, str] | None
) -> list[Recorded | RecordFailed]:
    """What the recorder says of each case. Without `cubins` the source is a Triton module."""
    out = Path(tempfile.mkdtemp(dir=room()))
    job = RecordJob(
        language="triton" if cubins is None else "cuda",
        source=str(source),
        entry=entry,
        cases=tuple(
            RecordCase(case=case_id(dims), dims=dims, tensors=operator.tensors(dims, "fp16")) for dims in cases
        ),
        cubins=cubins or {},
        out_dir=str(out),
    )
    done = subprocess.run(
        [sys.executable, "-m", "worker.record"],
        input=job.model_dump_json() + "\n",
        capture_output=True,
        text=True,
        timeout=180,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", "")))},
        cwd=out,
        check=False,
    )
    said = [_SAYS.validate_json(line) for line in done.stdout.splitlines()]
    ended = [line for line in said if isinstance(line, Recorded | RecordFailed)]
    if len(ended) < len(cases) and not any(isinstance(line, RecordFailed) for line in ended):
        raise AssertionError(f"the recorder ended with {done.returncode}: {done.stdout} {done.stderr[-2000:]}")
    return ended


def record(
    source: Path,
    *,
    entry: str,
    dims: dict[str, int],
    operator: str = "gemm",
    cubins: dict[str, str] | None = None,
) -> Recorded | RecordFailed:
    return record_all(source, entry=entry, cases=[dims], operator=OPERATORS[operator], cubins=cubins)[0]


def recorded(source: Path, **how: Any) -> tuple[LaunchRecord, Recorded]:
    said = record(source, **how)
    assert isinstance(said, Recorded), said
    return LaunchRecord.model_validate_json(Path(said.record).read_bytes()), said


def side(label: str, source: Path, *, entry: str, suite: Suite, cubins: dict[str, str] | None) -> Side:
    """A revision for the judge: recorded for all cases of the suite."""
    cases = [case.dims for case in (*suite.cases, *suite.verify_cases)]
    said = record_all(source, entry=entry, cases=cases, operator=operator_of_suite(suite), cubins=cubins)
    refused = [line for line in said if isinstance(line, RecordFailed)]
    assert not refused, refused
    done = [line for line in said if isinstance(line, Recorded)]
    artifact = GpuArtifact(
        records={line.case: line.record for line in done},
        cubins={digest: path for line in done for digest, path in line.cubins.items()},
    )
    return Side(label=label, artifact_digest=hashlib.sha256(label.encode()).hexdigest(), artifact=artifact)


def start() -> Launcher:
    return Launcher(("-m", "worker.launch.cuda"), arena_fd=arena().fd, arena_bytes=arena().bytes)


def load(launcher: Launcher, record_: LaunchRecord, said: Recorded, dims: dict[str, int]) -> None:
    launcher.ask(
        Load(case=record_.case, dims=dims, layout=record_.layout, record=record_, cubins=said.cubins), limit_s=LIMIT_S
    )


def draw(record_: LaunchRecord, slots: int) -> tuple[list[Any], list[Any]]:
    """Random inputs and NaN outputs in every slot; (inputs, outputs) with a leading slot axis."""
    inputs, outputs = [], []
    for index, placed in enumerate(record_.layout.tensors):
        view = arena().tensor(record_.layout, placed, slots)
        if placed.tensor.role is Role.INPUT:
            device().random("normal", view, [1 + 1000 * index + slot for slot in range(slots)])
            inputs.append(view)
        else:
            view[...] = float("nan")
            outputs.append(view)
    device().synchronize()
    return inputs, outputs


def burst(launcher: Launcher, order: list[int]) -> tuple[float, float]:
    """(by the launcher's events, by this process's clock) microseconds a call."""
    launcher.ask(Prepare(slots=tuple(order)), limit_s=LIMIT_S)
    reply, clock_us = launcher.go(limit_s=LIMIT_S)
    assert reply.elapsed_us is not None
    return reply.elapsed_us / len(order), clock_us / len(order)


def worst_error(inputs: list[Any], outputs: list[Any], slots: list[int]) -> float:
    """Largest relative Frobenius error of a GEMM over the slots."""
    xp, worst = device().xp, 0.0
    for slot in slots:
        want = inputs[0][slot].astype(xp.float32) @ inputs[1][slot].astype(xp.float32)
        off = outputs[0][slot].astype(xp.float32) - want
        error = float(xp.linalg.norm(off) / xp.linalg.norm(want))
        worst = max(worst, error if error == error else float("inf"))
    return worst


def attached(record_: LaunchRecord, said: Recorded, dims: dict[str, int]) -> Launcher:
    launcher = start()
    launcher.ask(Attach(), limit_s=LIMIT_S)
    load(launcher, record_, said, dims)
    return launcher
