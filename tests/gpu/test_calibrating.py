"""A node with a card learns what shipped kernels are apart on it."""

import threading

import pytest

from contract.devices import device_class_of
from worker import spreads
from worker.calibrating import learn
from worker.node import probe_gpu
from worker.settings import WorkerSettings

pytestmark = pytest.mark.gpu


def test_two_shipped_cases_are_measured_against_themselves_and_their_time_is_counted(tmp_path):
    gpu, problem = probe_gpu()
    assert gpu is not None, problem
    run = WorkerSettings(device_class=device_class_of(gpu.name), cache_dir=tmp_path / "cache", sandbox="off")
    assert run.calibration_s_a_day > 0
    found = [learn(run, over=threading.Event()) for _ in range(2)]
    for each in found:
        assert each.pairs == 8
        # Identical code on a card that is otherwise idle.
        assert 0.0 < each.sd < 0.01
        assert each.time_us > 1.0
    kept = spreads.stored(run)
    assert len({each.case for each in kept.spreads}) == 2
    assert kept.spent_s > 0
