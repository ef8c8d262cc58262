"""What was captured of one call, with absolute addresses, before it is relocated."""

from __future__ import annotations

from dataclasses import dataclass, field

from contract.names import Digest
from contract.outcomes import Reason
from contract.record import Extent


class RefusedError(Exception):
    """The case can't be recorded; `reason` is stable and the message says what the call did."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True)
class Window:
    """The bytes of one slot in the recorder's scratch memory."""

    base: int
    bytes: int

    def offset(self, address: int) -> int | None:
        inside = address - self.base
        return inside if 0 <= inside < self.bytes else None


@dataclass(frozen=True)
class RawLaunch:
    """`fields`: (offset, bytes) of each parameter in `parameters`, in order."""

    function: str
    cubin: Digest
    grid: Extent
    block: Extent
    cluster: Extent
    shared_bytes: int
    max_shared_bytes: int
    parameters: bytes = field(repr=False)
    fields: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class RawMemset:
    address: int
    value: int
    element_bytes: int
    width: int
    height: int
    pitch: int


@dataclass(frozen=True)
class RawCopy:
    to_address: int
    from_address: int
    bytes: int


RawNode = RawLaunch | RawMemset | RawCopy
