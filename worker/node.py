"""What this node is. NVML is asked in a child with a time limit: with a wedged driver its calls never return."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

import pynvml
from pydantic import ValidationError

from contract.base import Model
from contract.devices import DeviceClass, device_class_of
from contract.job import NodeInfo
from worker.process import Limits, environment, run
from worker.sandbox import Sandbox
from worker.settings import WorkerSettings
from worker.spreads import stored

PROBE_LIMIT_S = 20.0
# What a killed process held is free once the driver has taken it apart.
FREE_LIMIT_S, FREE_MARGIN_BYTES = 20.0, 256 << 20
_LOOK_EVERY_S = 0.5


class Gpu(Model):
    """`used_bytes`: of its memory, by whomever; None where it doesn't say."""

    name: str
    uuid: str
    driver: str
    used_bytes: int | None = None


def describe(settings: WorkerSettings, *, sandbox: Sandbox, idle: bool = False) -> NodeInfo:
    """`healthy` is False where the device isn't there, doesn't answer, or is of another class than the settings say.
    Where nothing of this node should be on it (`idle`), also while its memory is not free."""
    gpu: Gpu | None = None
    device, problem = cpu_model(), sandbox.problem
    if settings.device_class != DeviceClass.CPU:
        gpu, silent = free_gpu() if idle else probe_gpu()
        problem = problem or silent
        device = gpu.name if gpu else "none"
        if gpu and device_class_of(gpu.name) != settings.device_class:
            problem = f"NVML calls this device {gpu.name!r}, which is not of class {settings.device_class}"
    return NodeInfo(
        name=settings.node_name,
        device_class=settings.device_class,
        host=platform.node(),
        device=device,
        driver=gpu.driver if gpu else None,
        healthy=problem is None,
        problem=problem,
        sandbox=sandbox.isolates,
        build_only_classes=settings.build_only_classes,
        spreads=stored(settings).spreads,
    )


def free_gpu() -> tuple[Gpu | None, str | None]:
    """`probe_gpu`, once its memory is as free as it was before any job. Waits for what a job left behind to go."""
    ends_at = time.monotonic() + FREE_LIMIT_S
    while True:
        gpu, problem = probe_gpu()
        if gpu is None or gpu.used_bytes is None:
            return gpu, problem
        least = _least_used[gpu.uuid]
        if gpu.used_bytes - least <= FREE_MARGIN_BYTES:
            return gpu, None
        if time.monotonic() > ends_at:
            used, before = gpu.used_bytes >> 20, least >> 20
            return gpu, (
                f"{used} MiB of the GPU's memory are in use, of which {before} MiB were before any job: end what holds"
                " the rest, or start the worker again if it is to stay"
            )
        time.sleep(_LOOK_EVERY_S)


def probe_gpu() -> tuple[Gpu | None, str | None]:
    """(the GPU that children will use, what is wrong)."""
    folder = Path(tempfile.gettempdir())
    done = run(
        [sys.executable, "-m", "worker.node"],
        limits=Limits(seconds=PROBE_LIMIT_S),
        cwd=folder,
        env=environment(home=folder),
    )
    if done.timed_out:
        return None, f"NVML did not answer within {PROBE_LIMIT_S:g} s"
    try:
        gpu = Gpu.model_validate_json(done.stdout)
    except ValidationError:
        return None, f"NVML: {done.stderr.decode('utf-8', 'replace')[-300:].strip() or 'no answer'}"
    if gpu.used_bytes is not None:
        _least_used[gpu.uuid] = min(gpu.used_bytes, _least_used.get(gpu.uuid, gpu.used_bytes))
    return gpu, None


# By UUID, since this process or the one that it was forked from has asked.
_least_used: dict[str, int] = {}


def known_gpu() -> tuple[Gpu | None, str | None]:
    """`probe_gpu`, asked once a process while it succeeds: what it says of names and versions stays."""
    if not _known:
        gpu, problem = probe_gpu()
        if gpu is None:
            return None, problem
        _known.append(gpu)
    return _known[0], None


_known: list[Gpu] = []


@cache
def cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _ask_nvml() -> Gpu:
    pynvml.nvmlInit()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip() or "0"
    by_index = visible.isdigit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(int(visible)) if by_index else pynvml.nvmlDeviceGetHandleByUUID(visible)
    return Gpu(
        name=pynvml.nvmlDeviceGetName(handle),
        uuid=pynvml.nvmlDeviceGetUUID(handle),
        driver=pynvml.nvmlSystemGetDriverVersion(),
        used_bytes=_used_bytes(handle),
    )


def _used_bytes(handle: Any) -> int | None:
    try:
        return int(pynvml.nvmlDeviceGetMemoryInfo(handle).used)
    except pynvml.NVMLError:
        return None


if __name__ == "__main__":
    try:
        print(_ask_nvml().model_dump_json())  # noqa: T201 - its parent reads it
    except pynvml.NVMLError as error:
        sys.exit(str(error))
