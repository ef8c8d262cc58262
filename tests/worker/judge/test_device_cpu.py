"""The CPU as the judge's device: what was drawn or set is told from what was changed since."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from worker.judge.device_cpu import CpuDevice

SEEDS = [3, 1, 4, 1, 5]


@pytest.mark.parametrize("dtype", ["f2", "f4"])
@pytest.mark.parametrize("scratch", [1, 1 << 20])
def test_an_input_that_was_modified_anywhere_is_not_as_it_was_drawn(
    dtype: str, scratch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CpuDevice, "scratch_bytes", scratch)
    device, view = CpuDevice(), np.zeros((5, 9, 16), dtype)[:, :, :11]
    device.random("uniform", view, SEEDS)
    assert device.as_drawn("uniform", view, SEEDS)
    assert not device.as_drawn("uniform", view, [3, 1, 4, 1, 6])
    for place in ((0, 0, 0), (4, 8, 10)):
        view[place] = -view[place]
        assert not device.as_drawn("uniform", view, SEEDS)
        view[place] = -view[place]
    assert device.as_drawn("uniform", view, SEEDS)


@pytest.mark.parametrize(("dtype", "bits"), [("u1", 0xFF), ("f2", 0x7E5A), ("f4", 0x7FC0_1234)])
def test_bits_are_set_in_every_element_and_nowhere_else(dtype: str, bits: int) -> None:
    device, whole = CpuDevice(), np.zeros((6, 9), dtype)
    view: Any = whole[:, :7]
    device.set_bits(view[1:5], bits)
    words = whole.view(f"u{whole.itemsize}")
    assert (words[1:5, :7] == bits).all()
    assert int((words != 0).sum()) == 4 * 7
    assert device.has_bits(view, [4, 1], bits)
    assert not device.has_bits(view, [0], bits)
    words[3, 6] ^= 1
    assert not device.has_bits(view, [4, 3], bits)
    assert device.has_bits(view, [], bits)
