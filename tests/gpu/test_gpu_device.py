"""The judge's GPU device: draws, views, limits."""

from __future__ import annotations

import pytest

from contract.layout import Role, TensorSpec, lay_out
from tests.gpu import harness

pytestmark = pytest.mark.gpu

LAYOUT = lay_out(
    (
        TensorSpec(name="a", role=Role.INPUT, dtype="fp16", shape=(37, 53)),
        TensorSpec(name="b", role=Role.INPUT, dtype="fp32", shape=(29, 31)),
        TensorSpec(name="c", role=Role.OUTPUT, dtype="fp16", shape=(1024, 1024)),
    ),
    workspace_bytes=64,
)


@pytest.mark.parametrize("index", [0, 1, 2])
@pytest.mark.parametrize("kind", ["normal", "uniform"])
def test_a_slots_draw_depends_on_its_seed_and_shape_alone(index, kind):
    device, xp = harness.device(), harness.device().xp
    view = harness.arena().tensor(LAYOUT, LAYOUT.tensors[index], 6)
    device.random(kind, view, [9, 8, 2**64 - 1, 8, 5, 4])
    again = xp.empty((2, *view.shape[1:]), view.dtype)
    device.random(kind, again, [2**64 - 1, 8])
    assert bool((again[0] == view[2]).all())
    assert bool((again[1] == view[1]).all())
    assert bool((view[1] == view[3]).all())
    assert not bool((view[0] == view[1]).all())


def test_draws_have_the_moments_of_their_distribution():
    device, xp = harness.device(), harness.device().xp
    drawn = xp.empty((4, 1024, 1024), xp.float16)
    device.random("normal", drawn, [1, 2, 3, 4])
    normal = drawn.astype(xp.float64)
    assert abs(float(normal.mean())) < 0.003
    assert abs(float(normal.std()) - 1) < 0.003
    assert abs(float((normal**4).mean()) - 3) < 0.03
    assert abs(float((normal[0] * normal[1]).mean())) < 0.005
    assert abs(float((normal[:, :, 1:] * normal[:, :, :-1]).mean())) < 0.005
    device.random("uniform", drawn, [1, 2, 3, 4])
    uniform = drawn.astype(xp.float64)
    assert float(uniform.min()) >= -1
    assert float(uniform.max()) < 1
    assert abs(float(uniform.mean())) < 0.002
    assert abs(float(uniform.var()) - 1 / 3) < 0.002


def test_a_draw_writes_nothing_outside_its_tensor():
    device, xp = harness.device(), harness.device().xp
    whole = harness.arena().raw(0, LAYOUT.slot_bytes, LAYOUT, 5)
    whole[...] = 0xAB
    for placed in LAYOUT.tensors:
        device.random("normal", harness.arena().tensor(LAYOUT, placed, 5), [1, 2, 3, 4, 5])
    for first, last in LAYOUT.guards:
        assert bool((harness.arena().raw(first, last, LAYOUT, 5) == xp.uint8(0xAB)).all())


@pytest.mark.parametrize("index", [0, 1, 2])
def test_an_input_that_was_modified_anywhere_is_not_as_it_was_drawn(index):
    device, seeds = harness.device(), [3, 1, 4, 1, 5]
    view = harness.arena().tensor(LAYOUT, LAYOUT.tensors[index], 5)
    device.random("normal", view, seeds)
    assert device.as_drawn("normal", view, seeds)
    assert device.as_drawn("normal", view[2:4], seeds[2:4])
    assert not device.as_drawn("normal", view, [3, 1, 4, 1, 6])
    for place in ((0, 0, 0), (2, 3, 17), (4, view.shape[1] - 1, view.shape[2] - 1)):
        kept = view[place].copy()
        view[place] = -kept
        assert not device.as_drawn("normal", view, seeds)
        view[place] = kept
    assert device.as_drawn("normal", view, seeds)


@pytest.mark.parametrize(("dtype", "bits"), [("uint8", 0xFF), ("float16", 0x7E5A), ("float32", 0x7FC0_1234)])
@pytest.mark.parametrize("length", [1, 7, 31, 4096, 100_003])
def test_bits_are_set_in_every_element_and_nowhere_else(dtype, bits, length):
    device, xp = harness.device(), harness.device().xp
    whole = xp.zeros((6, length + 64), dtype)
    view = whole[:, 32 : 32 + length] if length % 2 == 0 else whole[:, :length]
    device.set_bits(view[1:5], bits)
    words = whole.view(f"uint{8 * whole.itemsize}")
    first = 32 if length % 2 == 0 else 0
    assert bool((words[1:5, first : first + length] == bits).all())
    assert int((words != 0).sum()) == 4 * length
    assert device.has_bits(view, [4, 1, 2], bits)
    assert not device.has_bits(view, [0], bits)
    for place in {0, length // 2, length - 1}:
        words[3, first + place] ^= 1
        assert device.has_bits(view, [1, 2, 4], bits)
        assert not device.has_bits(view, [4, 3], bits)
        words[3, first + place] ^= 1
    assert device.has_bits(view, [3], bits)
    assert device.has_bits(view, [], bits)


def test_bits_of_nothing_are_as_they_were_set():
    device, xp = harness.device(), harness.device().xp
    nothing = xp.zeros((4, 0), "uint8")
    device.set_bits(nothing, 0xFF)
    assert device.has_bits(nothing, [0, 3], 0xFF)


def test_a_strided_or_foreign_array_is_refused():
    device, xp = harness.device(), harness.device().xp
    with pytest.raises(ValueError, match="dense"):
        device.random("normal", xp.empty((2, 8, 8), xp.float16)[:, :, ::2], [1, 2])
    with pytest.raises(ValueError, match="kind"):
        device.random("cauchy", xp.empty((2, 8), xp.float16), [1, 2])
    with pytest.raises(ValueError, match="seed"):
        device.random("normal", xp.empty((2, 8), xp.float16), [1])
    with pytest.raises(ValueError, match="dense"):
        device.set_bits(xp.empty((2, 8, 8), xp.float16)[:, :, ::2], 0)


def test_the_environment_names_device_driver_and_libraries():
    environment = harness.device().environment()
    assert environment.device.startswith("NVIDIA")
    assert environment.device_uuid.startswith("GPU-")
    assert environment.driver
    assert environment.cuda
    assert "cupy" in environment.libraries
    assert environment.clocks["sm_clock_mhz"] > 0
