"""Compilers for GPUs: what they are, and whether they compile."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from cli.doctor.findings import Answer, Finding, Purpose, ask
from worker.toolchains.base import ToolchainMissing
from worker.toolchains.nvcc import find_nvcc

PROBE = Path(__file__).parent / "probes" / "kernel.cu"
TRITON_TARGETS = ("89", "90", "103")
_NEEDED = (Purpose.COMPILE, Purpose.GPU)


def nvcc_path() -> Path | None:
    try:
        return find_nvcc(None).path
    except ToolchainMissing:
        return None


def nvcc() -> Finding:
    try:
        found = find_nvcc(None)
    except ToolchainMissing as error:
        advice = "pip install -c constraints.txt -e '.[nvcc]'"
        return Finding(name="nvcc", state="missing", detail=str(error), advice=advice, needed_for=_NEEDED)
    with tempfile.TemporaryDirectory() as folder:
        built = compile_probe(found.path, architecture="sm_90a", folder=Path(folder))
    works = built.returncode == 0
    return Finding(
        name="nvcc",
        state="ok" if works else "missing",
        detail=f"{found.version} ({found.path})" + ("" if works else f", but: {built.complaint}"),
        advice="" if works else "reinstall the CUDA toolkit",
        needed_for=_NEEDED,
    )


def compile_probe(path: Path, *, architecture: str, folder: Path) -> Answer:
    """Leaves `probe.cubin` in `folder`."""
    command = (str(path), "-cubin", f"-arch={architecture}", "-o", str(folder / "probe.cubin"), str(PROBE))
    return ask(command, limit_s=60.0)


def triton() -> Finding:
    answer = ask((sys.executable, "-m", "cli.doctor.probes.triton", *TRITON_TARGETS), limit_s=120.0)
    works = answer.returncode == 0
    return Finding(
        name="Triton",
        state="ok" if works else "missing",
        detail=f"compiles for {', '.join(answer.stdout.split())}" if works else answer.complaint,
        advice="" if works else "pip install -c constraints.txt -e '.[cpu]'",
        needed_for=_NEEDED,
    )
