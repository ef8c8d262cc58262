"""A launch record with every tensor somewhere of its own, instead of in one slot."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from contract.layout import SlotLayout
from contract.record import Copy, Launch, LaunchRecord, Memset, Node

Address = Callable[[int], int]


def extents(layout: SlotLayout) -> list[tuple[int, int]]:
    """(offset, bytes) of what a call may touch in a slot: its tensors, and its workspace where it has one."""
    found = [(placed.offset, placed.tensor.bytes) for placed in layout.tensors]
    if layout.workspace_bytes:
        found.append((layout.workspace_offset, layout.workspace_bytes))
    return sorted(found)


def placed_at(record: LaunchRecord, addresses: Sequence[int]) -> LaunchRecord:
    """The record for the slot at address 0, each of its `extents` at its own of `addresses`.

    What a record names between two of them belongs to the one before, beyond its end: where a call reaches it, it
    leaves its tensor.
    """
    starts = [offset for offset, _ in extents(record.layout)]

    def address(offset: int) -> int:
        place = max((at for at, start in enumerate(starts) if start <= offset), default=0)
        return addresses[place] + offset - starts[place]

    return record.model_copy(update={"nodes": tuple(_moved(node, address) for node in record.nodes)})


def _moved(node: Node, address: Address) -> Node:
    if isinstance(node, Launch):
        moved = (each.model_copy(update={"slot_offset": address(each.slot_offset)}) for each in node.relocations)
        return node.model_copy(update={"relocations": tuple(moved)})
    if isinstance(node, Memset):
        return node.model_copy(update={"slot_offset": address(node.slot_offset)})
    assert isinstance(node, Copy)  # noqa: S101 - there is no fourth kind
    return node.model_copy(update={"to_offset": address(node.to_offset), "from_offset": address(node.from_offset)})
