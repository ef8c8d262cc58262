"""A card is taken for a job once its memory is as free as it was before any, as NVML's stand-in tells it."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from contract.devices import DeviceClass
from contract.job import NodeInfo
from tests.worker.jobs import bundle, job, settings
from tests.worker.service_stub import Stub
from worker import node
from worker.agent import Agent
from worker.client import ServiceClient
from worker.sandbox import NoSandbox

NVML = Path(__file__).parents[1] / "e2e" / "nvml.c"
MIB = 1 << 20
Use = Callable[[int], None]


@pytest.fixture
def use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Use:
    """Sets how much of the card's memory is in use, in MiB."""
    subprocess.run(["gcc", "-shared", "-fPIC", str(NVML), "-o", str(tmp_path / "libnvidia-ml.so.1")], check=True)
    used = tmp_path / "used"
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    monkeypatch.setenv("NVIDIA_STAND_IN_USED", str(used))
    monkeypatch.setattr(node, "_least_used", {})
    monkeypatch.setattr(node, "FREE_LIMIT_S", 0.2)
    monkeypatch.setattr(node, "_LOOK_EVERY_S", 0.05)

    def set_to(mebibytes: int) -> None:
        fresh = tmp_path / "fresh"
        fresh.write_text(str(mebibytes * MIB))
        fresh.rename(used)

    return set_to


def described(tmp_path: Path, *, idle: bool) -> NodeInfo:
    return node.describe(settings(tmp_path, device_class=DeviceClass.H200), sandbox=NoSandbox(), idle=idle)


def test_what_a_job_left_behind_keeps_the_next_one_away(tmp_path: Path, use: Use) -> None:
    use(500)
    assert described(tmp_path, idle=True).healthy
    use(600)
    assert described(tmp_path, idle=True).healthy
    use(1100)
    assert described(tmp_path, idle=False).healthy
    left = described(tmp_path, idle=True)
    assert not left.healthy
    assert left.problem == (
        "1100 MiB of the GPU's memory are in use, of which 500 MiB were before any job: end what holds the rest, or"
        " start the worker again if it is to stay"
    )


def test_it_waits_for_memory_that_is_being_taken_apart(
    tmp_path: Path, use: Use, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node, "FREE_LIMIT_S", 60.0)
    use(500)
    assert described(tmp_path, idle=True).healthy
    use(9000)
    threading.Timer(0.5, use, args=(500,)).start()
    began = time.monotonic()
    assert described(tmp_path, idle=True).healthy
    assert 0.4 < time.monotonic() - began < 30


def test_a_card_that_does_not_tell_is_taken_at_its_word(tmp_path: Path, use: Use) -> None:
    del use  # nothing is said of its memory
    assert described(tmp_path, idle=True).healthy


def test_the_service_is_told_with_the_claim(tmp_path: Path, use: Use) -> None:
    files = bundle("gemm_cpu")
    with Stub() as stub, ServiceClient(stub.url, "token") as client:
        agent = Agent(settings(tmp_path, device_class=DeviceClass.H200), client, sandbox=NoSandbox())
        use(500)
        assert agent.about().healthy
        use(5000)
        stub.offer(job(files), files)
        agent.attempt("ev_1")
    assert [claim["node"]["healthy"] for claim in stub.claims] == [False]
    assert "5000 MiB" in stub.claims[0]["node"]["problem"]
