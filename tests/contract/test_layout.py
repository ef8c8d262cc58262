import itertools

from contract.layout import ALIGNMENT, GUARD_BYTES, Role, TensorSpec, lay_out

A = TensorSpec(name="a", role=Role.INPUT, dtype="fp16", shape=(17, 3))
C = TensorSpec(name="c", role=Role.OUTPUT, dtype="fp32", shape=(5,))


def test_strides_are_row_major_and_bytes_follow_the_dtype() -> None:
    assert A.strides == (3, 1)
    assert (A.bytes, C.bytes) == (102, 20)


def test_every_tensor_and_the_workspace_lie_between_guards() -> None:
    layout = lay_out((A, C), workspace_bytes=100)
    written = [(placed.offset, placed.offset + placed.tensor.bytes) for placed in layout.tensors]
    written.append((layout.workspace_offset, layout.workspace_offset + layout.workspace_bytes))
    bands = layout.guards
    assert all(offset % ALIGNMENT == 0 for offset, _ in written)
    assert layout.slot_bytes % ALIGNMENT == 0
    covered = sorted([*written, *bands])
    assert covered[0][0] == 0
    assert covered[-1][1] == layout.slot_bytes
    assert all(before[1] == after[0] for before, after in itertools.pairwise(covered))
    assert all(last - first >= GUARD_BYTES for first, last in bands)


def test_without_workspace_nothing_of_the_slot_is_left_unguarded() -> None:
    layout = lay_out((A,))
    assert sum(last - first for first, last in layout.guards) == layout.slot_bytes - A.bytes
