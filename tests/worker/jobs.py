"""Jobs, bundles and settings that the worker's tests share."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from contract.bundle import Files, digest
from contract.devices import DeviceClass
from contract.job import PROTOCOL_VERSION, Job, RevisionRef
from contract.suite import Case, Suite
from worker.settings import WorkerSettings

FIXTURES = Path(__file__).parent / "fixtures"
FAKE_JUDGE = str(FIXTURES / "fake_judge.py")
FAKE_RECORDER = str(FIXTURES / "fake_recorder.py")
GEMM_CPU = (FIXTURES / "gemm_cpu" / "kernel.cpp").read_text()


def bundle(name: str, *, manifest: str = "", **replaced: str) -> Files:
    """A fixture's files; `manifest` is appended to its kernel.toml, `replaced` maps 'kernel_cpp' to a text."""
    folder = FIXTURES / name
    files = {file.name: file.read_bytes() for file in sorted(folder.iterdir()) if file.is_file()}
    files["kernel.toml"] += manifest.encode()
    return files | {name.replace("_", "."): text.encode() for name, text in replaced.items()}


def changed(old: str, new: str) -> Files:
    """The CPU kernel with a part of its source replaced."""
    assert old in GEMM_CPU
    return bundle("gemm_cpu", kernel_cpp=GEMM_CPU.replace(old, new))


def suite(dtype: str = "fp32", *sizes: int, **more: Any) -> Suite:
    cases = tuple(Case(dims={"m": size, "n": size, "k": size}) for size in sizes or (16, 32))
    return Suite(kernel="gemm", operator="gemm", dtype=dtype, device_classes=(DeviceClass.CPU,), cases=cases, **more)


def job(head: Files, base: Files | None = None, **more: Any) -> Job:
    def ref(label: str, files: Files) -> RevisionRef:
        return RevisionRef(id=f"rev_{label}", label=label, digest=digest(files))

    fields = {
        "evaluation_id": "ev_1",
        "lease_token": "lease",
        "deadline": datetime.now(UTC) + timedelta(hours=1),
        "heartbeat_s": 5.0,
        "project": "local",
        "kernel": "gemm",
        "device_class": DeviceClass.CPU,
        "revision": ref("v1", head),
        "base": ref("v0", base) if base else None,
        "suite": suite(),
        "protocol_version": PROTOCOL_VERSION,
        "repeat": 1,
    }
    return Job(**(fields | more))


def bundles(*sides: Files | None) -> dict[str, Files]:
    return {digest(files): files for files in sides if files is not None}


def settings(tmp_path: Path, **more: Any) -> WorkerSettings:
    (tmp_path / "work").mkdir(exist_ok=True)
    fields = {
        "node_name": "test-node",
        "cache_dir": tmp_path / "cache",
        "work_dir": tmp_path / "work",
        "judge": (FAKE_JUDGE,),
        "recorder": (FAKE_RECORDER,),
    }
    return WorkerSettings(**(fields | more))


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def until(true: Callable[[], object], limit_s: float = 60.0) -> None:
    ends_at = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < ends_at, "did not happen in time"
        time.sleep(0.01)
