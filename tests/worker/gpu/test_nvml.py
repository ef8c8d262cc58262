from __future__ import annotations

import threading
from types import SimpleNamespace

import pynvml
import pytest

from worker.gpu import nvml


@pytest.fixture
def card(monkeypatch):
    """A card whose NVML answers at once."""
    answers = {
        "nvmlInit": None,
        "nvmlDeviceGetHandleByUUID": "handle",
        "nvmlDeviceGetName": "NVIDIA H200",
        "nvmlSystemGetDriverVersion": b"580.1",
        "nvmlDeviceGetClockInfo": 1980,
        "nvmlDeviceGetTemperature": 41,
        "nvmlDeviceGetPowerUsage": 123_456,
        "nvmlDeviceGetCurrentClocksEventReasons": 0x4 | 0x20,
        "nvmlDeviceGetTotalEnergyConsumption": 9_000,
        "nvmlDeviceGetViolationStatus": SimpleNamespace(violationTime=5),
    }
    for name, answer in answers.items():
        monkeypatch.setattr(pynvml, name, lambda *_, answer=answer: answer)
    return monkeypatch


def test_readings_carry_their_units_and_reasons_their_names(card):
    found = nvml.Nvml("GPU-1")
    assert found.clocks() == {
        "sm_clock_mhz": 1980.0,
        "memory_clock_mhz": 1980.0,
        "temperature_c": 41.0,
        "power_w": 123.456,
        "throttle": "power_cap,sw_thermal",
    }
    assert found.power_capped()
    assert (found.name(), found.driver(), found.energy_mj()) == ("NVIDIA H200", "580.1", 9000.0)


def test_heat_alone_is_no_power_cap(card):
    card.setattr(pynvml, "nvmlDeviceGetCurrentClocksEventReasons", lambda _: 0x20 | 0x1)
    assert not nvml.Nvml("GPU-1").power_capped()


def test_a_sensor_that_the_card_lacks_is_left_out(card):
    def lacking(*_: object) -> int:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)

    card.setattr(pynvml, "nvmlDeviceGetPowerUsage", lacking)
    card.setattr(pynvml, "nvmlDeviceGetTotalEnergyConsumption", lacking)
    found = nvml.Nvml("GPU-1")
    assert "power_w" not in found.clocks()
    assert found.energy_mj() is None


def test_without_nvml_nothing_is_known(card):
    def missing() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    card.setattr(pynvml, "nvmlInit", missing)
    card.setattr(pynvml, "nvmlDeviceGetName", lambda _: (_ for _ in ()).throw(pynvml.NVMLError(1)))
    assert nvml.Nvml("GPU-1").name() is None


def test_a_wedged_driver_costs_one_time_limit_and_no_more(card):
    release = threading.Event()
    card.setattr(pynvml, "nvmlDeviceGetCurrentClocksEventReasons", lambda _: release.wait(30) and 0)
    found = nvml.Nvml("GPU-1")
    assert found.name() == "NVIDIA H200"
    card.setattr(nvml, "LIMIT_S", 0.05)
    assert not found.power_capped()
    card.setattr(nvml, "LIMIT_S", 1000)
    assert found.clocks() == {}
    assert found.name() is None
    release.set()


@pytest.mark.parametrize(
    ("passed_s", "capped_s", "said"),
    [(0.06, 0.05, True), (0.06, 0.0, False), (0.06, 0.002, False), (0.001, 0.001, False), (60.0, 30.0, False)],
)
def test_a_cap_that_acted_between_two_readings_counts_before_the_card_gives_its_reason(card, passed_s, capped_s, said):
    now, capped_ns = [100.0], [7_000_000]
    card.setattr(nvml, "monotonic", lambda: now[0])
    card.setattr(pynvml, "nvmlDeviceGetCurrentClocksEventReasons", lambda _: 0)
    card.setattr(pynvml, "nvmlDeviceGetViolationStatus", lambda *_: SimpleNamespace(violationTime=capped_ns[0]))
    found = nvml.Nvml("GPU-1")
    found.energy_mj()
    assert not found.power_capped()
    now[0] += passed_s
    capped_ns[0] += round(capped_s * 1e9)
    found.clocks()
    assert found.power_capped() is said
    now[0] += 0.5
    found.clocks()
    assert not found.power_capped()


def test_a_card_without_the_counter_has_its_reasons(card):
    def lacking(*_: object) -> int:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)

    card.setattr(pynvml, "nvmlDeviceGetViolationStatus", lacking)
    found = nvml.Nvml("GPU-1")
    assert found.clocks()["throttle"] == "power_cap,sw_thermal"
    assert found.power_capped()
