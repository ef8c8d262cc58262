"""Each property is tried by the probe that `kernelgate doctor` uses; without a sandbox that probe gets out."""

from pathlib import Path

import pytest

from cli.doctor.confinement import PROPERTIES, attempt, bait, confinement
from contract.bundle import digest
from contract.outcomes import Reason, Stage
from tests.worker.jobs import FAKE_JUDGE, GEMM_CPU, bundle
from tests.worker.sandbox.conftest import Node
from worker.room import open_room
from worker.sandbox import NoSandbox, choose
from worker.settings import WorkerSettings


def test_this_machine_holds_every_property(sandbox):
    findings = list(confinement())
    assert len(findings) == len(PROPERTIES)
    assert [(finding.name, finding.detail) for finding in findings if finding.state != "ok"] == []


@pytest.mark.parametrize("goal", ["files", "network", "processes", "privileges", "kernel", "allocating"])
def test_without_a_sandbox_the_probe_achieves_its_goal(tmp_path: Path, goal):
    (tmp_path / "bait").mkdir()
    with bait(tmp_path / "bait") as known:
        achieved = attempt(goal, NoSandbox(), known, folder=tmp_path)
    assert achieved
    assert "failed" not in achieved


@pytest.mark.parametrize(
    "line",
    [
        'asm(".incbin \\"{path}\\"");',
        '#include "{path}"',
        "#include <{path}>",
        '#if __has_include("{path}")\n#error "it is there"\n#endif\n#include "none-such"',
    ],
)
def test_a_source_can_not_compile_a_file_of_the_host_in(node: Node, tmp_path: Path, line):
    secret = tmp_path / "secret.h"
    secret.write_text("int another_jobs_secret = 1;\n")
    report = node.run(bundle("gemm_cpu", kernel_cpp=f"{line.format(path=secret)}\n{GEMM_CPU}"))
    assert (report.failure.reason, report.failure.stage) == (Reason.COMPILE_ERROR, Stage.BUILD)
    assert "it is there" not in report.failure.message
    assert "another_jobs_secret" not in report.failure.message


@pytest.mark.parametrize(
    "flag", ["@/etc/passwd", "-include/etc/passwd", "-specs=x", "-fplugin=x.so", "-Wp,-I/", "-B.", "-wrapper x"]
)
def test_flags_that_would_reach_further_are_refused(node: Node, flag):
    report = node.run(bundle("gemm_cpu", manifest=f'flags = ["{flag}"]\n'))
    assert report.failure.reason is Reason.FLAG_NOT_ALLOWED


def test_the_workers_variables_do_not_reach_a_build(node: Node, monkeypatch, tmp_path: Path):
    monkeypatch.setenv("KERNELGATE_NODE_TOKEN", "tok_of_this_node")
    with open_room(tmp_path, sandbox=node.sandbox, check=lambda: None) as room:
        done = room.run(["/bin/sh", "-c", "cat /proc/*/environ"], cwd=room.folder("out"), limit_s=20)
    assert b"HOME=" in done.stdout
    assert b"tok_of_this_node" not in done.stdout


def without_bubblewrap(monkeypatch, tmp_path: Path) -> None:
    """A PATH with a compiler, and no bwrap."""
    for name in ("g++", "as", "ld", "rm"):
        (tmp_path / name).symlink_to(Path("/usr/bin") / name)
    monkeypatch.setenv("PATH", str(tmp_path))


def test_without_bubblewrap_nothing_runs(small: WorkerSettings, monkeypatch, tmp_path: Path):
    without_bubblewrap(monkeypatch, tmp_path)
    sandbox = choose(small)
    report = Node(small, sandbox).run(bundle("gemm_cpu"))
    assert report.failure.reason is Reason.SANDBOX_MISSING
    assert "bubblewrap is not installed" in report.failure.message
    assert "bubblewrap is not installed" in (sandbox.problem or "")


def test_without_bubblewrap_the_bundles_that_are_trusted_run_and_say_so(
    small: WorkerSettings, monkeypatch, tmp_path: Path
):
    without_bubblewrap(monkeypatch, tmp_path)
    ours, foreign = bundle("gemm_cpu"), bundle("gemm_cpu", kernel_cpp=GEMM_CPU + "\n")
    trusting = small.model_copy(update={"trusted_bundles": (digest(ours),), "judge": (FAKE_JUDGE,)})
    report = Node(trusting, choose(trusting)).run(ours)
    assert report.failure is None
    assert report.environment.sandbox is False
    refused = Node(trusting, choose(trusting)).run(foreign)
    assert refused.failure.reason is Reason.SANDBOX_MISSING
    assert "only bundles that ship" in refused.failure.message


def test_switched_off_it_trusts_everything_and_says_so(small: WorkerSettings):
    off = choose(small.model_copy(update={"sandbox": "off"}))
    assert not off.isolates
    assert off.problem is None
    assert off.refuses(["0" * 64]) is None
