"""NVIDIA's tools over a kernel, in the sandbox where there is one: what they may do there shows when they are tried."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from cli.doctor import card
from cli.doctor.compilers import compile_probe, nvcc_path
from cli.doctor.findings import Finding, Purpose, ask
from contract.devices import ARCHITECTURES, device_class_of
from worker.examine import ncu, programs, sanitizer
from worker.examine.programs import NotHereError, Program
from worker.sandbox import choose
from worker.settings import WorkerSettings

LIMIT_S = 90.0
_CLI = Path(__file__).resolve().parents[1]
_KERNEL = "probe"
_HOW = "docs/operations.md, Sanitizer and profile"


class _NotTriedError(Exception):
    """Nothing could be looked at; the message says why."""


def tools(settings: WorkerSettings | None = None) -> Iterator[Finding]:
    """`settings` are those of the worker whose tools and sandbox are tried."""
    chosen, gpu = settings or WorkerSettings(), card.first_gpu()
    yield _finding(
        "compute-sanitizer",
        Purpose.SANITIZE,
        lambda: programs.compute_sanitizer(chosen.compute_sanitizer),
        lambda program: _sanitized(program, gpu, chosen),
    )
    yield _finding(
        "GPU counters",
        Purpose.PROFILE,
        lambda: programs.ncu(chosen.ncu),
        lambda program: _counted(program, gpu, chosen),
    )


def _finding(
    name: str, purpose: Purpose, find: Callable[[], Program], broken: Callable[[Program], str | None]
) -> Finding:
    try:
        program = find()
    except NotHereError as error:
        advice = "install the CUDA toolkit's; evaluations leave the stage out"
        return Finding(name=name, state="missing", detail=str(error), advice=advice, needed_for=(purpose,))
    try:
        said = broken(program)
    except _NotTriedError as error:
        said = str(error)
    version = re.search(r"\d+\.\d+[.\d]*", ask((str(program.path), "--version")).stdout)
    detail = f"{version[0] if version else 'of no known version'} ({program.path})"
    return Finding(
        name=name,
        state="ok" if said is None else "missing",
        detail=f"{detail}, tried" if said is None else f"{detail}, but: {said}",
        advice="" if said is None else _HOW,
        needed_for=(purpose,),
    )


def _sanitized(program: Program, gpu: dict[str, Any] | None, settings: WorkerSettings) -> str | None:
    """Why it can't look at a kernel; None where it can."""
    text = _looked(program, gpu, settings, lambda log: sanitizer.command(program.path, "memcheck", log=log))
    log = sanitizer.read(text)
    return None if log.errors == 0 else log.complaint or log.finding or "it did not get to its end"


def _counted(program: Program, gpu: dict[str, Any] | None, settings: WorkerSettings) -> str | None:
    known = device_class_of(gpu["name"]) if gpu else None
    architecture = ARCHITECTURES.get(known, "") if known else ""
    text = _looked(program, gpu, settings, lambda log: ncu.command(program.path, log=log, architecture=architecture))
    try:
        ncu.metrics_of(text, (_KERNEL,), architecture=architecture)
    except ncu.CountersError as error:
        return str(error)
    return None


def _looked(
    program: Program, gpu: dict[str, Any] | None, settings: WorkerSettings, command: Callable[[Path], tuple[str, ...]]
) -> str:
    """What the tool wrote of a kernel that it saw run."""
    nvcc = nvcc_path()
    if gpu is None or nvcc is None:
        raise _NotTriedError("there is no GPU" if gpu is None else "there is no nvcc to compile a kernel with")
    with tempfile.TemporaryDirectory() as name:
        folder, out = Path(name), Path(name) / "out"
        out.mkdir()
        built = compile_probe(nvcc, architecture=f"sm_{gpu['capability']}", folder=folder)
        if built.returncode != 0:
            raise _NotTriedError(built.complaint)
        sandbox = choose(settings)
        prefix = sandbox.prefix(readable=(folder, _CLI, *program.needs), writable=(out,), gpu=True)
        kernel = (sys.executable, "-m", "cli.doctor.probes.kernel", str(folder / "probe.cubin"))
        try:
            ran = ask(("env", f"PYTHONPATH={_CLI.parent}", *prefix, *command(out / "log"), *kernel), limit_s=LIMIT_S)
        finally:
            sandbox.close()
        log = out / "log"
        if not log.is_file():
            raise _NotTriedError(ran.complaint)
        return log.read_text(errors="replace")
