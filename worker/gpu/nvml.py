"""NVML readings with a time limit: after a kill a driver can be wedged so that NVML never answers."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from time import monotonic
from typing import Any

import pynvml

LIMIT_S = 2.0

# nvml.h, nvmlClocksEventReasons
_REASONS = {
    0x1: "idle",
    0x2: "applications_clocks",
    0x4: "power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal",
    0x40: "hw_thermal",
    0x80: "power_brake",
    0x100: "display_clocks",
}
_POWER = 0x4 | 0x80
# Tried on an H200: the reason comes 0.10 to 0.14 s after the cap acts, the violation counter 0.02 to 0.06 s.
_SHORTEST_S, _LONGEST_S, _CAPPED_SHARE = 0.02, 2.0, 0.05


class Nvml:
    """One GPU, by the UUID that CUDA gives. Every method answers None once NVML has not answered in time.

    Readings of clocks and energy also note how long a power cap has acted: a card is capped where it says so now, or
    acted for a twentieth of the time between the last two readings that were 20 ms or more apart.
    """

    def __init__(self, uuid: str) -> None:
        self._uuid = uuid
        self._handle: Any = None
        self._asked: queue.SimpleQueue[Callable[[], Any]] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._wedged = False
        self._noted: tuple[float, int] | None = None  # when, and nanoseconds under a cap until then
        self._capped_share = 0.0
        threading.Thread(target=self._serve, daemon=True, name="nvml").start()
        self._ask(self._open)

    def name(self) -> str | None:
        return self._text(lambda: pynvml.nvmlDeviceGetName(self._handle))

    def driver(self) -> str | None:
        return self._text(pynvml.nvmlSystemGetDriverVersion)

    def clocks(self) -> dict[str, str | float | bool]:
        self._ask(self._note_cap)
        found = self._ask(self._read_clocks)
        return found if isinstance(found, dict) else {}

    def power_capped(self) -> bool:
        reasons = self._ask(lambda: _reasons(self._handle))
        return bool((reasons or 0) & _POWER) or self._capped_share > _CAPPED_SHARE

    def energy_mj(self) -> float | None:
        self._ask(self._note_cap)
        energy = self._ask(lambda: pynvml.nvmlDeviceGetTotalEnergyConsumption(self._handle))
        return None if energy is None else float(energy)

    def _open(self) -> None:
        pynvml.nvmlInit()
        self._handle = pynvml.nvmlDeviceGetHandleByUUID(self._uuid)

    def _note_cap(self) -> None:
        capped_ns = int(pynvml.nvmlDeviceGetViolationStatus(self._handle, pynvml.NVML_PERF_POLICY_POWER).violationTime)
        now = monotonic()
        if self._noted is None:
            self._noted = (now, capped_ns)
            return
        passed_s = now - self._noted[0]
        if passed_s >= _SHORTEST_S:
            grown_s = (capped_ns - self._noted[1]) / 1e9
            self._capped_share = grown_s / passed_s if passed_s <= _LONGEST_S else 0.0
            self._noted = (now, capped_ns)

    def _text(self, read: Callable[[], Any]) -> str | None:
        found = self._ask(read)
        return found.decode() if isinstance(found, bytes) else found

    def _read_clocks(self) -> dict[str, str | float | bool]:
        readings: dict[str, Callable[[], str | float]] = {
            "sm_clock_mhz": lambda: pynvml.nvmlDeviceGetClockInfo(self._handle, pynvml.NVML_CLOCK_SM),
            "memory_clock_mhz": lambda: pynvml.nvmlDeviceGetClockInfo(self._handle, pynvml.NVML_CLOCK_MEM),
            "temperature_c": lambda: pynvml.nvmlDeviceGetTemperature(self._handle, pynvml.NVML_TEMPERATURE_GPU),
            "power_w": lambda: pynvml.nvmlDeviceGetPowerUsage(self._handle) / 1e3,
            "throttle": lambda: _named(_reasons(self._handle)),
        }
        found: dict[str, str | float | bool] = {}
        for key, read in readings.items():
            try:
                value = read()
            except pynvml.NVMLError:  # this card has no such sensor
                continue
            found[key] = value if isinstance(value, str) else float(value)
        return found

    def _ask(self, read: Callable[[], Any]) -> Any:
        if self._wedged:
            return None
        self._asked.put(read)
        try:
            answer = self._answers.get(timeout=LIMIT_S)
        except queue.Empty:
            self._wedged = True
            return None
        return None if isinstance(answer, pynvml.NVMLError) else answer

    def _serve(self) -> None:
        while True:
            read = self._asked.get()
            try:
                self._answers.put(read())
            except pynvml.NVMLError as error:
                self._answers.put(error)


def _reasons(handle: Any) -> int:
    return int(pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle))


def _named(reasons: int) -> str:
    return ",".join(name for bit, name in _REASONS.items() if reasons & bit)
