"""The judge's products on the GPU against the same in float64 arrays."""

from __future__ import annotations

import pytest

from contract.layout import Role, TensorSpec, lay_out
from tests.gpu import harness
from worker.gpu.products import CudaProducts

pytestmark = pytest.mark.gpu

SLOTS, CHOSEN = 6, (4, 0, 5)
ROWS = ((0, 1, 16, 2), (3, 3, 5, 7), (9, 8, 0, 15))


def layout(m, n, k, dtype):
    shapes = {"a": (m, k), "b": (k, n)}
    return lay_out(tuple(TensorSpec(name=name, role=Role.INPUT, dtype=dtype, shape=shapes[name]) for name in shapes))


@pytest.mark.parametrize("dtype", ["fp16", "fp32"])
@pytest.mark.parametrize("shape", [(17, 64, 256), (33, 31, 29), (20, 520, 2056)])
def test_products_equal_those_of_arrays(dtype, shape):
    device, xp = harness.device(), harness.device().xp
    slots = layout(*shape, dtype)
    a, b = (harness.arena().tensor(slots, placed, SLOTS) for placed in slots.tensors)
    for view in (a, b):
        device.random("normal", view, [11, 12, 13, 14, 15, 16])
    wide_a, wide_b = (view.astype(xp.float64)[list(CHOSEN)] for view in (a, b))
    vectors = xp.random.default_rng(3).standard_normal((len(CHOSEN), shape[2]))
    for work, close in ((xp.float64, 1e-12), (xp.float32, 1e-3)):
        made: CudaProducts = device.products(work)
        dots, squares = made.with_vectors(a, CHOSEN, vectors)
        assert bool(xp.allclose(dots, (wide_a @ vectors[:, :, None])[..., 0], rtol=close, atol=close))
        assert bool(xp.allclose(squares, (wide_a**2).sum(axis=-1), rtol=close))
        shared, _ = made.with_vectors(a, CHOSEN, vectors[:1])
        assert bool(xp.allclose(shared, wide_a @ vectors[0], rtol=close, atol=close))
        signed, absolute = made.of_rows(a, b, CHOSEN, ROWS)
        some = xp.stack([wide_a[place, list(rows)] for place, rows in enumerate(ROWS)])
        assert bool(xp.allclose(signed, some @ wide_b, rtol=close, atol=close))
        assert bool(xp.allclose(absolute, abs(some) @ abs(wide_b), rtol=close))


def test_a_matrix_that_is_strided_inside_a_slot_is_refused():
    xp = harness.device().xp
    with pytest.raises(ValueError, match="dense inside a slot"):
        harness.device().products(xp.float64).with_vectors(xp.zeros((2, 8, 8))[:, :, ::2], (0,), xp.zeros((1, 4)))
