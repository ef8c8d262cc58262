"""GitHub down, slow, limiting or forgetful: nothing is lost, and nothing is made twice."""

import time
from typing import Any

import pytest

from service.github.client import GithubAwayError, pause_after
from tests.service.conftest import wait_for
from tests.service.github.fake import Trouble
from tests.service.github.gated import Gated, base_files, revision, times


def limited() -> dict[str, str]:
    reset = int(time.time()) - 1
    return {"X-RateLimit-Limit": "5000", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(reset)}


@pytest.fixture
def head(gated: Gated) -> str:
    main = gated.git.commit(base_files(), branch="main")
    return gated.git.commit(revision("v1_naive", "new"), main)


_EVERYWHERE = (
    "/repos/acme/kernels/installation",
    "/access_tokens",
    "/compare/",
    "/git/commits/",
    "/git/trees/",
    "/git/blobs/",
    "POST /repos/acme/kernels/check-runs",
    "PATCH /repos/acme/kernels/check-runs/",
)


@pytest.mark.parametrize(
    ("status", "headers"),
    [(500, {}), (403, "limited"), (403, {"Retry-After": "0"}), (429, {"Retry-After": "0"})],
)
def test_the_check_ends_right_whatever_github_answers_in_between(
    gated: Gated, head: str, status: int, headers: Any
) -> None:
    answer = limited() if headers == "limited" else headers
    gated.github.troubles += [Trouble(at=at, status=status, headers=answer) for at in _EVERYWHERE]
    gated.push_to(1, head)
    gated.measure(times(1.0))
    gated.concluded(head, "success")
    assert [trouble.at for trouble in gated.github.troubles if trouble.times] == []
    assert len(gated.github.checks_of(head)) == 1


def test_a_check_whose_creation_was_not_heard_of_is_found_again(gated: Gated, head: str) -> None:
    gated.github.troubles.append(Trouble(at="POST /repos/acme/kernels/check-runs", status=502, after=True))
    gated.push_to(1, head)
    gated.measure(times(1.0))
    gated.concluded(head, "success")
    assert len(gated.github.checks_of(head)) == 1


def test_a_check_that_github_finds_invalid_is_sent_plain(gated: Gated, head: str) -> None:
    invalid = {"message": "Invalid request.", "errors": [{"field": "output", "code": "invalid"}]}
    gated.github.troubles.append(Trouble(at="PATCH ", status=422, body=invalid))
    gated.push_to(1, head)
    gated.measure(times(1.05))
    assert gated.concluded(head, "failure")["output"]["title"]


def test_a_token_that_github_revoked_is_replaced(gated: Gated, head: str) -> None:
    gated.push_to(1, head)
    gated.wait_queued()
    wait_for(lambda: gated.github.checks_of(head))
    gated.github.tokens.clear()
    gated.measure(times(1.0))
    gated.concluded(head, "success")


def test_a_token_in_its_last_minutes_is_not_used(gated: Gated, head: str) -> None:
    gated.github.token_life_s = 200
    gated.push_to(1, head)
    gated.measure(times(1.0))
    gated.concluded(head, "success")
    made = sum("access_tokens" in line for line in gated.github.requests)
    assert made == sum("/repos/" in line and not line.endswith("installation") for line in gated.github.requests)


def test_a_vanished_check_run_is_made_anew(gated: Gated, head: str) -> None:
    gated.push_to(1, head)
    gated.wait_queued()
    wait_for(lambda: gated.github.checks_of(head))
    gated.github.checks.clear()
    gated.measure(times(1.0))
    gated.concluded(head, "success")


def test_pauses_double_and_heed_what_github_asks_for() -> None:
    away = GithubAwayError("")
    pauses = [pause_after(tries, away, first_s=2.0) for tries in (0, 1, 2, 5, 30)]
    assert pauses == [2.0, 4.0, 8.0, 64.0, 900.0]
    assert pause_after(0, GithubAwayError("", pause_s=77.0), first_s=2.0) == 77.0


def test_checks_that_are_sent_side_by_side_take_one_token(gated: Gated) -> None:
    main = gated.git.commit(base_files(), branch="main")
    heads = [gated.git.commit({"README.md": str(number)}, main) for number in range(6)]
    for number, head in enumerate(heads, start=1):
        gated.push_to(number, head)
    for head in heads:
        gated.concluded(head, "success")
    assert len([line for line in gated.github.requests if line.endswith("/access_tokens")]) == 1
