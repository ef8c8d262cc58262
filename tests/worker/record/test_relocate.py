"""Relocation is pure: two lists of raw nodes in, a record's nodes out."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.outcomes import Reason
from contract.record import Copy, Launch, Memset, Relocation
from worker.record.raw import RawCopy, RawLaunch, RawMemset, RefusedError, Window
from worker.record.relocate import relocate

SLOT_BYTES = 1 << 20
A, B = Window(0x7F00_0000_0200, SLOT_BYTES), Window(0x7F00_0020_0E00, SLOT_BYTES)


def nowhere(word: int) -> bool:
    return False


def launch(parameters: bytes, fields: tuple[tuple[int, int], ...] = ()) -> RawLaunch:
    return RawLaunch(
        function="gemm",
        cubin="0" * 64,
        grid=(4, 2, 1),
        block=(128, 1, 1),
        cluster=(1, 1, 1),
        shared_bytes=1024,
        max_shared_bytes=4096,
        parameters=parameters,
        fields=fields or tuple((at, 8) for at in range(0, len(parameters), 8)),
    )


def relocated(a: list, b: list, is_address=nowhere):
    return relocate(a, b, windows=(A, B), is_address=is_address)


def refusal(a: list, b: list, is_address=nowhere) -> RefusedError:
    with pytest.raises(RefusedError) as caught:
        relocated(a, b, is_address)
    return caught.value


def test_equal_words_are_constants_and_addresses_move_with_their_slot():
    a = launch(struct.pack("<QQii", A.base + 4096, 77, 5, 6), ((0, 8), (8, 8), (16, 4), (20, 4)))
    b = replace(a, parameters=struct.pack("<QQii", B.base + 4096, 77, 5, 6))
    (node,) = relocated([a], [b])
    assert isinstance(node, Launch)
    assert node.relocations == (Relocation(at=0, slot_offset=4096),)
    assert node.parameters == struct.pack("<QQii", 0, 77, 5, 6)
    assert (node.grid, node.block, node.shared_bytes, node.max_shared_bytes) == ((4, 2, 1), (128, 1, 1), 1024, 4096)


def test_records_of_equal_calls_are_equal_wherever_they_were_recorded():
    elsewhere = (Window(0x6F00_0000_0000, SLOT_BYTES), Window(0x6F00_1000_0200, SLOT_BYTES))
    there = [[launch(struct.pack("<Q", window.base + 64))] for window in elsewhere]
    here = [[launch(struct.pack("<Q", window.base + 64))] for window in (A, B)]
    assert relocated(*here) == relocate(*there, windows=elsewhere, is_address=nowhere)


def test_a_tensor_maps_first_word_is_its_address():
    rest = bytes(range(120))
    a = launch(struct.pack("<Q", A.base + 8192) + rest, ((0, 128),))
    b = launch(struct.pack("<Q", B.base + 8192) + rest, ((0, 128),))
    (node,) = relocated([a], [b])
    assert node.relocations == (Relocation(at=0, slot_offset=8192),)
    assert node.parameters[8:] == rest


def test_a_word_that_differs_and_is_no_address_is_refused_with_parameter_and_byte():
    fields = ((0, 8), (8, 24))
    a = launch(struct.pack("<QQQQ", A.base, 1, 2, 3), fields)
    b = launch(struct.pack("<QQQQ", B.base, 1, 2, 4), fields)
    refused = refusal([a], [b])
    assert refused.reason is Reason.NOT_RELOCATABLE
    assert "parameter 1 of gemm (at its byte 16)" in str(refused)


def test_addresses_at_different_offsets_of_their_slots_are_refused():
    refused = refusal([launch(struct.pack("<Q", A.base))], [launch(struct.pack("<Q", B.base + 512))])
    assert refused.reason is Reason.NOT_RELOCATABLE


def test_an_address_past_the_slot_is_refused():
    a, b = (launch(struct.pack("<Q", window.base + SLOT_BYTES)) for window in (A, B))
    assert refusal([a], [b]).reason is Reason.NOT_RELOCATABLE


def test_a_remembered_address_of_the_first_slot_is_refused():
    """Equal in both recordings, so it looks like a constant; but it points into memory that the recorder has."""
    same = launch(struct.pack("<Q", A.base + 4096))
    refused = refusal([same], [same], is_address=lambda word: A.offset(word) is not None)
    assert refused.reason is Reason.NOT_RELOCATABLE
    assert "outside this case's tensors" in str(refused)


def test_two_small_integers_side_by_side_are_no_address():
    same = launch(struct.pack("<ii", 512, 0x7F00), ((0, 4), (4, 4)))
    (node,) = relocated([same], [same], is_address=lambda word: True)
    assert node.relocations == ()


def test_a_short_last_parameter_is_a_constant_or_refused():
    a = launch(struct.pack("<Qi", A.base, 3), ((0, 8), (8, 4)))
    b = launch(struct.pack("<Qi", B.base, 3), ((0, 8), (8, 4)))
    assert relocated([a], [b])[0].parameters == struct.pack("<Qi", 0, 3)
    changed = launch(struct.pack("<Qi", B.base, 4), ((0, 8), (8, 4)))
    assert "parameter 1" in str(refusal([a], [changed]))


@pytest.mark.parametrize(
    "change",
    [{"grid": (5, 2, 1)}, {"block": (64, 1, 1)}, {"shared_bytes": 0}, {"function": "other"}, {"cluster": (2, 1, 1)}],
)
def test_a_launch_that_changes_from_call_to_call_is_not_recordable(change):
    a = launch(b"")
    refused = refusal([a], [replace(a, **change)])
    assert refused.reason is Reason.NOT_RECORDABLE
    assert "shapes alone" in str(refused)


def test_another_number_or_kind_of_nodes_is_not_recordable():
    node = launch(b"")
    assert refusal([node], [node, node]).reason is Reason.NOT_RECORDABLE
    refused = refusal([node], [RawMemset(B.base, 0, 1, 8, 1, 0)])
    assert refused.reason is Reason.NOT_RECORDABLE
    assert "a memset" in str(refused)


def test_memsets_and_copies_become_offsets():
    nodes = relocated(
        [RawMemset(A.base + 512, 7, 4, 16, 3, 128), RawCopy(A.base + 4096, A.base, 64)],
        [RawMemset(B.base + 512, 7, 4, 16, 3, 128), RawCopy(B.base + 4096, B.base, 64)],
    )
    assert nodes == (
        Memset(slot_offset=512, value=7, element_bytes=4, width=16, height=3, pitch=128),
        Copy(to_offset=4096, from_offset=0, bytes=64),
    )


@pytest.mark.parametrize("past", [0, 1])
def test_a_memset_or_copy_that_reaches_past_the_slot_is_refused(past):
    at = SLOT_BYTES - 64
    memsets = [[RawMemset(window.base + at, 0, 1, 64 + past, 1, 0)] for window in (A, B)]
    copies = [[RawCopy(window.base + at, window.base, 64 + past)] for window in (A, B)]
    for a, b in (memsets, copies):
        if past:
            assert refusal(a, b).reason is Reason.NOT_RELOCATABLE
        else:
            assert len(relocated(a, b)) == 1


def test_a_copy_from_elsewhere_is_refused():
    a, b = ([RawCopy(window.base, 0x1234_0000, 64)] for window in (A, B))
    assert "source of the copy" in str(refusal(a, b))


@given(st.lists(st.one_of(st.integers(0, SLOT_BYTES - 1).map(lambda at: (True, at)),
                          st.integers(0, 2**64 - 1).map(lambda value: (False, value))), max_size=32))  # fmt: skip
def test_applied_to_any_slot_a_record_gives_the_parameters_that_a_call_there_would_have(words):
    def at(base: int) -> bytes:
        return b"".join(struct.pack("<Q", base + value if moves else value) for moves, value in words)

    (node,) = relocated([launch(at(A.base))], [launch(at(B.base))])
    elsewhere = 0x6000_0000_0000
    buffer = bytearray(node.parameters)
    for relocation in node.relocations:
        buffer[relocation.at : relocation.at + 8] = struct.pack("<Q", elsewhere + relocation.slot_offset)
    assert bytes(buffer) == at(elsewhere)
