"""Errors that nobody foresaw: tried again for a while, then said, and never for ever."""

from collections.abc import Callable
from typing import Any

import pytest

from service.github import events, outbox, planner
from service.github.client import UNFORESEEN_TRIES
from tests.service.github.gated import Gated, base_files, revision, times


class Broken:
    """Stands in for `right` and fails `times` times, with a secret in the error's text."""

    def __init__(self, right: Callable[..., Any], *, times: int) -> None:
        self._right = right
        self.left = times
        self.asked = 0

    def __call__(self, *args: Any, **options: Any) -> Any:
        self.asked += 1
        if self.left > 0:
            self.left -= 1
            raise LookupError("a password")
        return self._right(*args, **options)


@pytest.fixture
def gated(make_gated: Any) -> Gated:
    gated: Gated = make_gated(github_pause_s=0.001)
    return gated


@pytest.fixture
def main(gated: Gated) -> str:
    return gated.git.commit(base_files(), branch="main")


def break_it(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, *, times: int = 1 << 30) -> Broken:
    broken = Broken(getattr(module, name), times=times)
    monkeypatch.setattr(module, name, broken)
    return broken


def test_a_change_that_can_not_be_planned_ends_timed_out_and_the_button_tries_again(
    gated: Gated, main: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broken = break_it(monkeypatch, planner, "make_plan")
    head = gated.git.commit(revision("v1_naive", "new"), main)
    gated.push_to(1, head)
    check = gated.concluded(head, "timed_out")
    assert broken.asked == UNFORESEEN_TRIES + 1
    title = check["output"]["title"]
    assert title.startswith("could not be judged: the service itself failed (LookupError)")
    assert title.partition("gate ")[2] in caplog.text
    assert "a password" in caplog.text
    assert "a password" not in str(check)
    assert [action["identifier"] for action in check["actions"]] == ["again"]

    broken.left = 0
    assert gated.settled(gated.press(head, "again")) == "done"
    gated.measure(times(1.0))
    gated.concluded(head, "success")


def test_an_error_that_passes_by_leaves_no_trace(gated: Gated, main: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((planner, "make_plan"), (outbox, "scene_of"), (outbox, "check_of"), (events, "pull_of")):
        break_it(monkeypatch, module, name, times=3)
    head = gated.git.commit(revision("v1_naive", "new"), main)
    gated.push_to(1, head)
    gated.measure(times(1.0))
    gated.concluded(head, "success")
    assert len(gated.github.checks_of(head)) == 1


def test_a_change_that_can_not_be_planned_again_does_not_stand_by_its_older_plan(
    gated: Gated, main: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = gated.git.commit(revision("v1_naive", "from a fork"), main)
    gated.push_to(7, head, fork=True)
    gated.concluded(head, "action_required")
    broken = break_it(monkeypatch, planner, "make_plan")
    assert gated.settled(gated.press(head, "approve")) == "done"
    gated.concluded(head, "timed_out")
    assert gated.queued() == []

    broken.left = 0
    assert gated.settled(gated.press(head, "again")) == "done"
    gated.measure(times(1.0))
    gated.concluded(head, "success")


def test_a_forks_change_that_could_not_be_read_is_read_again_without_leave_to_run(
    gated: Gated, main: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = break_it(monkeypatch, planner, "make_plan")
    head = gated.git.commit(revision("v1_naive", "from a fork"), main)
    gated.push_to(7, head, fork=True)
    gated.concluded(head, "timed_out")
    broken.left = 0
    assert gated.settled(gated.press(head, "again")) == "done"
    gated.concluded(head, "action_required")
    assert gated.queued() == []


def test_a_check_that_can_not_be_made_ends_timed_out(gated: Gated, main: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = outbox.check_of

    def fails_with_evaluations(scene: Any, **options: Any) -> Any:
        if scene.plan is not None:
            raise LookupError("a password")
        return right(scene, **options)

    monkeypatch.setattr(outbox, "check_of", fails_with_evaluations)
    head = gated.git.commit(revision("v1_naive", "new"), main)
    gated.push_to(1, head)
    check = gated.concluded(head, "timed_out")
    assert "the service itself failed (LookupError)" in check["output"]["title"]
    assert "a password" not in str(check)


def test_a_delivery_that_can_not_be_worked_off_is_given_up_and_holds_up_no_other(
    gated: Gated, main: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = events.Events.handle

    async def handle(self: events.Events, delivery: Any) -> None:
        if delivery.id == "poison":
            raise RuntimeError("a password")
        await right(self, delivery)

    monkeypatch.setattr(events.Events, "handle", handle)
    gated.deliver("pull_request", gated.payload(action="opened"), delivery="poison")
    head = gated.git.commit({"README.md": "docs"}, main)
    gated.push_to(2, head)
    gated.concluded(head, "success")
    assert gated.settled("poison") == "failed"

    monkeypatch.undo()
    again = gated.deliver("pull_request", gated.payload(action="closed", number=9), delivery="poison")
    assert again.json() == {"kept": True}
    assert gated.settled("poison") == "refused"
