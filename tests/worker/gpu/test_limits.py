from __future__ import annotations

import pytest

from contract.devices import DeviceClass
from contract.limits import LIMITS
from worker.gpu.limits import roofline_us


def test_compute_and_memory_bound_work_have_their_own_limit():
    compute = roofline_us(DeviceClass.H200, flops=2 * 8192**3, bytes_moved=3 * 2 * 8192**2, dtype="fp16")
    assert 900 < compute < 1112  # cuBLAS needs about 1400 us
    memory = roofline_us(DeviceClass.H200, flops=0, bytes_moved=4.8e9, dtype="fp16")
    assert 800 < memory < 1000


def test_what_was_measured_on_an_h200_is_under_its_limits():
    """cuBLAS at 1024^3 took 6.8 us there, and a copy ran at 4.3 TB/s."""
    assert roofline_us(DeviceClass.H200, flops=2 * 1024**3, bytes_moved=6 * 1024**2, dtype="fp16") < 6.8
    assert roofline_us(DeviceClass.H200, flops=0, bytes_moved=4.3e6, dtype="fp32") < 1.0


@pytest.mark.parametrize("device_class", [None, DeviceClass.CPU])
def test_a_device_whose_limits_are_not_known_refuses_nothing(device_class):
    assert roofline_us(device_class, flops=1e18, bytes_moved=1e15, dtype="fp16") == 0


def test_every_gpu_class_has_limits():
    assert set(LIMITS) == set(DeviceClass) - {DeviceClass.CPU}
