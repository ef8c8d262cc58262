"""The sandbox as a worker of this machine makes it; without one these tests fail and say what the machine lacks."""

from pathlib import Path

import pytest

from contract.bundle import Files
from contract.report import Report
from tests.worker.jobs import bundle, bundles, changed, job, settings, suite
from worker.pipeline import evaluate
from worker.sandbox import Sandbox, choose
from worker.settings import WorkerSettings

MEMORY_BYTES = 256 << 20
PROCESSES = 64


def in_the_call(statements: str) -> Files:
    return changed("  return 0;", f"{statements}\n  return 0;")


@pytest.fixture
def small(tmp_path: Path) -> WorkerSettings:
    return settings(
        tmp_path,
        judge=("-m", "worker.judge"),
        max_processes=4,
        call_limit_s=2.0,
        compile_limit_s=4.0,
        sandbox_memory_bytes=MEMORY_BYTES,
        sandbox_processes=PROCESSES,
        sandbox_disk_bytes=64 << 20,
    )


@pytest.fixture
def sandbox(small: WorkerSettings) -> Sandbox:
    made = choose(small)
    assert made.isolates, f"{made.problem}. Install bubblewrap 0.8 or later, and allow user namespaces."
    return made


class Node:
    """Evaluates one bundle after the other, as a worker does."""

    def __init__(self, settings: WorkerSettings, sandbox: Sandbox) -> None:
        self.settings, self.sandbox = settings, sandbox

    def run(self, head: Files) -> Report:
        return evaluate(
            job(head, None, suite=suite("fp32", 16)),
            bundles(head),
            settings=self.settings,
            on_progress=lambda _: None,
            cancelled=lambda: False,
            sandbox=self.sandbox,
        )

    def serves(self) -> bool:
        """Whether an honest revision is built and passes every check (its measurement is not waited for)."""
        report = self.run(bundle("gemm_cpu"))
        return report.failure is None and all(check.passed for check in report.checks)


@pytest.fixture
def node(small: WorkerSettings, sandbox: Sandbox) -> Node:
    return Node(small, sandbox)
