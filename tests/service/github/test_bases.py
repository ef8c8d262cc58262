"""Which commit a change is compared with, and what is said where there is none."""

from sqlmodel import select

from contract.api import Scope
from service.models import Revision
from tests.service.conftest import wait_for
from tests.service.github.gated import KERNEL, Gated, base_files, revision, suite, times


def test_what_main_did_meanwhile_is_not_the_pull_requests(gated: Gated) -> None:
    main = gated.git.commit(base_files(), branch="main")
    topic = gated.git.commit(revision("v1_naive", "topic"), main)
    ahead = gated.git.commit(revision("v2_blocked", "main's own", shared=True), main, branch="main")
    gated.push_to(1, topic)
    [job] = gated.measure(times(1.0))
    assert job.revision.label == "v1"
    gated.concluded(topic, "success")
    # With main merged into it, the merge base is main's tip.
    merge = gated.git.commit(revision("v2_blocked", "main's own", shared=True), topic, ahead)
    gated.push_to(1, merge, action="synchronize")
    check = gated.concluded(merge, "success")
    assert f"Compared with `{ahead[:12]}`" in check["output"]["summary"]
    assert gated.queued() == []


def test_a_base_that_was_never_measured_is_measured_beside_the_head(gated: Gated) -> None:
    main = gated.git.commit(base_files(), branch="main")
    head = gated.git.commit(revision("v1_naive", "new"), main)
    gated.push_to(1, head)
    [job] = gated.measure(times(1.0))
    assert job.base is not None
    with gated.running.database.read() as session:
        rows = {row.id: row for row in session.exec(select(Revision)).all()}
    assert (rows[job.base.id].commit, rows[job.revision.id].commit) == (main, head)
    assert not any(row.mainline for row in rows.values())
    check = gated.concluded(head, "success")
    assert f"the same folder at {main[:12]}, which was never measured: it is now" in check["output"]["summary"]
    merged = gated.git.commit(revision("v1_naive", "new"), main, branch="main")
    last = gated.git.commit(revision("v1_naive", "newest"), merged)
    gated.push_to(3, last)
    gated.measure(times(1.0))
    assert "never measured" not in gated.concluded(last, "success")["output"]["summary"]


def test_a_force_push_back_to_an_earlier_commit_is_judged_again(gated: Gated) -> None:
    main = gated.git.commit(base_files(), branch="main")
    first = gated.git.commit(revision("v1_naive", "first"), main)
    second = gated.git.commit(revision("v1_naive", "second"), main)
    gated.push_to(1, first)
    gated.wait_queued()
    gated.push_to(1, second, action="synchronize")
    gated.concluded(first, "cancelled")
    gated.push_to(1, first, action="synchronize")
    gated.concluded(second, "cancelled")
    gated.measure(times(1.0))
    gated.concluded(first, "success")
    assert len(gated.github.checks_of(first)) == 2


def test_a_head_that_vanished_ends_its_check_and_nothing_else(gated: Gated) -> None:
    main = gated.git.commit(base_files(), branch="main")
    gone = "d" * 40
    gated.push_to(1, gone)
    docs = gated.git.commit({"README.md": "x"}, main)
    gated.push_to(2, docs)
    gated.concluded(docs, "success")
    assert gated.github.checks_of(gone) == []


def test_unrelated_histories_are_said_to_be(gated: Gated) -> None:
    gated.git.commit(base_files(), branch="main")
    orphan = gated.git.commit(base_files(), message="another beginning")
    gated.push_to(1, orphan)
    assert "no common ancestor" in gated.concluded(orphan, "failure")["output"]["title"]


def test_a_branch_without_the_configuration_is_not_gated(gated: Gated) -> None:
    main = gated.git.commit({"README.md": "x"}, branch="main")
    head = gated.git.commit(base_files(), main)
    gated.push_to(1, head)
    check = gated.concluded(head, "success")
    assert "not set up there" in check["output"]["summary"]


def test_a_changed_base_branch_is_another_comparison(gated: Gated) -> None:
    main = gated.git.commit(base_files(), branch="main")
    old = gated.git.commit(revision("v1_naive", "old"), main, branch="release")
    head = gated.git.commit({"README.md": "x"}, old)
    gated.push_to(1, head, base="release")
    gated.concluded(head, "success")
    pull = gated.pull(1, head, base="main")
    payload = gated.payload(
        action="edited", number=1, pull_request=pull, changes={"base": {"ref": {"from": "release"}}}
    )
    gated.deliver("pull_request", payload)
    [waiting] = gated.wait_queued()
    assert waiting["revision"]["label"] == "v1"


def test_a_commit_whose_delivery_was_lost_is_found_by_its_check_suite(gated: Gated) -> None:
    main = gated.git.commit(base_files(), branch="main")
    head = gated.git.commit({"README.md": "x"}, main)
    gated.pull(9, head, fork=True)
    # A fork's push names no pull request.
    suite_payload = {"head_sha": head, "head_branch": None, "pull_requests": []}
    gated.deliver("check_suite", gated.payload(action="requested", check_suite=suite_payload))
    gated.concluded(head, "success")


def test_a_push_to_main_brings_its_suite_and_a_point_of_the_history(gated: Gated) -> None:
    before = gated.git.commit(base_files(), branch="main")
    listed = suite("v1_naive", "v2_blocked", "v3_packed", policy="allowed_slowdown = 0.01")
    after = gated.git.commit({f"{KERNEL}/suite.toml": listed, **revision("v3_packed")}, before, branch="main")
    push = gated.payload(ref="refs/heads/main", before=before, after=after)
    gated.deliver("push", push)
    [waiting] = gated.wait_queued()
    assert (waiting["project"], waiting["revision"]["label"], waiting["base"]["label"]) == ("acme--kernels", "v3", "v2")
    api = gated.running.api(gated.running.token(Scope.READ))
    found = api.ok("GET", "/projects/acme--kernels/kernels/sgemm_cpu/suite")["suite"]
    assert found["policy"]["allowed_slowdown"] == 0.01
    revisions = api.ok("GET", "/revisions", params={"project": "acme--kernels"})["items"]
    assert {row["label"]: row["mainline"] for row in revisions} == {"v3": True, "v2": False}
    assert gated.github.checks == {}
    gated.deliver("push", gated.payload(ref="refs/heads/topic", before=before, after=after), delivery="topic")
    gated.deliver("push", gated.payload(ref="refs/tags/v1", before="0" * 40, after=after), delivery="tag")
    assert {gated.settled("topic"), gated.settled("tag")} == {"done"}
    assert len(gated.queued()) == 1


def test_a_push_whose_parent_vanished_is_compared_with_its_own_parent(gated: Gated) -> None:
    before = gated.git.commit(base_files(), branch="main")
    after = gated.git.commit(revision("v1_naive", "new"), before, branch="main")
    gated.deliver("push", gated.payload(ref="refs/heads/main", before="e" * 40, after=after))
    [waiting] = gated.wait_queued()
    assert waiting["base"]["label"] == "v1"


def test_a_class_without_a_node_times_out_and_is_named(make_gated) -> None:
    gated: Gated = make_gated(github_node_wait_s=0.2)
    main = gated.git.commit(base_files(), branch="main")
    head = gated.git.commit(revision("v1_naive", "new"), main)
    gated.push_to(1, head)
    assert "class cpu" in gated.concluded(head, "timed_out")["output"]["title"]
    # A node that comes after all is not too late: a new check run takes over.
    gated.measure(times(1.0))
    gated.concluded(head, "success")
    wait_for(lambda: len(gated.github.checks_of(head)) >= 1)
