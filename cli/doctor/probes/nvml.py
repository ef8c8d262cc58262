"""What NVML says of each GPU, as JSON."""

from __future__ import annotations

import json
import sys
from typing import Any

import pynvml


def gpus() -> dict[str, Any]:
    pynvml.nvmlInit()
    return {
        "driver": pynvml.nvmlSystemGetDriverVersion(),
        "gpus": [_describe(pynvml.nvmlDeviceGetHandleByIndex(i)) for i in range(pynvml.nvmlDeviceGetCount())],
    }


def _describe(handle: Any) -> dict[str, Any]:
    major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    return {
        "name": pynvml.nvmlDeviceGetName(handle),
        "capability": f"{major}{minor}",
        "memory_bytes": memory.total,
        "free_bytes": memory.free,
        "sm_mhz": _optional(pynvml.nvmlDeviceGetClockInfo, handle, pynvml.NVML_CLOCK_SM),
        "max_sm_mhz": _optional(pynvml.nvmlDeviceGetMaxClockInfo, handle, pynvml.NVML_CLOCK_SM),
        "power_limit_mw": _optional(pynvml.nvmlDeviceGetEnforcedPowerLimit, handle),
        "processes": len(_optional(pynvml.nvmlDeviceGetComputeRunningProcesses, handle) or []),
    }


def _optional(query: Any, *arguments: Any) -> Any:
    try:
        return query(*arguments)
    except pynvml.NVMLError:
        return None


if __name__ == "__main__":
    try:
        print(json.dumps(gpus()))
    except pynvml.NVMLError as error:
        sys.exit(f"NVML: {error}")
