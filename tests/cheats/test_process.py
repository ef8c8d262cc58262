"""Items 22 to 29: the harness's process, its files and its neighbours."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from contract.manifest import Manifest
from contract.outcomes import Reason
from tests.cheats.conftest import Judged
from worker.judge.device_cpu import CpuDevice
from worker.launch.client import Launcher
from worker.protocol import Detach
from worker.toolchains import BuildFailed
from worker.toolchains.base import check_flags
from worker.toolchains.cpp import FLAGS

HIDES = """
import os, sys
from worker.launch.family import hide_memory
hide_memory()
child = os.fork()
if child == 0:
    os.setuid(65534)
    try:
        open(f"/proc/{os.getppid()}/mem", "rb")
    except OSError:
        os._exit(0)
    os._exit(1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_23_a_relay_in_place_of_the_answers_is_untrusted(judged: Judged) -> None:
    assert judged("relays_its_answers", measure=False).reason == "left_running"


def test_23_a_process_without_its_descriptors_has_crashed(judged: Judged) -> None:
    assert judged("closes_every_descriptor", measure=False).reason == "crashed"


def test_25_no_file_of_a_submission_stands_in_for_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The baseline's process is started where its working folder, home and environment are full of traps."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for folder in (tmp_path, tmp_path / ".local" / "lib" / version / "site-packages"):
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("torch", "pydantic", "usercustomize", "sitecustomize"):
            (folder / f"{name}.py").write_text("import os; os._exit(66)", encoding="ascii")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("LD_PRELOAD", "/none.so")
    arena = CpuDevice().arena(1 << 16)
    arguments = ("-m", "worker.launch.baseline", "--device", "cpu")
    baseline = Launcher(arguments, arena_fd=arena.fd, arena_bytes=arena.bytes, trusted=True)
    try:
        assert baseline.ask(Detach(), limit_s=60).ok
        assert b"LD_PRELOAD" not in Path(f"/proc/{baseline.pid}/environ").read_bytes()
    finally:
        baseline.close()
        arena.close()


@pytest.mark.parametrize("key", ["tolerances", "cases", "verify_cases", "policy", "operator"])
def test_26_a_submission_has_no_say_in_how_it_is_judged(key: str) -> None:
    manifest = {"label": "v1", "summary": "s", "language": "cpp", "source": "k.cpp"}
    assert Manifest.model_validate(manifest).label == "v1"
    with pytest.raises(ValidationError, match=key):
        Manifest.model_validate({**manifest, key: {}})


def test_27_the_network_is_out_of_reach_in_the_sandbox(judged: Judged, library: Path) -> None:
    port_file = Path(f"{library}.port")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port_file.write_text(str(server.getsockname()[1]), encoding="ascii")
        assert judged("reaches_the_network", measure=False).reason == "returned_error"
        assert judged("reaches_the_network", measure=False, seen=(port_file,)).done.failure is None


def test_28_18_judge_and_host_are_out_of_reach_in_the_sandbox(judged: Judged, library: Path) -> None:
    host_file = Path(f"{library}.host")
    host_file.write_text("the host's", encoding="ascii")
    assert judged("reaches_for_the_judge", measure=False).reason == "returned_error"
    assert judged("reaches_for_the_judge", measure=False, seen=()).done.failure is None


def test_18_the_judges_memory_is_closed_to_others_of_its_user() -> None:
    if os.geteuid() != 0:
        code = HIDES.replace("os.setuid(65534)", "pass")
    else:
        # Root reads everything: as anyone else, with the parent's memory owned by root because it hides it.
        code = HIDES.replace("child = os.fork()", "os.setegid(65534); os.seteuid(65534); child = os.fork()")
        code = code.replace("os.setuid(65534)", "os.seteuid(0); os.setuid(65534)")
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("flag", ["-include/etc/passwd", "-I/", "-fplugin=x.so", "-Wl,-z,execstack", "@/etc/passwd"])
def test_28_a_flag_that_reads_or_runs_something_is_refused(flag: str) -> None:
    with pytest.raises(BuildFailed) as caught:
        check_flags((flag,), allowed=FLAGS, language="cpp")
    assert caught.value.reason is Reason.FLAG_NOT_ALLOWED


@pytest.mark.parametrize("entry", ["leaves_a_process_asleep", "leaves_a_chain_of_forks"])
def test_29_a_process_that_is_left_behind_is_blamed_and_ended(judged: Judged, library: Path, entry: str) -> None:
    left = Path(f"{library}.left")
    left.unlink(missing_ok=True)
    assert judged(entry, measure=False).reason == "left_running"
    for pid in left.read_text(encoding="ascii").split() if left.exists() else ():
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)


def test_29_in_a_sandbox_too(judged: Judged) -> None:
    assert judged("leaves_a_chain_of_forks", measure=False, seen=()).reason == "left_running"


def test_48_a_launcher_is_the_first_to_go_when_memory_ends() -> None:
    arena = CpuDevice().arena(1 << 16)
    launcher = Launcher(CpuDevice.launcher, arena_fd=arena.fd, arena_bytes=arena.bytes, freezes=True)
    try:
        assert Path(f"/proc/{launcher.pid}/oom_score_adj").read_text(encoding="ascii").strip() == "1000"
    finally:
        launcher.close()
        arena.close()
