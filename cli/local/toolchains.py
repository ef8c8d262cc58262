"""Which languages this machine can compile."""

from __future__ import annotations

import importlib.util

from contract.devices import ARCHITECTURES, DeviceClass


def compiles_cuda() -> bool:
    from worker.settings import WorkerSettings  # noqa: PLC0415
    from worker.toolchains import ToolchainMissing, toolchain_for  # noqa: PLC0415

    try:
        toolchain_for("cuda", WorkerSettings()).versions()
    except ToolchainMissing:
        return False
    return True


def compiles_triton() -> bool:
    """Whether Triton and torch are installed; importing them would take seconds."""
    return all(importlib.util.find_spec(name) is not None for name in ("triton", "torch"))


def build_only_classes() -> tuple[DeviceClass, ...]:
    """The classes for whose cards a worker here compiles without having one."""
    return tuple(ARCHITECTURES) if compiles_cuda() or compiles_triton() else ()
