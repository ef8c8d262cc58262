"""The slots of one side's layout in the arena: draws, poison, guards, and whether all is as it must be afterwards."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from random import Random
from typing import Any

from contract.layout import Placed, Role, SlotLayout
from worker.judge.device import Arena, Device

# Quiet NaNs whose payload is secret: bits that no call writes by chance.
_NAN: dict[str, tuple[int, int]] = {"fp16": (0x7E00, 9), "fp32": (0x7FC0_0000, 22)}
_POISON_BYTE = 0xFF  # a NaN as fp16 and as fp32


class Slots:
    """`inputs` and `outputs`: views with a leading slot axis, in the operator's order; `count` slots from 0."""

    def __init__(self, device: Device, arena: Arena, layout: SlotLayout, count: int, random: Random) -> None:
        if count * layout.slot_bytes > arena.bytes:
            raise ValueError(f"{count} slots of {layout.slot_bytes} bytes do not fit an arena of {arena.bytes}")
        self._device, self._xp, self._random = device, device.xp, random
        self.layout, self.count = layout, count

        def views(role: Role) -> list[tuple[Placed, Any]]:
            chosen = [placed for placed in layout.tensors if placed.tensor.role is role]
            return [(placed, arena.tensor(layout, placed, count)) for placed in chosen]

        self._inputs, self._outputs = views(Role.INPUT), views(Role.OUTPUT)
        self.inputs = [view for _, view in self._inputs]
        self.outputs = [view for _, view in self._outputs]
        first = layout.workspace_offset
        self._workspace = arena.raw(first, first + layout.workspace_bytes, layout, count)
        self._guards = [
            (
                arena.raw(start, end, layout, count),
                self._xp.frombuffer(random.randbytes(end - start), dtype=self._xp.uint8),
            )
            for start, end in layout.guards
        ]
        self._seeds: list[list[int]] = []
        self._drawn = slice(0, 0)
        self._nan: dict[str, int] = {}

    def lay_guards(self) -> None:
        for band, pattern in self._guards:
            band[...] = pattern

    def draw(self, where: slice) -> None:
        """New secret inputs in these slots."""
        count = where.stop - where.start
        seeds = [[word >> 1 for word in array("Q", self._random.randbytes(8 * count))] for _ in self.inputs]
        self.draw_again(where, seeds)

    def draw_again(self, where: slice, seeds: list[list[int]]) -> None:
        """The inputs that these seeds, one a tensor and slot, gave before."""
        self._drawn, self._seeds = where, seeds
        for view, each in zip(self.inputs, seeds, strict=True):
            self._device.random(self._device.timed_kind, view[where], each)

    @property
    def drawn(self) -> tuple[slice, list[list[int]]]:
        """What `draw_again` needs."""
        return self._drawn, self._seeds

    def poison(self, where: slice) -> None:
        """NaN in the outputs and the workspace of these slots."""
        self._nan = {dtype: bits | 1 + self._random.getrandbits(payload - 1) for dtype, (bits, payload) in _NAN.items()}
        for placed, view in self._outputs:
            self._device.set_bits(view[where], self._nan[placed.tensor.dtype])
        self._device.set_bits(self._workspace[where], _POISON_BYTE)

    def broken_guard(self, where: slice) -> str | None:
        """Where a guard of these slots no longer holds its pattern, in words."""
        for band, pattern in self._guards:
            wrong = band[where] != pattern
            if bool(wrong.any()):
                byte = int(wrong.any(axis=0).argmax())
                return f"{self._nearest(band, byte)} was written"
        return None

    def _nearest(self, band: Any, byte: int) -> str:
        place = next(index for index, (other, _) in enumerate(self._guards) if other is band)
        at = self.layout.guards[place][0] + byte
        after = max(
            (placed for placed in self.layout.tensors if placed.offset <= at),
            key=lambda placed: placed.offset,
            default=None,
        )
        if after is None:
            first = self.layout.tensors[0]
            return f"the byte {first.offset - at} before tensor {first.tensor.name}"
        if at >= self.layout.workspace_offset:
            past = at - self.layout.workspace_offset - self.layout.workspace_bytes
            return f"the byte {past} past the workspace of {self.layout.workspace_bytes} bytes"
        return f"the byte {at - after.offset - after.tensor.bytes} past the end of tensor {after.tensor.name}"

    def spoiled(self, untouched: Sequence[int]) -> bool:
        """Whether one of these slots, which was not launched, no longer holds its poison."""
        device = self._device
        whole = all(device.has_bits(view, untouched, self._nan[placed.tensor.dtype]) for placed, view in self._outputs)
        return not (whole and device.has_bits(self._workspace, untouched, _POISON_BYTE))

    def begun(self, slot: int) -> bool:
        """Whether anything has been written into the slot's outputs since they were poisoned."""
        return any(
            bool((self._bits(view[slot]) != self._nan[placed.tensor.dtype]).any()) for placed, view in self._outputs
        )

    def modified_input(self) -> str | None:
        """The name of an input that isn't as it was drawn, bit for bit; it is drawn again to tell."""
        kind = self._device.timed_kind
        for (placed, view), seeds in zip(self._inputs, self._seeds, strict=True):
            if not self._device.as_drawn(kind, view[self._drawn], seeds):
                return placed.tensor.name
        return None

    def same_bits(self, one: Any, other: Any) -> bool:
        return bool((self._bits(one) == self._bits(other)).all())

    def _bits(self, view: Any) -> Any:
        return view.view(self._xp.uint16 if view.dtype.itemsize == 2 else self._xp.uint32)
