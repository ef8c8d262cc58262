"""The judge as the pipeline sees it: a process, a job in, messages out, on a library built from kernels.cpp."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from contract.devices import DeviceClass
from contract.report import CaseResult, Check, Metric
from contract.suite import Case, Policy, Suite
from worker.protocol import (
    CpuArtifact,
    JudgeChecked,
    JudgeDone,
    JudgeJob,
    JudgeMeasured,
    JudgeSays,
    Side,
)

HERE = Path(__file__).parent
INCLUDE = HERE.parents[2] / "worker" / "toolchains" / "include"
SMALL = {"m": 64, "n": 64, "k": 64}


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("g++")
    assert compiler, "g++ is needed"
    out = tmp_path_factory.mktemp("kernels") / "kernels.so"
    flags = ["-O2", "-march=native", "-shared", "-fPIC", "-pthread"]
    subprocess.run([compiler, *flags, f"-I{INCLUDE}", str(HERE / "kernels.cpp"), "-o", str(out)], check=True)
    return out


@dataclass(frozen=True)
class Said:
    messages: list[object]
    stderr: str

    @property
    def done(self) -> JudgeDone:
        last = self.messages[-1]
        assert isinstance(last, JudgeDone), self.stderr
        return last

    @property
    def reason(self) -> str | None:
        return self.done.failure.reason.value if self.done.failure else None

    @property
    def checks(self) -> list[Check]:
        return [message.check for message in self.messages if isinstance(message, JudgeChecked)]

    @property
    def results(self) -> dict[str, CaseResult]:
        return {message.result.case: message.result for message in self.messages if isinstance(message, JudgeMeasured)}

    def metric(self, case: str, name: str) -> Metric:
        return next(metric for metric in self.results[case].metrics if metric.name == name)


Judge = Callable[..., Said]


def side(library: Path, entry: str, *, refused: dict[str, str] | None = None) -> Side:
    return Side(
        label=entry,
        artifact_digest=hashlib.sha256(entry.encode()).hexdigest(),
        artifact=CpuArtifact(library=str(library), entry=entry),
        refused=refused or {},
    )


@pytest.fixture
def judge(library: Path) -> Judge:
    """Run the judge on an entry of kernels.cpp, perhaps against another one."""

    def run(
        head: str,
        base: str | None = None,
        *,
        cases: tuple[dict[str, int], ...] = (SMALL,),
        verify_cases: tuple[dict[str, int], ...] = (),
        head_refuses: dict[str, str] | None = None,
        base_refuses: dict[str, str] | None = None,
        verify: bool = True,
        measure: bool = True,
        max_processes: int = 16,
        call_limit_s: float = 10.0,
        calls_limit_s: float = 100.0,
        allowed_slowdown: float = 0.005,
    ) -> Said:
        suite = Suite(
            kernel="sgemm_test",
            operator="gemm",
            dtype="fp32",
            device_classes=(DeviceClass.CPU,),
            cases=tuple(Case(dims=dims) for dims in cases),
            verify_cases=tuple(Case(dims=dims) for dims in verify_cases),
            policy=Policy(allowed_slowdown=allowed_slowdown),
        )
        job = JudgeJob(
            device_class=DeviceClass.CPU,
            suite=suite,
            head=side(library, head, refused=head_refuses),
            base=None if base is None else side(library, base, refused=base_refuses),
            seed=0x5EC2E7,
            verify=verify,
            measure=measure,
            max_processes=max_processes,
            call_limit_s=call_limit_s,
            calls_limit_s=calls_limit_s,
        )
        finished = subprocess.run(
            [sys.executable, "-m", "worker.judge"],
            input=job.model_dump_json().encode(),
            capture_output=True,
            check=False,
            timeout=120,
        )
        parse: TypeAdapter[object] = TypeAdapter(JudgeSays)
        messages = [parse.validate_json(line) for line in finished.stdout.splitlines()]
        assert messages, finished.stderr.decode()
        return Said(messages=messages, stderr=finished.stderr.decode())

    return run
