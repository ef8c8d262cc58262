"""SIGKILL in every stage: the evaluation is done by another attempt, once, and nothing is left running."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from tests.e2e import revisions
from tests.e2e.stack import Stack, until

VICTIMS = ("child", "parent")


@pytest.mark.parametrize("victim", VICTIMS)
def test_one_evaluation_outlives_a_worker_killed_in_each_stage_in_turn(stack: Stack, victim: str) -> None:
    """And the reports that the dead attempts had sent, should they arrive later, change nothing."""
    for stage in ("verify", "measure"):
        stack.hold(stage)
    with ExitStack() as held:
        bundles = held.enter_context(ExitStack())
        fetch = bundles.enter_context(stack.gate.held("/bundles/"))
        reports = held.enter_context(stack.gate.held("/report"))
        slow = revisions.files(revisions.slow_to_compile(2, name=f"killed {victim}"))
        evaluation = stack.submit(slow)

        until(lambda: fetch.arrived, "the bundle is asked for")
        stack.worker.kill(victim)
        bundles.close()
        until(lambda: stack.processes("cc1plus"), "the compiler runs")
        stack.worker.kill(victim)
        for stage in ("verify", "measure"):
            until(lambda: stack.reached(stage), f"the judge is in {stage}, its launchers running")  # noqa: B023
            stack.worker.kill(victim)
            stack.release(stage)
        until(lambda: reports.arrived, "the report is on its way")
        stack.worker.kill(victim)
        known = len(reports.arrived)
        until(lambda: len(reports.arrived) > known, "another attempt reports")
    ended = stack.passed(evaluation)
    assert len(ended["attempts"]) >= 6
    until(lambda: len(stack.gate.statuses(f"{evaluation}/report")) == len(reports.arrived), "every report arrived")
    assert sorted(stack.gate.statuses(f"{evaluation}/report"))[:2] == [204, 409]
    assert stack.api.evaluation(evaluation) == ended


@pytest.mark.parametrize("victim", VICTIMS)
def test_a_worker_killed_after_its_report_was_taken_is_not_asked_again(stack: Stack, victim: str) -> None:
    with stack.gate.held("/report", "after") as hold:
        evaluation = stack.submit()
        until(lambda: hold.arrived, "the report was taken")
        stack.worker.kill(victim)
    stack.passed(evaluation)
    assert stack.gate.statuses(f"{evaluation}/report") == [204]
