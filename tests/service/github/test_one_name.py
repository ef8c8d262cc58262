"""A commit that several pull requests have for a head has one check of the name, and GitHub looks at the newest."""

import pytest

from service.github.conclusions import Decision, hold_back
from tests.service.conftest import wait_for
from tests.service.github.fake import Trouble
from tests.service.github.gated import Gated, base_files, revision, times

GOOD = Decision(status="completed", conclusion="success", sentence="all is well")
BAD = Decision(status="completed", conclusion="failure", sentence="slower")
WAITING = Decision(status="in_progress", conclusion=None, sentence="1 evaluation to come")


def test_one_gate_that_is_not_through_holds_all_back_and_what_failed_is_said_first() -> None:
    assert hold_back(GOOD, [("#1", GOOD)]) == GOOD
    assert hold_back(BAD, [("#1", GOOD)]) == BAD
    assert hold_back(GOOD, [("#1", WAITING)]).status == "in_progress"
    held = hold_back(GOOD, [("#1", WAITING), ("#2", BAD)])
    assert (held.conclusion, held.sentence) == ("failure", "#2: slower")


@pytest.fixture
def slow(gated: Gated) -> str:
    """The head of a pull request to main that is too slow, and of one to a branch that has it already."""
    main = gated.git.commit(base_files(), branch="main")
    slow = gated.git.commit(revision("v1_naive", "slow"), main, branch="elsewhere")
    gated.push_to(1, slow)
    gated.measure(times(1.05))
    gated.concluded(slow, "failure")
    gated.push_to(2, slow, base="elsewhere")
    wait_for(lambda: len(gated.github.checks_of(slow)) == 2)
    return slow


def test_a_second_pull_request_of_the_same_commit_is_no_way_round_the_first(gated: Gated, slow: str) -> None:
    check = gated.concluded(slow, "failure")
    assert check["output"]["title"].startswith("pull request #1 to main: ")
    assert gated.settled(gated.comment(1, "/kernelgate accept it is right")) == "done"
    wait_for(lambda: [each["conclusion"] for each in gated.github.checks_of(slow)] == ["success", "success"])


def test_a_check_whose_creation_was_not_heard_of_is_found_beside_a_newer_one(gated: Gated) -> None:
    main = gated.git.commit(base_files(), branch="main")
    head = gated.git.commit({"README.md": "x"}, main)
    gated.github.troubles += [
        Trouble(at="POST /repos/acme/kernels/check-runs", status=502, after=True),
        Trouble(at="GET /repos/acme/kernels/commits/", status=500, times=3),
    ]
    gated.push_to(1, head)
    wait_for(lambda: gated.github.checks_of(head))
    gated.push_to(2, head, base="main")
    wait_for(lambda: [each.get("conclusion") for each in gated.github.checks_of(head)] == ["success", "success"])


def test_githubs_button_on_the_suite_means_every_gate_and_the_one_on_a_check_its_own(gated: Gated, slow: str) -> None:
    gated.concluded(slow, "failure")
    first = gated.github.checks_of(slow)[0]
    payload = {"id": first["id"], "head_sha": slow, "pull_requests": []}
    gated.deliver("check_run", gated.payload(action="rerequested", check_run=payload))
    gated.measure(times(1.05))
    wait_for(lambda: len(gated.github.checks_of(slow)) == 3)
    gated.concluded(slow, "failure")
    suite = {"head_sha": slow, "pull_requests": []}
    gated.deliver("check_suite", gated.payload(action="rerequested", check_suite=suite))
    gated.measure(times(1.05))
    wait_for(lambda: len(gated.github.checks_of(slow)) == 5)


def test_a_closed_pull_request_holds_nothing_back(gated: Gated, slow: str) -> None:
    gated.concluded(slow, "failure")
    gated.deliver("pull_request", gated.payload(action="closed", number=1, pull_request=gated.pull(1, slow)))
    gated.concluded(slow, "success")
    assert [each["conclusion"] for each in gated.github.checks_of(slow)] == ["failure", "success"]
