"""Nsight Compute's CSV (`--csv --page raw --print-units base --print-kernel-base mangled`) as its versions write it."""

import re
from pathlib import Path

import pytest

from contract.profile import PROFILE
from worker.examine import ncu

LAUNCH = ("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size")
LAUNCH = (*LAUNCH, "Grid Size", "Device", "CC")
TIME, ISSUED = "gpu__time_duration.sum", "smsp__issue_active.sum"
PIPE = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"
PIPE_5 = "sm__pipe_tc_cycles_active.avg.pct_of_peak_sustained_elapsed"
OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"
DRAM, L2 = (f"{unit}__throughput.avg.pct_of_peak_sustained_elapsed" for unit in ("dram", "lts"))
NO_INSTRUCTION, SCOREBOARD, BARRIER = (
    f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio"
    for reason in ("no_instruction", "long_scoreboard", "barrier")
)
EVERY = (DRAM, TIME, L2, PIPE, OCCUPANCY, BARRIER, SCOREBOARD, NO_INSTRUCTION, ISSUED)
UNITS = {TIME: "ns", ISSUED: "inst", NO_INSTRUCTION: "inst", SCOREBOARD: "inst", BARRIER: "inst"}
GEMM = "_ZN4gemm6kernelILi128EEEvPK6__halfS3_PS1_iii"
REDUCE = "reduce_kernel_0d1d2d"


def csv(*rows: dict[str, str], names: tuple[str, ...] = EVERY, capability: str = "9.0") -> str:
    def line(cells: list[str]) -> str:
        return ",".join(f'"{cell}"' for cell in cells)

    text = [line([*LAUNCH, *names]), line([""] * len(LAUNCH) + [UNITS.get(name, "%") for name in names])]
    for number, row in enumerate(rows):
        launch = [str(number), "4242", "python3.12", "127.0.0.1", row["function"], "1", "13"]
        launch += ["(256, 1, 1)", "(64, 32, 1)", "0", capability]
        text.append(line(launch + [row.get(name, "n/a") for name in names]))
    return "\n".join(
        [
            "==PROF== Connected to process 4242 (/usr/bin/python3.12)",
            f'==PROF== Profiling "{rows[0]["function"]}" - 0: 0%....50%....100% - 6 passes',
            "==PROF== Disconnected from process 4242",
            *text,
            "",
        ]
    )


FIRST = {
    "function": GEMM, TIME: "1,250,432.00", ISSUED: "300,000", PIPE: "71.25", OCCUPANCY: "24.9", DRAM: "12.5",
    L2: "33", NO_INSTRUCTION: "0.5", SCOREBOARD: "2.25", BARRIER: "0",
}  # fmt: skip
SECOND = FIRST | {
    "function": REDUCE, TIME: "416,810.67", ISSUED: "100,000", PIPE: "0", OCCUPANCY: "90.0", DRAM: "88.5",
    NO_INSTRUCTION: "0.1", SCOREBOARD: "10.25", BARRIER: "4",
}  # fmt: skip


def values(text: str, *functions: str, architecture: str = "sm_90a") -> dict[str, float]:
    return {one.name: one.value for one in ncu.metrics_of(text, functions, architecture=architecture)}


def test_a_call_of_one_launch_has_its_launchs_figures_in_the_units_of_the_catalogue():
    metrics = ncu.metrics_of(csv(FIRST), (GEMM,), architecture="sm_90a")
    assert {one.name: pytest.approx(one.value) for one in metrics} == {
        "tensor_pipe_utilisation": 71.25,
        "achieved_occupancy": 24.9,
        "dram_throughput": 12.5,
        "l2_throughput": 33.0,
        "stall_no_instruction": 0.5,
        "stall_long_scoreboard": 2.25,
        "stall_barrier": 0.0,
    }
    assert [one.name for one in metrics] == list(PROFILE)
    assert all(one.unit == PROFILE[one.name].unit and one.better is None for one in metrics)


def test_launches_count_by_their_time_and_their_stalls_by_what_they_issued():
    found = values(csv(FIRST, SECOND), GEMM, REDUCE)
    assert found["tensor_pipe_utilisation"] == pytest.approx(0.75 * 71.25, rel=1e-6)
    assert found["dram_throughput"] == pytest.approx(0.75 * 12.5 + 0.25 * 88.5, rel=1e-6)
    assert found["stall_long_scoreboard"] == pytest.approx(0.75 * 2.25 + 0.25 * 10.25)
    assert found["stall_barrier"] == pytest.approx(1.0)


def test_the_fifth_generations_own_pipe_counts_where_it_is_the_busier_one():
    row = FIRST | {PIPE: "52.36", PIPE_5: "59.93"}
    text = csv(row, names=(*EVERY, PIPE_5), capability="10.3")
    assert values(text, GEMM, architecture="sm_103a")["tensor_pipe_utilisation"] == pytest.approx(59.93)
    older = csv(row | {PIPE_5: "0"}, names=(*EVERY, PIPE_5), capability="10.3")
    assert values(older, GEMM, architecture="sm_103a")["tensor_pipe_utilisation"] == pytest.approx(52.36)


@pytest.mark.parametrize(("architecture", "pipes"), [("sm_89", 1), ("sm_90a", 1), ("sm_103a", 2)])
def test_no_device_is_asked_for_a_metric_that_it_does_not_know(architecture, pipes):
    argv = ncu.command(Path("/opt/ncu"), log=Path("/out/log"), architecture=architecture)
    asked = argv[argv.index("--metrics") + 1].split(",")
    assert set(EVERY) <= set(asked)
    assert sum("pipe_" in name for name in asked) == pipes
    assert len(asked) == len(set(asked))


def test_what_a_device_lacks_is_left_out():
    found = values(csv(FIRST | {PIPE: "n/a", L2: ""}), GEMM)
    assert "tensor_pipe_utilisation" not in found
    assert "l2_throughput" not in found
    assert found["dram_throughput"] == 12.5


def test_a_metric_that_one_launch_lacks_is_no_metric_of_the_call():
    assert "dram_throughput" not in values(csv(FIRST, SECOND | {DRAM: "n/a"}), GEMM, REDUCE)


def test_the_drivers_own_kernels_between_the_launches_are_passed_over():
    memset = FIRST | {"function": "memset_kernel", TIME: "1,000,000"}
    assert values(csv(FIRST, memset, SECOND), GEMM, REDUCE) == values(csv(FIRST, SECOND), GEMM, REDUCE)


@pytest.mark.parametrize("functions", [(GEMM, GEMM), (REDUCE, GEMM), (GEMM, REDUCE, GEMM)])
def test_other_launches_than_the_records_say_nothing_of_it(functions):
    with pytest.raises(ncu.CountersError):
        values(csv(FIRST, SECOND), *functions)


REFUSED = """==PROF== Connected to process 991 (/usr/bin/python3.12)
==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the \
target device 0. For instructions on enabling permissions and to get more information see \
https://developer.nvidia.com/ERR_NVGPUCTRPERM
==PROF== Disconnected from process 991
==WARNING== No kernels were profiled.
"""
NO_LIBRARY = """==WARNING== Note: Running with unmodified GPU clocks. If not controlled otherwise, profiling results \
may be inconsistent.
==PROF== Connected to process 162 (/usr/bin/python3.12)
==ERROR== An error was reported by the counter measurement library:
==ERROR== Failed to initialize the profiler: LibraryNotLoaded. Check that a compatible driver library is loaded.
==PROF== Trying to shutdown target application
==ERROR== The application returned an error code (9).
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (REFUSED, "does not permit its counters to be read (ERR_NVGPUCTRPERM)"),
        (NO_LIBRARY, "LibraryNotLoaded"),
        ("==ERROR== Failed to find metric sm__pipe_tensor_cycles_active\n", "Failed to find metric"),
        ("==PROF== Connected to process 7 (/usr/bin/python3)\n==WARNING== No kernels were profiled.\n", "No kernels"),
        ("", "0 of 1 launches"),
    ],
)
def test_why_there_are_no_counters_is_said(text, words):
    with pytest.raises(ncu.CountersError, match=re.escape(words)):
        values(text, GEMM)
