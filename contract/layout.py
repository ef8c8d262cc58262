"""Where one call's tensors and workspace lie inside a slot.

A slot is: guard, tensor, guard, tensor, ..., guard, workspace, guard. Every offset is a multiple of `ALIGNMENT`, so a
slot whose base is aligned gives every tensor the same alignment in the recorder's scratch memory and in the arena.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import StrEnum
from typing import Literal, TypeVar

from pydantic import Field

from contract.base import Model

ALIGNMENT = 512
GUARD_BYTES = 4096
DTYPE_BYTES: dict[str, int] = {"fp16": 2, "fp32": 4}

Dtype = Literal["fp16", "fp32"]
Tensor = TypeVar("Tensor")


class Role(StrEnum):
    INPUT = "input"
    OUTPUT = "output"


class TensorSpec(Model):
    """A dense, row-major tensor; `shape` in elements."""

    name: str
    role: Role
    dtype: Dtype
    shape: tuple[int, ...] = Field(min_length=1, max_length=4)

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * DTYPE_BYTES[self.dtype]

    @property
    def strides(self) -> tuple[int, ...]:
        """In elements."""
        return tuple(math.prod(self.shape[axis + 1 :]) for axis in range(len(self.shape)))


def by_role(tensors: Iterable[tuple[TensorSpec, Tensor]]) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """The inputs, and the outputs."""
    pairs = tuple(tensors)
    return (
        tuple(tensor for spec, tensor in pairs if spec.role is Role.INPUT),
        tuple(tensor for spec, tensor in pairs if spec.role is Role.OUTPUT),
    )


class Placed(Model):
    tensor: TensorSpec
    offset: int


class SlotLayout(Model):
    tensors: tuple[Placed, ...]
    workspace_offset: int
    workspace_bytes: int = Field(ge=0)
    slot_bytes: int = Field(description="distance between two slots; a multiple of ALIGNMENT")

    def offset(self, name: str) -> int:
        return next(placed.offset for placed in self.tensors if placed.tensor.name == name)

    @property
    def guards(self) -> tuple[tuple[int, int], ...]:
        """(first, past the last) byte of everything in the slot that no call may write."""
        written = [(placed.offset, placed.tensor.bytes) for placed in self.tensors]
        written.append((self.workspace_offset, self.workspace_bytes))
        bands, at = [], 0
        for offset, size in sorted(written):
            if offset > at:
                bands.append((at, offset))
            at = max(at, offset + size)
        bands.append((at, self.slot_bytes))
        return tuple(bands)


def lay_out(tensors: tuple[TensorSpec, ...], *, workspace_bytes: int = 0) -> SlotLayout:
    placed, at = [], GUARD_BYTES
    for tensor in tensors:
        placed.append(Placed(tensor=tensor, offset=at))
        at = _aligned(at + tensor.bytes + GUARD_BYTES)
    workspace_offset = at
    slot_bytes = _aligned(at + workspace_bytes + GUARD_BYTES)
    return SlotLayout(
        tensors=tuple(placed),
        workspace_offset=workspace_offset,
        workspace_bytes=workspace_bytes,
        slot_bytes=slot_bytes,
    )


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
