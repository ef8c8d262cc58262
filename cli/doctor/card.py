"""The GPU: what NVML says of it, its clocks, and a kernel really run. Everything in children with time limits."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from cli.doctor.compilers import compile_probe, nvcc_path
from cli.doctor.findings import Answer, Finding, Purpose, ask
from contract.devices import device_class_of

_NEEDED = (Purpose.GPU,)


def card() -> tuple[Finding, ...]:
    answer, seen = _seen()
    if not seen["gpus"]:
        why = answer.complaint if answer.returncode != 0 else "NVML knows no GPU"
        return (
            _missing("GPU", why, "a GPU node needs NVIDIA's driver, 580 or later"),
            _missing("kernel run", "no GPU", "as above"),
        )
    gpu = seen["gpus"][0]
    return (_device(gpu, driver=seen["driver"], count=len(seen["gpus"])), _clocks(gpu), _kernel(gpu))


def first_gpu() -> dict[str, Any] | None:
    """What NVML says of it; None where it knows none."""
    return next(iter(_seen()[1]["gpus"]), None)


def _seen() -> tuple[Answer, dict[str, Any]]:
    answer = ask((sys.executable, "-m", "cli.doctor.probes.nvml"))
    return answer, json.loads(answer.stdout) if answer.returncode == 0 else {"gpus": []}


def _device(gpu: dict[str, Any], *, driver: str, count: int) -> Finding:
    known = device_class_of(gpu["name"])
    detail = f"{gpu['name']}, {gpu['memory_bytes'] / 2**30:.0f} GiB, driver {driver}"
    detail += f", the first of {count}" if count > 1 else ""
    if known is None:
        return _missing("GPU", detail, "no device class has this name: contract/devices.py, CONTRIBUTING.md")
    busy = f", {gpu['processes']} processes on it" if gpu["processes"] else ""
    return Finding(name="GPU", state="ok", detail=f"{detail}, class {known}{busy}", needed_for=_NEEDED)


def _clocks(gpu: dict[str, Any]) -> Finding:
    """NVML does not tell whether clocks are locked; a GPU that idles at its highest clock is."""
    if gpu["sm_mhz"] is None or gpu["max_sm_mhz"] is None:
        return Finding(name="clocks", state="ok", detail="the device reports none", needed_for=_NEEDED)
    limit = f", power limit {gpu['power_limit_mw'] / 1000:.0f} W" if gpu["power_limit_mw"] else ""
    return Finding(
        name="clocks",
        state="ok",
        detail=f"SM at {gpu['sm_mhz']} of {gpu['max_sm_mhz']} MHz{limit}",
        advice="recorded with every burst; locking them (nvidia-smi --lock-gpu-clocks) narrows intervals",
        needed_for=_NEEDED,
    )


def _kernel(gpu: dict[str, Any]) -> Finding:
    nvcc = nvcc_path()
    if nvcc is None:
        return _missing("kernel run", "nothing to compile one with", "see nvcc")
    with tempfile.TemporaryDirectory() as folder:
        built = compile_probe(nvcc, architecture=f"sm_{gpu['capability']}", folder=Path(folder))
        if built.returncode != 0:
            return _missing("kernel run", built.complaint, f"an nvcc that knows sm_{gpu['capability']}")
        command = (sys.executable, "-m", "cli.doctor.probes.kernel", f"{folder}/probe.cubin")
        ran = ask(command, limit_s=60.0)
    if ran.returncode != 0:
        return _missing("kernel run", ran.complaint, "see the driver's log (dmesg) and docs/operations.md")
    return Finding(
        name="kernel run",
        state="ok",
        detail=f"compiled, launched and right in {ran.stdout.strip()} us",
        needed_for=_NEEDED,
    )


def _missing(name: str, detail: str, advice: str) -> Finding:
    return Finding(name=name, state="missing", detail=detail, advice=advice, needed_for=_NEEDED)
