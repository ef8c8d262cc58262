"""Two recordings of one call, at different addresses, made into one launch record without addresses.

A 64-bit word that is equal in both is a constant; one that points into its slot at the same offset in both moves with
the slot (a TMA tensor map's address is its first word); anything else depends on what a replay can't reproduce.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import replace

from contract.outcomes import Reason
from contract.record import Copy, Launch, Memset, Node, Relocation
from worker.record.raw import RawCopy, RawLaunch, RawMemset, RawNode, RefusedError, Window

WORD_BYTES = 8


def relocate(
    first: list[RawNode],
    second: list[RawNode],
    *,
    windows: tuple[Window, Window],
    is_address: Callable[[int], bool],
) -> tuple[Node, ...]:
    """The nodes of `first`, relative to their slot.

    `is_address` says whether a word points into memory that the recording process holds: such a constant would point
    nowhere in another process. Raises RefusedError (not_recordable, not_relocatable).
    """
    if len(first) != len(second):
        raise RefusedError(
            Reason.NOT_RECORDABLE,
            f"the same call launched {len(first)} nodes, then {len(second)}: a call must be a fixed sequence",
        )
    return tuple(
        _node(place, a, b, windows, is_address) for place, (a, b) in enumerate(zip(first, second, strict=True))
    )


def _node(
    place: int, a: RawNode, b: RawNode, windows: tuple[Window, Window], is_address: Callable[[int], bool]
) -> Node:
    if isinstance(a, RawLaunch) and isinstance(b, RawLaunch):
        return _launch(place, a, b, windows, is_address)
    if isinstance(a, RawMemset) and isinstance(b, RawMemset) and replace(a, address=b.address) == b:
        row = a.width * a.element_bytes
        size = (a.height - 1) * a.pitch + row
        offset = _offset(f"memset (node {place})", (a.address, b.address), size, windows)
        return Memset(
            slot_offset=offset,
            value=a.value,
            element_bytes=a.element_bytes,
            width=a.width,
            height=a.height,
            pitch=a.pitch,
        )
    if isinstance(a, RawCopy) and isinstance(b, RawCopy) and a.bytes == b.bytes:
        what = f"copy (node {place})"
        return Copy(
            to_offset=_offset(f"target of the {what}", (a.to_address, b.to_address), a.bytes, windows),
            from_offset=_offset(f"source of the {what}", (a.from_address, b.from_address), a.bytes, windows),
            bytes=a.bytes,
        )
    raise RefusedError(
        Reason.NOT_RECORDABLE,
        f"node {place} was {_said(a)}, then {_said(b)} for the same call: a call must be a fixed sequence",
    )


def _launch(
    place: int, a: RawLaunch, b: RawLaunch, windows: tuple[Window, Window], is_address: Callable[[int], bool]
) -> Launch:
    if replace(a, parameters=b.parameters) != b:
        raise RefusedError(
            Reason.NOT_RECORDABLE,
            f"node {place} was {_said(a)}, then {_said(b)} for the same call: a launch may depend on shapes alone",
        )
    relocations = []
    for at in range(0, len(a.parameters), WORD_BYTES):
        word_a, word_b = a.parameters[at : at + WORD_BYTES], b.parameters[at : at + WORD_BYTES]
        value_a, value_b = int.from_bytes(word_a, "little"), int.from_bytes(word_b, "little")
        if value_a == value_b:
            if _may_be_a_pointer(a, at) and is_address(value_a):
                raise _not_relocatable(a, at, "a device address outside this case's tensors and workspace")
            continue
        offset = windows[0].offset(value_a)
        if len(word_a) < WORD_BYTES or offset is None or windows[1].offset(value_b) != offset:
            raise _not_relocatable(
                a, at, "a value that changes from call to call and is no address inside the tensors and workspace"
            )
        relocations.append(Relocation(at=at, slot_offset=offset))
    return Launch(
        function=a.function,
        cubin=a.cubin,
        grid=a.grid,
        block=a.block,
        cluster=a.cluster,
        shared_bytes=a.shared_bytes,
        max_shared_bytes=a.max_shared_bytes,
        parameters=_base64(a.parameters, relocations),
        relocations=tuple(relocations),
    )


def _base64(parameters: bytes, relocations: list[Relocation]) -> bytes:
    """Base64 of the parameters, with zeros where an address will be: records of equal calls are equal."""
    clean = bytearray(parameters)
    for relocation in relocations:
        clean[relocation.at : relocation.at + WORD_BYTES] = bytes(WORD_BYTES)
    return base64.b64encode(bytes(clean))


def _may_be_a_pointer(launch: RawLaunch, at: int) -> bool:
    """Two small integers side by side can look like an address: a pointer lies within one parameter."""
    return any(offset <= at and at + WORD_BYTES <= offset + size for offset, size in launch.fields)


def _not_relocatable(launch: RawLaunch, at: int, what: str) -> RefusedError:
    index, offset = next(
        ((i, at - start) for i, (start, size) in enumerate(launch.fields) if start <= at < start + size), (0, at)
    )
    return RefusedError(
        Reason.NOT_RELOCATABLE, f"parameter {index} of {launch.function} (at its byte {offset}) holds {what}"
    )


def _offset(what: str, addresses: tuple[int, int], size: int, windows: tuple[Window, Window]) -> int:
    offset = windows[0].offset(addresses[0])
    if offset is None or windows[1].offset(addresses[1]) != offset or offset + size > windows[0].bytes:
        raise RefusedError(Reason.NOT_RELOCATABLE, f"the {what} is not inside this case's tensors and workspace")
    return offset


def _said(node: RawNode) -> str:
    if isinstance(node, RawLaunch):
        cluster = f", cluster {node.cluster}" if node.cluster != (1, 1, 1) else ""
        return f"{node.function} with grid {node.grid}, block {node.block}{cluster}, {node.shared_bytes} shared bytes"
    if isinstance(node, RawMemset):
        return f"a memset of {node.height} x {node.width * node.element_bytes} bytes to {node.value}"
    return f"a copy of {node.bytes} bytes"
