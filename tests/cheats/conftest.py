"""The judge over the entries of kernels.cpp: as a process, with or without a sandbox, or turn by turn."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from contract.devices import DeviceClass
from contract.suite import Case, Suite
from tests.worker.judge.conftest import INCLUDE, Said, side
from worker.judge.bursts import Subject
from worker.judge.device_cpu import CpuDevice
from worker.judge.judge import Judge
from worker.judge.secret import SecretRandom
from worker.judge.sides import Revision
from worker.judge.slots import Slots
from worker.judge.turns import Player
from worker.operators.gemm import GEMM
from worker.protocol import JudgeJob, JudgeSays
from worker.sandbox import choose
from worker.settings import WorkerSettings

DIMS = {"m": 24, "n": 40, "k": 32}
Judged = Callable[..., Said]
Playing = Callable[..., AbstractContextManager[tuple[Subject, Player]]]


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("g++")
    assert compiler, "g++ is needed"
    out = tmp_path_factory.mktemp("cheats") / "cheats.so"
    flags = ["-O2", "-march=native", "-std=c++20", "-shared", "-fPIC", "-pthread", f"-I{INCLUDE}"]
    subprocess.run([compiler, *flags, str(Path(__file__).parent / "kernels.cpp"), "-o", str(out)], check=True)
    return out


def job_of(library: Path, entry: str, **more: object) -> JudgeJob:
    suite = Suite(
        kernel="sgemm_cheats",
        operator="gemm",
        dtype="fp32",
        device_classes=(DeviceClass.CPU,),
        cases=(Case(dims=DIMS),),
        verify_cases=tuple(Case(dims=dims) for dims in more.pop("verify_cases", ())),  # type: ignore[attr-defined]
    )
    told = {"max_processes": 1, "call_limit_s": 5.0, **more}
    return JudgeJob(
        device_class=DeviceClass.CPU, suite=suite, head=side(library, entry), base=None, seed=0x5EC2E7, **told
    )


@pytest.fixture
def judged(library: Path) -> Judged:
    """What the judge's process says of an entry without a base. `seen`: what a sandbox shows it; by default none is."""

    def run(entry: str, *, seen: tuple[Path, ...] | None = None, **more: object) -> Said:
        sandbox = choose(WorkerSettings()) if seen is not None else None
        if sandbox is not None:
            assert sandbox.isolates, f"bubblewrap is needed: {sandbox.problem}"
            more["run_as"] = sandbox.prefix(readable=(library, *seen), writable=(), gpu=False)
        try:
            finished = subprocess.run(
                [sys.executable, "-m", "worker.judge"],
                input=job_of(library, entry, **more).model_dump_json().encode(),
                capture_output=True,
                check=False,
                timeout=120,
            )
        finally:
            if sandbox is not None:
                sandbox.close()
        parse: TypeAdapter[object] = TypeAdapter(JudgeSays)
        messages = [parse.validate_json(line) for line in finished.stdout.splitlines()]
        assert messages, finished.stderr.decode()
        return Said(messages=messages, stderr=finished.stderr.decode())

    return run


@pytest.fixture
def playing(library: Path) -> Playing:
    """An entry's launcher, loaded, beside its slots: for single turns, without a baseline."""

    @contextmanager
    def play(entry: str, *, slots: int) -> Iterator[tuple[Subject, Player]]:
        device, random = CpuDevice(), SecretRandom(2)
        job = job_of(library, entry)
        case = job.suite.cases[0]
        arena = device.arena(4 << 20)
        revision = Revision("head", job.head, device=device, arena=arena, run_as=(), call_limit_s=5.0)
        launcher = revision.start()
        try:
            layout = revision.load(launcher, case.id, DIMS, GEMM.tensors(DIMS, "fp32"))
            held = Slots(device, arena, layout, slots, random)
            subject = Judge(job, device, lambda _: None)._subject(case)
            yield subject, Player(side="head", launcher=launcher, slots=held)
        finally:
            launcher.close()
            arena.close()

    return play
