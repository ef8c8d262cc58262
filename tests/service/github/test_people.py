"""What people may say to the gate, and who may."""

from datetime import UTC, datetime

import pytest

from contract.outcomes import Reason, Stage
from contract.report import Failure
from tests.service.client import CASES, case_result, report
from tests.service.github.gated import KERNEL, Gated, base_files, revision, suite, times


@pytest.fixture
def main(gated: Gated) -> str:
    return gated.git.commit(base_files(), branch="main")


def test_a_forks_commit_runs_once_someone_with_write_permission_lets_it_and_no_later_one(
    gated: Gated, main: str, caplog: pytest.LogCaptureFixture
) -> None:
    head = gated.git.commit(revision("v1_naive", "from a fork"), main)
    gated.push_to(7, head, fork=True)
    check = gated.concluded(head, "action_required")
    assert [action["identifier"] for action in check["actions"]] == ["approve"]
    assert gated.queued() == []
    assert gated.settled(gated.comment(7, "/kernelgate run", who="author")) == "refused"
    assert "author has no write permission: /kernelgate run does nothing" in caplog.text
    assert gated.settled(gated.press(head, "approve", who="author")) == "refused"
    assert gated.settled(gated.press(head, "again")) == "refused"
    assert gated.queued() == []

    assert gated.settled(gated.comment(7, f"looks fine\n/kernelgate run {head[:10]}")) == "done"
    gated.measure(times(1.0))
    gated.concluded(head, "success")

    later = gated.git.commit(revision("v1_naive", "something else"), head)
    gated.push_to(7, later, action="synchronize", fork=True)
    gated.concluded(later, "action_required")
    assert gated.settled(gated.comment(7, f"/kernelgate run {head[:10]}")) == "refused"
    assert gated.queued() == []
    assert gated.settled(gated.press(later, "approve")) == "done"
    gated.measure(times(1.0))
    gated.concluded(later, "success")


def test_a_forks_docs_only_change_needs_nobody(gated: Gated, main: str) -> None:
    head = gated.git.commit({"README.md": "typo"}, main)
    gated.push_to(7, head, fork=True)
    gated.concluded(head, "success")


def test_a_comment_before_the_push_does_not_let_the_push_run(gated: Gated, main: str) -> None:
    gated.push_to(7, gated.git.commit(revision("v1_naive", "harmless"), main), fork=True)
    head = gated.git.commit(revision("v1_naive", "not harmless"), main)
    gated.push_to(7, head, action="synchronize", fork=True)
    gated.concluded(head, "action_required")
    payload = gated.payload(
        action="created",
        issue={"number": 7, "pull_request": {}},
        comment={
            "body": "/kernelgate run",
            "user": {"login": "maintainer"},
            "created_at": "2020-01-01T00:00:00Z",
        },
    )
    gated.deliver("issue_comment", payload, delivery="early")
    assert gated.settled("early") == "refused"
    assert gated.queued() == []


def test_a_push_back_to_an_earlier_commit_is_not_let_run_by_what_was_said_of_another(gated: Gated, main: str) -> None:
    harmful = gated.git.commit(revision("v1_naive", "harmful"), main)
    harmless = gated.git.commit(revision("v1_naive", "harmless"), main)
    gated.push_to(7, harmful, fork=True)
    gated.push_to(7, harmless, action="synchronize", fork=True)
    gated.concluded(harmless, "action_required")
    said = datetime.now(UTC).isoformat(timespec="seconds")
    comment = {"body": "/kernelgate run", "user": {"login": "maintainer"}, "created_at": said}
    payload = gated.payload(action="created", issue={"number": 7, "pull_request": {}}, comment=comment)
    # Pushed back before the comment is worked off; its delivery comes after it, or before it.
    pull = gated.pull(7, harmful, fork=True)
    gated.deliver("issue_comment", payload, delivery="before")
    assert gated.settled("before") == "refused"
    gated.deliver("pull_request", gated.payload(action="synchronize", number=7, pull_request=pull), delivery="back")
    assert gated.settled("back") == "done"
    gated.deliver("issue_comment", payload, delivery="after")
    assert gated.settled("after") == "refused"
    gated.concluded(harmful, "action_required")
    assert gated.queued() == []


def test_a_slowdown_is_accepted_for_this_bundle_over_this_base_and_in_the_queue(gated: Gated, main: str) -> None:
    head = gated.git.commit(revision("v2_blocked", "slow but right", shared=True), main)
    gated.push_to(3, head)
    gated.measure(times(1.05))
    gated.concluded(head, "failure")
    assert gated.settled(gated.comment(3, "/kernelgate accept right", who="author")) == "refused"
    assert gated.settled(gated.comment(3, "/kernelgate accept correctness first")) == "done"
    check = gated.concluded(head, "success")
    assert "correctness first" in check["output"]["summary"]
    assert "maintainer" in check["output"]["summary"]
    queued = gated.git.commit({"README.md": "other change"}, head)
    gated.queue(queued, main)
    gated.concluded(queued, "success")
    # Another bundle needs another yes.
    other = gated.git.commit(revision("v2_blocked", "slow again", shared=True), head)
    gated.push_to(3, other, action="synchronize")
    gated.measure(times(1.05))
    gated.concluded(other, "failure")


def test_what_is_wrong_can_not_be_accepted(gated: Gated, main: str) -> None:
    head = gated.git.commit(revision("v1_naive", "wrong"), main)
    gated.push_to(3, head)
    failure = Failure(reason=Reason.WRONG_VALUES, stage=Stage.VERIFY, message="off by one")
    gated.measure(lambda _job: report(failure=failure))
    check = gated.concluded(head, "failure")
    assert [action["identifier"] for action in check["actions"]] == ["again"]
    assert gated.settled(gated.comment(3, "/kernelgate accept please")) == "done"
    assert gated.check(head)["conclusion"] == "failure"


def test_measure_again_is_a_new_check_run_whose_evidence_adds_up(gated: Gated, main: str) -> None:
    head = gated.git.commit(revision("v1_naive", "noisy"), main)
    gated.push_to(3, head)
    gated.measure(
        lambda _job: report(failure=Failure(reason=Reason.DEVICE_UNHEALTHY, stage=Stage.MEASURE, message="Xid 79"))
    )
    check = gated.concluded(head, "timed_out")
    assert "Xid 79" in check["output"]["title"]
    gated.press(head, "again")
    [again] = gated.wait_queued()
    assert again["repeat"] == 2
    gated.measure(times(1.0))
    assert gated.concluded(head, "success")["id"] != check["id"]
    # GitHub's own buttons: all checks of the commit, or one of them.
    for repeat, event in ((3, "check_suite"), (4, "check_run")):
        number = gated.check(head)["id"]
        payload = {"head_sha": head, "pull_requests": [], "id": number}
        gated.deliver(event, gated.payload(action="rerequested", **{event: payload}))
        assert [each["repeat"] for each in gated.wait_queued()] == [repeat]
        gated.measure(times(1.0))
        assert gated.concluded(head, "success")["id"] != number


def test_an_edited_suite_is_judged_by_the_bases_and_then_needs_a_yes(gated: Gated, main: str) -> None:
    edited = suite("v1_naive", "v2_blocked", policy="allowed_slowdown = 0.2", cases=(64,))
    head = gated.git.commit({f"{KERNEL}/suite.toml": edited, **revision("v1_naive", "slow")}, main)
    gated.push_to(4, head)
    jobs = gated.measure(lambda job: report(*(case_result(case.id, ratio=1.05) for case in job.suite.cases)), count=2)
    assert sorted(len(job.suite.cases) for job in jobs) == [1, 2]
    check = gated.concluded(head, "failure")
    assert "the edited suite" in check["output"]["summary"]
    assert "it removes m=128,n=128,k=128" in check["output"]["summary"].replace("\\", "")

    fair = gated.git.commit(revision("v1_naive", "fair"), head)
    gated.push_to(4, fair, action="synchronize")
    gated.measure(lambda job: report(*(case_result(case.id, ratio=1.0) for case in job.suite.cases)), count=2)
    check = gated.concluded(fair, "action_required")
    gated.press(fair, "accept")
    gated.concluded(fair, "success")
    # The yes is to this suite, wherever it comes up: in the queue as well. Another edit needs another.
    queued = gated.git.commit({"README.md": "other change"}, main, fair)
    merged = gated.git.commit({f"{KERNEL}/suite.toml": edited, **revision("v1_naive", "fair")}, queued)
    gated.queue(merged, main)
    gated.concluded(merged, "success")
    other = suite("v1_naive", "v2_blocked", policy="allowed_slowdown = 0.3", cases=(64,))
    again = gated.git.commit({f"{KERNEL}/suite.toml": other}, fair)
    gated.push_to(4, again, action="synchronize")
    gated.measure(lambda job: report(*(case_result(case.id, ratio=1.0) for case in job.suite.cases)))
    gated.concluded(again, "action_required")


def test_a_new_kernel_is_measured_by_its_own_suite_once_that_is_accepted(gated: Gated, main: str) -> None:
    other = "kernels/other"
    files = {f"{other}/suite.toml": suite("v1_first", kernel="other"), **revision("v1_first", kernel=other)}
    head = gated.git.commit(files, main)
    gated.push_to(5, head)
    check = gated.concluded(head, "action_required")
    assert "no suite on the base" in check["output"]["title"]
    assert gated.queued() == []
    gated.press(head, "accept")
    [job] = gated.measure(times(None))
    assert (job.kernel, job.base) == ("other", None)
    gated.concluded(head, "success")
    merged = gated.git.commit(files, main, head)
    gated.queue(merged, main)
    gated.concluded(merged, "success")
    assert gated.queued() == []


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({f"{KERNEL}/": None}, "the kernel sgemm_cpu is removed"),
        ({f"{KERNEL}/suite.toml": suite("v2_blocked", "v1_naive")}, "other than by appending"),
        ({".kernelgate.toml": None}, "removed: it says what this gate looks at"),
    ],
)
def test_what_takes_something_away_needs_a_yes(gated: Gated, main: str, files: dict[str, None], said: str) -> None:
    head = gated.git.commit(files, main)
    gated.push_to(6, head)
    check = gated.concluded(head, "action_required")
    assert said in check["output"]["title"]
    # The API says no more than the check does.
    gate = f"/projects/acme--kernels/commits/{head}/gate"
    assert gated.api.problem("GET", gate)["type"] == "unknown-commit"
    gated.press(head, "accept")
    gated.concluded(head, "success")


def test_cases_that_only_the_base_supports_fail(gated: Gated, main: str) -> None:
    head = gated.git.commit(revision("v1_naive", "less"), main)
    gated.push_to(8, head)
    refused = case_result(CASES[1], metrics=(), held_s=None, skipped="k = 128 is over 64")
    gated.measure(lambda _job: report(case_result(CASES[0], ratio=1.0), refused))
    assert "which v1 supports" in gated.concluded(head, "failure")["output"]["title"]
