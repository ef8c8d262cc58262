"""What the judge needs of a device: an array module, the arena, a quiet probe, clocks. NumPy on a CPU, CuPy on a GPU."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Protocol

from contract.layout import Placed, SlotLayout
from contract.report import Environment


class Arena(Protocol):
    """The memory that judge and launchers share; its descriptor `fd` is inherited by launchers."""

    fd: int
    bytes: int

    def tensor(self, layout: SlotLayout, placed: Placed, slots: int) -> Any:
        """View of one tensor in slots 0..slots-1: array of shape (slots, *shape), slot stride `layout.slot_bytes`."""

    def raw(self, first_byte: int, last_byte: int, layout: SlotLayout, slots: int) -> Any:
        """View of bytes [first_byte, last_byte) of each slot: uint8 array of shape (slots, n)."""

    def close(self) -> None: ...


class Device(Protocol):
    xp: ModuleType
    l2_bytes: int
    measures_itself: bool  # True: events in the launcher are the measure (GPU); False: the judge's clock alone (CPU)

    def arena(self, size: int) -> Arena: ...

    def arena_budget(self) -> int:
        """Bytes that the arena may take: a quarter of what is free."""

    def synchronize(self) -> None: ...

    def quiet(self) -> bool:
        """Whether nothing but the judge runs on the device."""

    def clocks(self) -> dict[str, str | float | bool]:
        """SM clock, temperature, power, throttle reasons now; empty where the device reports none."""

    def power_capped(self) -> bool: ...

    def random(self, kind: str, out: Any, seed: int) -> None:
        """Fill the array view in place: kind is 'normal', 'uniform', ...; used for the refresh of whole slots."""

    def roofline_us(self, *, flops: float, bytes_moved: float, dtype: str) -> float:
        """No call of this much work can take less; 0 where the device's limits are not known."""

    def environment(self) -> Environment: ...
