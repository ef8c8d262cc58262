"""A record with its tensors in memory of their own: every address lands where its offset lay."""

from __future__ import annotations

import base64

import pytest

from contract.layout import GUARD_BYTES, lay_out
from contract.record import Copy, Launch, LaunchRecord, Memset, Relocation
from worker.gpu.places import extents, placed_at
from worker.operators import OPERATORS

LAYOUT = lay_out(OPERATORS["gemm"].tensors({"m": 16, "n": 16, "k": 16}, "fp16"), workspace_bytes=64)
A, B, C, WORKSPACE = (offset for offset, _ in extents(LAYOUT))
ADDRESSES = (0x7F00_0000_0000, 0x7F10_0000_0000, 0x7F20_0000_0000, 0x7F30_0000_0000)


def moved(*nodes: Launch | Memset | Copy, layout=LAYOUT) -> list[Launch | Memset | Copy]:
    return list(placed_at(LaunchRecord(case="m=16", layout=layout, nodes=nodes), ADDRESSES).nodes)


def launch(*offsets: int) -> Launch:
    return Launch(
        function="gemm",
        cubin="a" * 64,
        grid=(1, 1, 1),
        block=(32, 1, 1),
        shared_bytes=0,
        max_shared_bytes=0,
        parameters=base64.b64encode(bytes(8 * len(offsets))),
        relocations=tuple(Relocation(at=8 * at, slot_offset=offset) for at, offset in enumerate(offsets)),
    )


def test_each_tensor_and_the_workspace_have_an_extent():
    assert [size for _, size in extents(LAYOUT)] == [512, 512, 512, 64]
    bare = lay_out(tuple(placed.tensor for placed in LAYOUT.tensors))
    assert len(extents(bare)) == 3


@pytest.mark.parametrize(
    ("offset", "address"),
    [
        (A, ADDRESSES[0]),
        (A + 32, ADDRESSES[0] + 32),
        (C, ADDRESSES[2]),
        (WORKSPACE + 60, ADDRESSES[3] + 60),
        (C + 512, ADDRESSES[2] + 512),  # the end, as loops have it
        (B - GUARD_BYTES, ADDRESSES[0] + B - GUARD_BYTES - A),
        (A - 16, ADDRESSES[0] - 16),
    ],
)
def test_an_offset_becomes_the_address_in_the_tensor_that_it_belongs_to(offset, address):
    (node,) = moved(launch(offset))
    assert node.relocations == (Relocation(at=0, slot_offset=address),)


def test_memsets_and_copies_move_too():
    memset = Memset(slot_offset=C, value=0, element_bytes=4, width=128, height=1, pitch=0)
    copy = Copy(to_offset=WORKSPACE, from_offset=B + 64, bytes=64)
    one, other, last = moved(memset, copy, launch(A, C))
    assert one.slot_offset == ADDRESSES[2]
    assert (other.to_offset, other.from_offset) == (ADDRESSES[3], ADDRESSES[1] + 64)
    assert [each.slot_offset for each in last.relocations] == [ADDRESSES[0], ADDRESSES[2]]
