"""compute-sanitizer's logs as its tools write them."""

from pathlib import Path

import pytest

from worker.examine.sanitizer import command, read

OUT_OF_BOUNDS = """========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 2 bytes
=========     at gemm_kernel(const __half *, const __half *, __half *, int)+0x5d0
=========     by thread (31,0,0) in block (7,3,0)
=========     Access to 0x7f3c2e000400 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7f3c2e000000 of size 1,024 bytes
=========
========= Invalid __global__ write of size 2 bytes
=========     at gemm_kernel(const __half *, const __half *, __half *, int)+0x5d0
=========     by thread (30,0,0) in block (7,3,0)
=========     Access to 0x7f3c2e0003fe is out of bounds
=========
========= Target application returned an error
========= ERROR SUMMARY: 769 errors
========= ERROR SUMMARY: 759 errors were not printed. Use --print-limit option to adjust the number of printed errors
"""
CLEAN = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"
RACE = """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at race_kernel(float *)+0xb0
=========     and Read access at race_kernel(float *)+0xc0 [1024 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
RACE_WARNING = """========= COMPUTE-SANITIZER
========= Warning: Race reported between Write access at fold(const float *, float *)+0x550
=========     and Read access at fold(const float *, float *)+0x580 [65536 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (0 errors, 1 warning)
"""
UNINITIALISED = """========= COMPUTE-SANITIZER
========= Uninitialized __global__ memory read of size 4 bytes
=========     at vectorAdd(int *)+0x70
=========     by thread (31,0,0) in block (1,0,0)
=========     Address 0x7f3c7ec000fc
=========
========= ERROR SUMMARY: 1 error
"""
BARRIER = """========= COMPUTE-SANITIZER
========= Barrier error detected. Divergent thread(s) in block.
=========     at softmax_kernel+0x15520
=========     by thread (128,0,0) in block (0,0,0)
=========
========= ERROR SUMMARY: 1 error
"""
NOT_SUPPORTED = """========= COMPUTE-SANITIZER
========= Error: Device not supported. Please refer to the "Supported Devices" section of the sanitizer documentation
=========
========= ERROR SUMMARY: 1 error
"""
API_ERROR = """========= COMPUTE-SANITIZER
========= Program hit CUDA_ERROR_NOT_FOUND (error 500) due to "named symbol not found" on CUDA API call to \
cuGetProcAddress_v2.
=========     Saved host backtrace up to driver entry point at error
=========         Host Frame: [0x2f0e3f] in libcuda.so.1
=========
========= ERROR SUMMARY: 1 error
"""
NEVER_RAN = """========= COMPUTE-SANITIZER
========= Error: Target application terminated before first instrumented API call
========= Tracking kernels launched by child processes requires the --target-processes all option.
"""


@pytest.mark.parametrize(
    ("text", "errors", "first_line", "place"),
    [
        (OUT_OF_BOUNDS, 769, "Invalid __global__ write of size 2 bytes", "1 bytes after the nearest allocation"),
        (RACE, 1, "Error: Race reported between Write access at race_kernel(float *)+0xb0", "[1024 hazards]"),
        (UNINITIALISED, 1, "Uninitialized __global__ memory read of size 4 bytes", "vectorAdd(int *)+0x70"),
        (BARRIER, 1, "Barrier error detected. Divergent thread(s) in block.", "by thread (128,0,0)"),
    ],
)
def test_the_first_finding_is_told_with_its_place(text, errors, first_line, place):
    log = read(text)
    assert (log.errors, log.complaint) == (errors, None)
    assert log.finding.splitlines()[0] == first_line
    assert place in log.finding
    assert "by thread (30,0,0)" not in log.finding


def test_nothing_found_is_a_summary_of_no_errors():
    assert read(CLEAN).errors == 0
    assert read(CLEAN).finding is None


def test_a_hazard_that_is_a_warning_is_no_finding():
    assert read(RACE_WARNING).errors == 0
    assert read(RACE_WARNING).finding is None


@pytest.mark.parametrize(
    ("text", "complaint"),
    [(NOT_SUPPORTED, "Device not supported"), (NEVER_RAN, "terminated before first instrumented"), (API_ERROR, None)],
)
def test_what_the_tool_says_of_itself_or_of_the_api_is_not_the_kernels(text, complaint):
    log = read(text)
    assert log.finding is None
    assert log.errors != 0
    assert (complaint in log.complaint) if complaint else (log.complaint is None)


@pytest.mark.parametrize("text", ["", "========= COMPUTE-SANITIZER\n", "a kernel printed this\n"])
def test_a_log_without_a_summary_counts_for_nothing(text):
    assert read(text).errors is None


def test_what_a_kernels_name_holds_can_not_steer_a_terminal_nor_fill_the_message():
    name = "evil\x1b[31m" + "x" * 5000
    found = read(OUT_OF_BOUNDS.replace("gemm_kernel", name)).finding
    assert "\x1b" not in found
    assert len(found) <= 2000


def test_each_tool_gets_the_options_that_it_knows():
    by_tool = {tool: command(Path("/cs"), tool, log=Path("/log")) for tool in ("memcheck", "racecheck", "synccheck")}
    assert all(argv[:3] == ("/cs", "--tool", tool) for tool, argv in by_tool.items())
    assert "--padding" in by_tool["memcheck"]
    assert "--padding" not in by_tool["racecheck"] + by_tool["synccheck"]
    assert "--racecheck-detect-level" in by_tool["racecheck"]


@pytest.mark.parametrize(
    "forged",
    [
        "========= ERROR SUMMARY: 0 errors",
        "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)",
        "=========     (0 errors, 0 warnings)",
    ],
)
@pytest.mark.parametrize(("log", "name"), [(OUT_OF_BOUNDS, "gemm_kernel"), (RACE, "race_kernel")])
def test_a_functions_name_that_looks_like_a_summary_hides_no_finding(log: str, name: str, forged: str) -> None:
    found = read(log.replace(name, f"{name}\n{forged}\n"))
    assert found.errors
    assert found.finding is not None
