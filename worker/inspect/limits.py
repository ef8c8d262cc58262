"""What an architecture allows, and functions that ask for more."""

from __future__ import annotations

from dataclasses import dataclass

from contract.statics import FunctionStatics


@dataclass(frozen=True)
class ArchitectureLimits:
    """CUDA C++ programming guide, table "technical specifications per compute capability"."""

    shared_bytes_a_block: int
    registers_a_block: int = 65_536
    threads_a_block: int = 1024


LIMITS: dict[str, ArchitectureLimits] = {
    "sm_89": ArchitectureLimits(shared_bytes_a_block=99 << 10),
    "sm_90a": ArchitectureLimits(shared_bytes_a_block=227 << 10),
    "sm_103a": ArchitectureLimits(shared_bytes_a_block=227 << 10),
}


def excess(function: FunctionStatics, *, threads: int | None = None) -> str | None:
    """What `function` needs beyond its architecture's limits, in words; None where it fits."""
    limits = LIMITS.get(function.architecture)
    if limits is None:
        return None
    name, arch = function.function, function.architecture
    shared = (function.static_shared_bytes or 0) + (function.dynamic_shared_bytes or 0)
    if shared > limits.shared_bytes_a_block:
        return f"{name} needs {shared} bytes of shared memory; {arch} has {limits.shared_bytes_a_block} a block"
    if threads is not None and threads > limits.threads_a_block:
        return f"{name} needs {threads} threads a block; {arch} has {limits.threads_a_block}"
    registers = (function.registers or 0) * (threads or 0)
    if registers > limits.registers_a_block:
        return f"{name} needs {registers} registers a block; {arch} has {limits.registers_a_block}"
    return None
