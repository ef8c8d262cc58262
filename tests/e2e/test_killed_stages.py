"""SIGKILL and cancelling while the recorder or NVIDIA's tools work: nothing they started is left, and the end comes
once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.card import STAGES, Card, submit
from tests.e2e.stack import Stack, until
from tests.worker.conftest import cubin  # noqa: F401 - a fixture


@pytest.fixture(scope="module")
def card(tmp_path_factory: pytest.TempPathFactory, cubin: Path) -> Card:  # noqa: F811
    return Card(tmp_path_factory.mktemp("card"), cubin)


@pytest.fixture(scope="module")
def _stack(card: Card) -> Iterator[Stack]:
    stack = Stack(card.folder, worker=card.worker)
    stack.start()
    yield stack
    for stage in STAGES:
        card.release(stage)
    stack.stop()


@pytest.mark.parametrize("victim", ["child", "parent"])
def test_an_evaluation_outlives_a_worker_killed_in_each_stage_of_a_card(stack: Stack, card: Card, victim: str) -> None:
    for stage in STAGES:
        card.hold(stage)
    evaluation = submit(stack, source=f"# killed {victim}")
    for stage in STAGES:
        _reach(stack, evaluation, stage)
        stack.worker.kill(victim)
        assert not stack.processes("sleep")
        card.release(stage)
    ended = stack.ended(evaluation)
    assert ended["outcome"] == "passed", ended
    assert [attempt["end"] for attempt in ended["attempts"]] == ["expired", "expired", "expired", "reported"]
    assert [stage["stage"] for stage in ended["stages"]][-3:] == ["sanitize", "profile", "report"]
    assert ended["left_out"] == []
    assert stack.gate.statuses(f"{evaluation}/report") == [204]


@pytest.mark.parametrize("stage", STAGES)
def test_cancelling_ends_who_is_at_work_and_all_that_it_started(stack: Stack, card: Card, stage: str) -> None:
    card.hold(stage)
    evaluation = submit(stack, source=f"# cancelled {stage}")
    _reach(stack, evaluation, stage)
    response = stack.api.http.delete(f"/evaluations/{evaluation}")
    assert response.status_code in {200, 202}, response.text
    ended = stack.ended(evaluation)
    assert (ended["state"], ended["outcome"], ended["reason"]) == ("cancelled", "cancelled", "by_request")
    until(stack.idle, "it, its children and the evaluation's folder are gone")
    card.release(stage)
    assert stack.gate.statuses(f"{evaluation}/report") == []
    assert stack.ended(submit(stack))["outcome"] == "passed"


def _reach(stack: Stack, evaluation: str, stage: str) -> None:
    until(lambda: len(stack.processes("sleep")) == 2, f"somebody is at work in {stage}")
    until(lambda: stack.api.evaluation(evaluation)["stage"] == stage, f"the service knows of {stage}")
