"""What the judge needs of a device: array module, arena, quiet probe, clocks. NumPy on a CPU, CuPy on a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any, Protocol

from contract.layout import Placed, SlotLayout
from contract.report import Environment
from worker.operators.products import Products


class Arena(Protocol):
    """The memory that judge and launchers share; its descriptor `fd` is inherited by launchers."""

    @property
    def fd(self) -> int: ...

    @property
    def bytes(self) -> int: ...

    def tensor(self, layout: SlotLayout, placed: Placed, slots: int) -> Any:
        """View of one tensor in slots 0..slots-1: array of shape (slots, *shape), slot stride `layout.slot_bytes`."""

    def raw(self, first_byte: int, last_byte: int, layout: SlotLayout, slots: int) -> Any:
        """View of bytes [first_byte, last_byte) of each slot: uint8 array of shape (slots, n)."""

    def close(self) -> None: ...


class Device(Protocol):
    """One device, held by the judge alone. A constructor takes no arguments: `CpuDevice()`, `CudaDevice()`.

    xp: the array module, NumPy or CuPy.
    l2_bytes: the cache that a burst's slots must exceed several times.
    measures_itself: True: events in the launcher are the measure (GPU); False: the judge's clock alone (CPU), and
        whoever is not measured is frozen.
    reference_dtype: what references of fp16 operators are computed in (float64, or float32 with TF32 off).
    scratch_bytes: about what temporary arrays of a check may take.
    timed_kind: the draw of timed bursts' inputs, one of `random`'s kinds.
    launcher: arguments after the interpreter's path that start a launcher of head or base, without the arena's.
    baseline_device: the value of the baseline launcher's --device.
    """

    @property
    def xp(self) -> ModuleType: ...

    @property
    def l2_bytes(self) -> int: ...

    @property
    def measures_itself(self) -> bool: ...

    @property
    def reference_dtype(self) -> Any: ...

    @property
    def scratch_bytes(self) -> int: ...

    @property
    def timed_kind(self) -> str: ...

    @property
    def launcher(self) -> tuple[str, ...]: ...

    @property
    def baseline_device(self) -> str: ...

    def arena(self, size: int) -> Arena: ...

    def arena_budget(self) -> int:
        """Bytes that the arena may take: a quarter of what is free."""

    def synchronize(self) -> None: ...

    def release_scratch(self) -> None:
        """Give back what temporary arrays took (CuPy's pool), before launchers need it."""

    def quiet(self) -> bool:
        """Whether nothing but the judge runs on the device, now. One probe; the caller repeats it."""

    def clocks(self) -> dict[str, str | float | bool]:
        """SM clock, temperature, power, throttle reasons now; empty where the device reports none.

        Numbers carry their unit in the key: sm_clock_mhz, temperature_c, power_w, throttle (names, comma-separated).
        """

    def power_capped(self) -> bool:
        """Whether the card reports, now, that a power cap slows it down."""

    def energy_mj(self) -> float | None:
        """Total energy counter, where the card has one."""

    def random(self, kind: str, out: Any, seeds: Sequence[int]) -> None:
        """Fill `out` of shape (slots, ...), fp16 or fp32, possibly strided over slots, in place.

        kind 'normal': N(0, 1); 'uniform': [-1, 1). Slot i's content depends on kind, seeds[i] (64 bits) and its shape
        alone, bit for bit, wherever `out` lies: the judge draws again to see whether inputs were modified.
        Must be quick: on a GPU 1 GB in about 1 ms, one launch for all slots.
        """

    def as_drawn(self, kind: str, view: Any, seeds: Sequence[int]) -> bool:
        """Whether `view` still holds, bit for bit, what `random` gave for these."""

    def set_bits(self, out: Any, bits: int) -> None:
        """These bits in each element (1, 2 or 4 bytes) of `out` of shape (slots, ...), strided over slots only."""

    def has_bits(self, view: Any, slots: Sequence[int], bits: int) -> bool:
        """Whether each element of these slots still holds what `set_bits` gave it."""

    def products(self, work: Any) -> Products:
        """What checks multiply, in the dtype `work`."""

    def roofline_us(self, *, flops: float, bytes_moved: float, dtype: str) -> float:
        """No call of this much work can take less; 0 where the device's limits are not known."""

    def environment(self) -> Environment: ...
