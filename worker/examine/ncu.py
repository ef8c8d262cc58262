"""Nsight Compute's command, and what its CSV says. Pure.

Metrics are those of its sections SpeedOfLight, Occupancy, WarpStateStats and ComputeWorkloadAnalysis, by the names that
`ncu --query-metrics --chip` gives for ad102 (sm_89), gh100 (sm_90) and gb100 (sm_100, sm_103).
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from contract.profile import PROFILE
from contract.report import Metric

NOT_PERMITTED = "ERR_NVGPUCTRPERM"
_DURATION = "gpu__time_duration.sum"
_ISSUED = "smsp__issue_active.sum"
_PIPES = {
    "": ("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",),
    # tcgen05 has a pipe of its own.
    "sm_103a": (
        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
        "sm__pipe_tc_cycles_active.avg.pct_of_peak_sustained_elapsed",
    ),
}
# Each with what weighs it where a call has several launches. Stalls are in warps that wait, a cycle with an
# instruction issued: the cycles that a warp waits for the reason between two of its instructions.
_OTHERS = {
    "achieved_occupancy": ("sm__warps_active.avg.pct_of_peak_sustained_active", _DURATION),
    "dram_throughput": ("dram__throughput.avg.pct_of_peak_sustained_elapsed", _DURATION),
    "l2_throughput": ("lts__throughput.avg.pct_of_peak_sustained_elapsed", _DURATION),
    "stall_no_instruction": ("smsp__average_warps_issue_stalled_no_instruction_per_issue_active.ratio", _ISSUED),
    "stall_long_scoreboard": ("smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio", _ISSUED),
    "stall_barrier": ("smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio", _ISSUED),
}
_MARKED = re.compile(r"^==(ERROR|WARNING)==\s*(.+)$", re.MULTILINE)


class CountersError(ValueError):
    """What the tool wrote says nothing of these launches; the message says why."""


@dataclass(frozen=True)
class Profiled:
    """One launch. `values`: those metrics that the device has."""

    function: str
    values: Mapping[str, float]


def command(program: Path, *, log: Path, architecture: str) -> tuple[str, ...]:
    """What goes before the command that it looks at. Clocks are left as they are, caches are cold: as when measured."""
    wanted = (_DURATION, _ISSUED, *_pipes(architecture), *(name for name, _ in _OTHERS.values()))
    return (
        *(str(program), "--config-file", "off", "--clock-control", "none", "--cache-control", "all"),
        *("--replay-mode", "kernel", "--metrics", ",".join(wanted)),
        *("--csv", "--page", "raw", "--print-units", "base", "--print-kernel-base", "mangled", "--log-file", str(log)),
    )


def metrics_of(text: str, functions: Sequence[str], *, architecture: str) -> tuple[Metric, ...]:
    """What the log says of one call, whose launches were these functions (mangled) in this order.

    A metric that the device lacks is left out. Raises CountersError.
    """
    names = set(functions)
    # Memsets and copies may be kernels of the driver's.
    launches = [launch for launch in _launches(text) if launch.function in names]
    if [launch.function for launch in launches] != list(functions):
        raise CountersError(complaint(text) or f"it reported {len(launches)} of {len(functions)} launches")
    of_pipe = [value for name in _pipes(architecture) if (value := _weighted(launches, name, _DURATION)) is not None]
    found = {"tensor_pipe_utilisation": max(of_pipe, default=None)}
    found |= {name: _weighted(launches, metric, weight) for name, (metric, weight) in _OTHERS.items()}
    metrics = tuple(
        Metric(name=name, unit=PROFILE[name].unit, value=value) for name, value in found.items() if value is not None
    )
    if not metrics:
        raise CountersError(complaint(text) or "it has none of the metrics on this device")
    return metrics


def complaint(text: str) -> str | None:
    """The first error (else warning) that the tool wrote, without its marks; None where it wrote none."""
    said = [(kind, message.strip()) for kind, message in _MARKED.findall(text)]
    if any(NOT_PERMITTED in message for _, message in said):
        return f"this node does not permit its counters to be read ({NOT_PERMITTED})"
    errors = [message for kind, message in said if kind == "ERROR"] or [message for _, message in said]
    return " ".join(errors[:2])[:500] or None


def _pipes(architecture: str) -> tuple[str, ...]:
    return _PIPES.get(architecture, _PIPES[""])


def _launches(text: str) -> Iterator[Profiled]:
    """A line of names, one of units, one a launch; what else the tool says comes before, between and after."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    for row in csv.DictReader(lines):
        if (row.get("ID") or "").isdigit():
            values = {name: value for name, cell in row.items() if (value := _number(cell)) is not None}
            yield Profiled(function=row.get("Kernel Name") or "", values=values)


def _number(cell: object) -> float | None:
    """`4,896.50` as a number; None for `n/a`, names and dimensions."""
    try:
        value = float(str(cell).replace(",", ""))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _weighted(launches: Sequence[Profiled], name: str, weight: str) -> float | None:
    """The mean over the launches; None where one has no value."""
    if any(name not in launch.values or weight not in launch.values for launch in launches):
        return None
    total = sum(launch.values[weight] for launch in launches)
    if total <= 0:
        return None
    return sum(launch.values[name] * launch.values[weight] for launch in launches) / total
