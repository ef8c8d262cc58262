"""The CPU as a device: NumPy, an arena in a memfd, and quiet means that nothing of ours runs."""

from __future__ import annotations

import fcntl
import hashlib
import mmap
import os
import platform
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from contract.layout import DTYPE_BYTES, Placed, SlotLayout
from contract.report import Environment
from worker.launch.family import descendants, running
from worker.operators.base import SCRATCH_BYTES
from worker.operators.products import ArrayProducts

_CPP = Path(__file__).resolve().parent.parent / "launch" / "cpp.py"
_CPUS = Path("/sys/devices/system/cpu/cpu0")
# Enough for bursts that leave every cache; more would only cost page faults.
_LARGEST_ARENA = 96 << 20
# A core's FLOP a cycle: two units of 512-bit multiply-adds; with tiles (AMX, SME) a 16x16 tile a step of 32 products.
_VECTOR_FLOPS, _MATRIX_FLOPS, _HIGHEST_HZ = {"fp16": 128, "fp32": 64}, 2048, 6e9
_DTYPES: dict[str, Any] = {"fp16": np.float16, "fp32": np.float32}


class CpuArena:
    def __init__(self, size: int) -> None:
        self.bytes = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        self.fd = os.memfd_create("arena", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, self.bytes)
        # A launcher that made it smaller would end the judge at its next look.
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        self._map = mmap.mmap(self.fd, self.bytes)
        self._all = np.frombuffer(self._map, dtype=np.uint8)

    def tensor(self, layout: SlotLayout, placed: Placed, slots: int) -> Any:
        tensor = placed.tensor
        itemsize = DTYPE_BYTES[tensor.dtype]
        return np.ndarray(
            (slots, *tensor.shape),
            _DTYPES[tensor.dtype],
            buffer=self._map,
            offset=placed.offset,
            strides=(layout.slot_bytes, *(stride * itemsize for stride in tensor.strides)),
        )

    def raw(self, first_byte: int, last_byte: int, layout: SlotLayout, slots: int) -> Any:
        used = self._all[: slots * layout.slot_bytes].reshape(slots, layout.slot_bytes)
        return used[:, first_byte:last_byte]

    def close(self) -> None:
        del self._all
        os.close(self.fd)


class CpuDevice:
    """`timed_kind` is uniform: drawn four times as fast as normal, and a CPU's speed doesn't depend on it."""

    xp = np
    measures_itself = False
    reference_dtype = np.float64
    scratch_bytes = SCRATCH_BYTES
    timed_kind = "uniform"
    launcher = ("-I", "-S", str(_CPP))
    baseline_device = "cpu"

    def __init__(self) -> None:
        self.l2_bytes = _l2_bytes()

    def arena(self, size: int) -> CpuArena:
        return CpuArena(size)

    def arena_budget(self) -> int:
        return min(_LARGEST_ARENA, _available_bytes() // 4)

    def synchronize(self) -> None:
        """NumPy has finished when it returns."""

    def release_scratch(self) -> None:
        """NumPy keeps nothing."""

    def quiet(self) -> bool:
        return not any(running(pid) for pid in descendants(os.getpid()))

    def clocks(self) -> dict[str, str | float | bool]:
        frequency = _read(_CPUS / "cpufreq" / "scaling_cur_freq")
        return {"cpu_clock_mhz": int(frequency) / 1e3} if frequency.isdecimal() else {}

    def power_capped(self) -> bool:
        return False

    def energy_mj(self) -> float | None:
        return None

    def random(self, kind: str, out: Any, seeds: Sequence[int]) -> None:
        for slot, seed in zip(out, seeds, strict=True):
            rng = np.random.Generator(np.random.SFC64(_entropy(seed)))
            if slot.dtype == np.float32 and slot.flags.c_contiguous:
                _draw(rng, kind, slot)
            else:
                values = np.empty(slot.shape, np.float32)
                _draw(rng, kind, values)
                slot[...] = values

    def as_drawn(self, kind: str, view: Any, seeds: Sequence[int]) -> bool:
        step = max(1, self.scratch_bytes // max(1, view[:1].nbytes))
        for at in range(0, len(seeds), step):
            part = view[at : at + step]
            again = np.empty(part.shape, part.dtype)
            self.random(kind, again, seeds[at : at + step])
            if not np.array_equal(_bits(again), _bits(part)):
                return False
        return True

    def set_bits(self, out: Any, bits: int) -> None:
        _bits(out)[...] = bits

    def has_bits(self, view: Any, slots: Sequence[int], bits: int) -> bool:
        return bool((_bits(view)[list(slots)] == bits).all())

    def products(self, work: Any) -> ArrayProducts:
        return ArrayProducts(work)

    def roofline_us(self, *, flops: float, bytes_moved: float, dtype: str) -> float:
        """Far above what any core does: it tells work from no work, no more. Caches have no such bound on bytes."""
        del bytes_moved
        a_cycle = _MATRIX_FLOPS if _has_matrix_unit() else _VECTOR_FLOPS[dtype]
        return flops / (a_cycle * _HIGHEST_HZ * (os.cpu_count() or 1)) * 1e6

    def environment(self) -> Environment:
        model = _cpu_model()
        return Environment(
            device=model,
            cpu=model,
            host_cores=os.cpu_count(),
            libraries={"numpy": np.__version__},
            clocks=self.clocks(),
        )


def _bits(array: Any) -> Any:
    return array.view(f"u{array.itemsize}")


def _draw(rng: np.random.Generator, kind: str, out: Any) -> None:
    if kind == "normal":
        rng.standard_normal(dtype=np.float32, out=out)
    elif kind == "uniform":
        rng.random(dtype=np.float32, out=out)
        out *= 2
        out -= 1
    else:
        raise ValueError(f"{kind} is not a kind of draw (normal, uniform)")


def _entropy(seed: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(
        struct.unpack("<4I", hashlib.blake2b(seed.to_bytes(8, "little"), digest_size=16).digest())
    )


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _l2_bytes() -> int:
    """All cores' second-level caches together; 4 MiB where the system doesn't say."""
    for index in range(8):
        cache = _CPUS / "cache" / f"index{index}"
        size = _read(cache / "size")
        if _read(cache / "level") == "2" and size.endswith("K"):
            return int(size[:-1]) * 1024 * (os.cpu_count() or 1)
    return 4 << 20


def _available_bytes() -> int:
    for line in _read(Path("/proc/meminfo")).splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 2 << 30


def _has_matrix_unit() -> bool:
    flags = next((line for line in _read(Path("/proc/cpuinfo")).splitlines() if line.startswith(("flags", "Feat"))), "")
    return any(flag.startswith(("amx", "sme")) for flag in flags.split())


def _cpu_model() -> str:
    for line in _read(Path("/proc/cpuinfo")).splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
