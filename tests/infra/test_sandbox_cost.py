"""The judge that trusts, by which the cost of the checks is told, is the judge without them and nothing else."""

from __future__ import annotations

from pathlib import Path

from contract.outcomes import Reason
from contract.report import Report
from scripts import sandbox_cost
from tests.worker.jobs import bundles, changed, job, settings, suite
from worker.pipeline import evaluate
from worker.sandbox import NoSandbox

# Right in every call that verifies; a burst has more.
WRONG_WHEN_TIMED = changed("return 0;", "static int calls; if (++calls > 200) c[0] += 1.0f; return 0;")
WRONG = changed("return 0;", "c[0] += 1.0f; return 0;")


def run(tmp_path: Path, head: dict[str, bytes], judge: tuple[str, ...]) -> Report:
    return evaluate(
        job(head, suite=suite("fp32", 16)),
        bundles(head),
        settings=settings(tmp_path, judge=judge, max_processes=1),
        on_progress=lambda _: None,
        cancelled=lambda: False,
        sandbox=NoSandbox(),
    )


def test_what_is_wrong_in_timed_calls_alone_is_caught_with_the_checks_and_not_without(tmp_path: Path) -> None:
    trusting = (str(sandbox_cost.TRUSTING_JUDGE),)
    for judge in (("-m", "worker.judge"), (*trusting, "--checked")):
        checked = run(tmp_path, WRONG_WHEN_TIMED, judge)
        assert checked.failure is not None
        assert checked.failure.reason is Reason.WRONG_VALUES
        assert "in a timed call" in checked.failure.message
    trusted = run(tmp_path, WRONG_WHEN_TIMED, trusting)
    assert trusted.failure is None
    assert {metric.name for metric in trusted.cases[0].metrics} >= {"time", "baseline_time"}
    verified = run(tmp_path, WRONG, trusting)
    assert verified.failure is not None
    assert verified.failure.reason is Reason.WRONG_VALUES


def test_a_row_has_the_least_of_each_side_and_what_is_between_them() -> None:
    pairs = [(0.010, 0.013), (0.011, 0.012), (0.020, 0.030)]
    assert sandbox_cost.row("a start", pairs) == "| a start | 10.00 | 12.00 | 2.00 | 20.0% |"
