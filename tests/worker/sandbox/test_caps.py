"""Caps where there is no cgroup, and where one is delegated to an ordinary service."""

import os
from pathlib import Path

import pytest

from cli.doctor.confinement import attempt, bait
from worker import cgroup
from worker.sandbox import Bubblewrap, choose
from worker.settings import WorkerSettings


@pytest.fixture
def by_rlimits(monkeypatch, sandbox) -> Bubblewrap:
    monkeypatch.setattr(cgroup, "find", lambda: None)
    made = choose(WorkerSettings(sandbox_memory_bytes=256 << 20, sandbox_processes=32))
    assert isinstance(made, Bubblewrap), made.problem
    return made


def test_rlimits_hold_memory_and_but_for_root_processes_where_no_cgroup_is_to_be_had(by_rlimits, tmp_path: Path):
    (tmp_path / "bait").mkdir()
    with bait(tmp_path / "bait") as known:
        assert attempt("allocating", by_rlimits, known, folder=tmp_path) is None
        forked = attempt("forking", by_rlimits, known, folder=tmp_path)
    # The kernel exempts root from RLIMIT_NPROC: then the doctor says so.
    assert (forked is None) == (os.getuid() != 0), forked
    assert "rlimits" in by_rlimits.caps


@pytest.fixture
def delegated(monkeypatch, tmp_path: Path) -> Path:
    """What systemd gives a service with Delegate=yes, as plain files: the unit's group, this process in it."""
    unit = tmp_path / "system.slice" / "kernelgate-worker.service"
    unit.mkdir(parents=True)
    (unit / "cgroup.controllers").write_text("cpu io memory pids\n")
    (unit / "cgroup.subtree_control").write_text("\n")
    (unit / "cgroup.procs").write_text(f"{os.getpid()}\n")
    monkeypatch.setattr(cgroup, "_MOUNT", tmp_path)
    monkeypatch.setattr(cgroup, "_GONE_LIMIT_S", 0.0)
    monkeypatch.setattr(cgroup, "_own", lambda: [("", "/system.slice/kernelgate-worker.service")])
    return unit


def test_in_a_delegated_unit_the_worker_moves_to_a_leaf_and_passes_the_controllers_on(delegated: Path):
    found = cgroup.find.__wrapped__()
    assert found == cgroup.Cgroups(version=2, bases=(delegated,))
    assert (delegated / "kernelgate-worker" / "cgroup.procs").read_text() == str(os.getpid())
    assert (delegated / "cgroup.subtree_control").read_text() == "+memory +pids"
    job = found.open("1")
    assert (job.folders[0] / "cgroup.subtree_control").read_text() == "+memory +pids"
    assert "memory.max=1024 " in job.caps(memory_bytes=1024, processes=7)
    assert job.caps(memory_bytes=1024, processes=7).endswith("pids.max=7")


def test_a_unit_without_delegation_gives_no_cgroup(delegated: Path):
    (delegated / "cgroup.controllers").write_text("cpu io\n")
    assert cgroup.find.__wrapped__() is None


def test_what_reached_a_cap_is_told_from_its_group(delegated: Path):
    job = cgroup.Cgroups(version=2, bases=(delegated,)).open("1")
    group = job.folders[0] / "4711"
    group.mkdir()
    (group / "memory.events").write_text("low 0\nhigh 0\nmax 12\noom 1\noom_kill 1\n")
    (group / "pids.events").write_text("max 0\n")
    assert job.reached() == {"memory"}
