"""The launch record: what one call does on the GPU, with every address relative to its slot."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Base64Bytes, Field

from contract.base import Model
from contract.layout import SlotLayout
from contract.names import CaseId, Digest

MAX_NODES = 256

Extent = tuple[int, int, int]


class Relocation(Model):
    """The 64-bit word at `at` in the parameters is slot base + `slot_offset`."""

    at: int = Field(ge=0)
    slot_offset: int = Field(ge=0)


class Launch(Model):
    kind: Literal["launch"] = "launch"
    function: str = Field(max_length=65_535, pattern=r"^[!#-~]+$", description="as the cubin names it, mangled")
    cubin: Digest
    grid: Extent
    block: Extent
    cluster: Extent = (1, 1, 1)
    shared_bytes: int = Field(ge=0, description="dynamic shared memory of this launch")
    max_shared_bytes: int = Field(ge=0, description="the attribute that the host set on the function")
    parameters: Base64Bytes
    relocations: tuple[Relocation, ...] = Field(default=(), fail_fast=True)


class Memset(Model):
    kind: Literal["memset"] = "memset"
    slot_offset: int = Field(ge=0)
    value: int
    element_bytes: Literal[1, 2, 4]
    width: int = Field(ge=1, description="elements")
    height: int = Field(ge=1)
    pitch: int = Field(ge=0, description="bytes between rows")


class Copy(Model):
    """Contiguous, device to device, inside the slot."""

    kind: Literal["copy"] = "copy"
    to_offset: int = Field(ge=0)
    from_offset: int = Field(ge=0)
    bytes: int = Field(ge=1)


Node = Annotated[Launch | Memset | Copy, Field(discriminator="kind")]


class LaunchRecord(Model):
    case: CaseId
    layout: SlotLayout
    nodes: tuple[Node, ...] = Field(min_length=1, max_length=MAX_NODES, fail_fast=True)
