import json
import os
import time
from pathlib import Path

import pytest

from cli.doctor import card, diagnose, doctor, host, tools
from cli.doctor.findings import Answer, Finding, Purpose, ask
from worker.settings import WorkerSettings


def test_this_machine_can_measure_on_its_cpu_and_compile_for_gpus(capsys):
    assert doctor(json_output=True) == 0
    diagnosis = json.loads(capsys.readouterr().out)
    assert diagnosis["able"]["cpu"]
    assert diagnosis["able"]["service"]
    assert diagnosis["able"]["compile"]
    assert {"g++", "nvcc", "Triton", "GPU", "kernel run", "sandbox", "cgroup", "Redis"} <= {
        finding["name"] for finding in diagnosis["findings"]
    }


def test_without_a_compiler_the_cpu_class_is_out_of_reach_and_it_says_what_to_do(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert doctor(json_output=False) == 1
    shown = capsys.readouterr().out
    assert "apt-get install g++" in shown
    assert "It can't measure on the CPU" in shown


def test_what_is_missing_always_comes_with_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    missing = [finding for finding in diagnose().findings if finding.state == "missing"]
    assert missing
    assert [finding.name for finding in missing if not finding.advice] == []


def test_a_command_that_hangs_is_given_up_at_its_limit():
    started = time.monotonic()
    answer = ask(("sleep", "60"), limit_s=0.2)
    assert answer.returncode is None
    assert "no answer" in answer.complaint
    assert time.monotonic() - started < 10


def test_bubblewrap_that_may_not_make_namespaces_is_no_sandbox(monkeypatch, tmp_path):
    fake = tmp_path / "bwrap"
    fake.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo bubblewrap 0.8.0 && exit\necho "bwrap: denied" >&2; exit 1\n'
    )
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    finding = host.sandbox()
    assert finding.state == "missing"
    assert "denied" in finding.detail
    assert "docs/operations.md" in finding.advice


def test_an_old_node_is_not_enough_for_the_web_view(monkeypatch, tmp_path):
    fake = tmp_path / "node"
    fake.write_text("#!/bin/sh\necho v18.20.4\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert host.node().state == "missing"


@pytest.mark.parametrize(("controllers", "state"), [("cpu memory pids", "ok"), ("cpu", "missing"), (None, "missing")])
def test_a_cgroup_serves_where_memory_and_pids_are_delegated(tmp_path, monkeypatch, controllers, state):
    monkeypatch.setattr(host, "_own_group", lambda: "/")
    if controllers is not None:
        (tmp_path / "cgroup.controllers").write_text(controllers)
    assert host.cgroup(tmp_path).state == state


GPU = {
    "name": "NVIDIA GeForce RTX 4090 D",
    "capability": "89",
    "memory_bytes": 24 << 30,
    "free_bytes": 23 << 30,
    "sm_mhz": 210,
    "max_sm_mhz": 3105,
    "power_limit_mw": 425_000,
    "processes": 0,
}


def _nvml_says(monkeypatch, answer: Answer, *, kernel: Answer) -> None:
    monkeypatch.setattr(card, "ask", lambda command, **_: kernel if "kernel" in command[2] else answer)
    monkeypatch.setattr(card, "nvcc_path", lambda: Path("nvcc"))
    monkeypatch.setattr(card, "compile_probe", lambda *_, **__: Answer(returncode=0))


def test_a_gpu_is_named_with_its_class_its_clocks_and_a_kernel_that_ran(monkeypatch):
    seen = Answer(returncode=0, stdout=json.dumps({"driver": "580.95", "gpus": [GPU]}))
    _nvml_says(monkeypatch, seen, kernel=Answer(returncode=0, stdout="14\n"))
    gpu, clocks, kernel = card.card()
    assert "class rtx4090d" in gpu.detail
    assert "210 of 3105 MHz" in clocks.detail
    assert kernel.state == "ok"


def test_a_gpu_on_which_no_kernel_runs_can_not_measure(monkeypatch):
    seen = Answer(returncode=0, stdout=json.dumps({"driver": "580.95", "gpus": [GPU]}))
    _nvml_says(monkeypatch, seen, kernel=Answer(returncode=1, stderr="CUDA_ERROR_OPERATING_SYSTEM: OS call failed"))
    kernel = card.card()[2]
    assert kernel.state == "missing"
    assert "CUDA_ERROR_OPERATING_SYSTEM" in kernel.detail
    assert kernel.needed_for == (Purpose.GPU,)


def test_a_gpu_of_no_known_class_is_told_how_to_become_one(monkeypatch):
    seen = Answer(returncode=0, stdout=json.dumps({"driver": "580.95", "gpus": [GPU | {"name": "NVIDIA T4"}]}))
    _nvml_says(monkeypatch, seen, kernel=Answer(returncode=0, stdout="14\n"))
    gpu = card.card()[0]
    assert gpu.state == "missing"
    assert "CONTRIBUTING.md" in gpu.advice


def test_a_wedged_driver_is_reported_and_nothing_waits_for_it(monkeypatch):
    wedged = Answer(returncode=None, stderr="no answer within 10 s")
    _nvml_says(monkeypatch, wedged, kernel=wedged)
    assert [finding.state for finding in card.card()] == ["missing", "missing"]
    assert "no answer" in card.card()[0].detail


def _tool(folder: Path, log: str) -> str:
    """Stands in for one of NVIDIA's: it writes this log and runs nothing."""
    (folder / "log").write_text(log)
    program = folder / "tool"
    copy = 'while [ "$1" != --log-file ]; do shift; done; cp "$(dirname "$0")/log" "$2"'
    program.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "Version 2025.3.1.0" && exit\n{copy}\n')
    program.chmod(0o755)
    return str(program)


def _tried(tmp_path: Path, monkeypatch, *, sanitizer: str = "", ncu: str = "") -> list[Finding]:
    seen = Answer(returncode=0, stdout=json.dumps({"driver": "580.95", "gpus": [GPU]}))
    monkeypatch.setattr(card, "ask", lambda *_, **__: seen)
    monkeypatch.setattr(tools, "nvcc_path", lambda: Path("nvcc"))
    monkeypatch.setattr(tools, "compile_probe", lambda *_, **__: Answer(returncode=0))
    named = {}
    for setting, log in (("compute_sanitizer", sanitizer), ("ncu", ncu)):
        folder = tmp_path / setting
        folder.mkdir()
        named[setting] = _tool(folder, log) if log else "/nowhere/tool"
    return list(tools.tools(WorkerSettings(**named)))


CLEAN = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"
REFUSED = "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters\n"
COUNTED = (
    '"ID","Kernel Name","gpu__time_duration.sum","sm__warps_active.avg.pct_of_peak_sustained_active"\n'
    '"","","ns","%"\n"0","probe","1,024","12.5"\n'
)


def test_tools_that_see_a_kernel_run_are_of_use(tmp_path, monkeypatch):
    sanitizer, counters = _tried(tmp_path, monkeypatch, sanitizer=CLEAN, ncu=COUNTED)
    assert (sanitizer.state, sanitizer.needed_for) == ("ok", (Purpose.SANITIZE,))
    assert (counters.state, counters.needed_for) == ("ok", (Purpose.PROFILE,))
    assert "2025.3.1.0" in counters.detail


@pytest.mark.parametrize(
    ("logs", "place", "words"),
    [
        ({"ncu": REFUSED}, 1, "does not permit its counters to be read (ERR_NVGPUCTRPERM)"),
        ({"ncu": "==PROF== Connected\n"}, 1, "0 of 1 launches"),
        (
            {"sanitizer": "========= Error: Device not supported.\n========= ERROR SUMMARY: 1 error\n"},
            0,
            "not supported",
        ),
        ({"sanitizer": "========= COMPUTE-SANITIZER\n"}, 0, "did not get to its end"),
        ({}, 0, "this node has no /nowhere/tool"),
    ],
)
def test_a_tool_that_may_not_look_is_missing_and_why_is_said(tmp_path, monkeypatch, logs, place, words):
    finding = _tried(tmp_path, monkeypatch, **logs)[place]
    assert finding.state == "missing"
    assert words in finding.detail
    assert finding.advice


def test_without_a_gpu_a_tool_can_not_be_tried(tmp_path, monkeypatch):
    monkeypatch.setattr(card, "ask", lambda *_, **__: Answer(returncode=1, stderr="no driver"))
    (finding, _) = tools.tools(WorkerSettings(compute_sanitizer=_tool(tmp_path, CLEAN)))
    assert (finding.state, "there is no GPU" in finding.detail) == ("missing", True)
