"""The default branch's line: pushes, merges and rewrites become points of histories in git's order."""

import uuid
from itertools import pairwise
from typing import Any

import pytest
from sqlmodel import select

from contract.api import Scope
from contract.manifest import parse_suite
from service.github.tables import GithubGate
from tests.service.client import case_result, report
from tests.service.conftest import BACKENDS, wait_for
from tests.service.github.gated import KERNEL, Gated, Judge, base_files, revision, suite, times


def push(gated: Gated, before: str, after: str) -> str:
    """The branch is at `after` from now on. How the delivery ended."""
    gated.git.git("update-ref", "refs/heads/main", after)
    return deliver(gated, before, after)


def deliver(gated: Gated, before: str, after: str) -> str:
    delivery = str(uuid.uuid4())
    payload = gated.payload(ref="refs/heads/main", before=before, after=after)
    assert gated.deliver("push", payload, delivery=delivery).status_code == 202
    state = gated.settled(delivery)
    wait_for(lambda: all(gate.state == "done" for gate in pushes(gated)))
    return state


def pushes(gated: Gated) -> list[GithubGate]:
    with gated.running.database.read() as session:
        return list(session.exec(select(GithubGate).where(GithubGate.kind == "push")).all())


def pushed(gated: Gated, before: str, *parents: str, judge: Judge, **sources: str) -> str:
    """A commit on top of `parents`, or of `before`, that changes these revisions, pushed and measured."""
    files: dict[str, Any] = {}
    for name, text in sources.items():
        files |= revision(name, text, shared=name == "v2_blocked")
    after = gated.git.commit(files, *(parents or (before,)))
    push(gated, before, after)
    gated.measure(judge, count=len(sources))
    return after


def line(gated: Gated, *, mainline: bool = True) -> list[str]:
    """The commits of the history's points, in its order."""
    api = gated.running.api(gated.running.token(Scope.READ))
    query = {"device_class": "cpu", "case": "m=64,n=64,k=64", "metric": "time", "mainline": mainline}
    path = "/projects/acme--kernels/kernels/sgemm_cpu/history"
    return [point["commit"] for point in api.ok("GET", path, params=query)["points"]]


def newest(gated: Gated) -> str:
    """The commit that the overview shows."""
    [standing] = gated.api.ok("GET", "/projects/acme--kernels/overview")["standings"]
    return str(standing["commit"])


def regressions(gated: Gated) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = gated.api.ok("GET", "/projects/acme--kernels/regressions")["items"]
    return items


@pytest.fixture
def main(gated: Gated) -> str:
    return gated.git.commit(base_files(), branch="main")


def test_pushes_are_points_in_gits_order_whatever_they_change_and_whenever_they_are_measured(
    gated: Gated, main: str
) -> None:
    first = gated.git.commit(revision("v2_blocked", "first", shared=True), main)
    second = gated.git.commit(revision("v1_naive", "second"), first)
    third = gated.git.commit(revision("v2_blocked", "third", shared=True), second)
    fourth = gated.git.commit(revision("v1_naive", "fourth"), third)
    commits = [main, first, second, third, fourth]
    for before, after in pairwise(commits):
        push(gated, before, after)
    for waiting in reversed(gated.wait_queued(4)):
        job = gated.node.claim(waiting["id"])
        gated.node.finish(job, times(1.0)(job))
    assert line(gated) == commits[1:]
    assert newest(gated) == fourth


def test_a_merge_is_one_point_after_what_it_merged_and_before_what_follows(gated: Gated, main: str) -> None:
    topic = main
    for step in range(5):
        topic = gated.git.commit(revision("v1_naive", f"topic {step}"), topic)
    ahead = pushed(gated, main, judge=times(1.0), v2_blocked="ahead")
    merge = pushed(gated, ahead, ahead, topic, judge=times(1.0), v1_naive="topic 4")
    after = pushed(gated, merge, judge=times(1.0), v2_blocked="after")
    assert line(gated) == [ahead, merge, after]
    known = {gate.head_sha: gate for gate in pushes(gated)}
    assert [known[sha].first_parent_index for sha in (ahead, merge, after)] == [1, 7, 8]
    assert known[merge].base_sha == ahead


def test_a_revision_is_compared_with_the_point_before_it_though_its_commit_is_older(gated: Gated, main: str) -> None:
    first = pushed(gated, main, judge=times(1.0), v1_naive="first")
    docs = gated.git.commit({"README.md": "x"}, first)
    push(gated, first, docs)
    pushed(gated, docs, judge=times(1.05), v1_naive="second")
    [regression] = regressions(gated)
    assert regression["after"]["commit"] == first


@pytest.mark.parametrize("gate_database", BACKENDS)
def test_what_was_pushed_away_is_no_point_and_no_regression_any_more(gated: Gated, main: str) -> None:
    first = pushed(gated, main, judge=times(1.0), v1_naive="first")
    slow = pushed(gated, first, judge=times(1.05), v1_naive="slow")
    [regression] = regressions(gated)
    assert (regression["state"], newest(gated)) == ("new", slow)
    waiting = gated.git.commit(revision("v2_blocked", "not measured yet", shared=True), slow)
    push(gated, slow, waiting)
    gated.wait_queued()

    rewritten = gated.git.commit(revision("v2_blocked", "instead", shared=True), first)
    push(gated, waiting, rewritten)
    [job] = gated.measure(times(1.0))
    assert (job.revision.label, job.base.label if job.base else None) == ("v2", "v2")
    assert line(gated) == [first, rewritten]
    assert set(line(gated, mainline=False)) == {first, slow, rewritten}
    assert newest(gated) == rewritten
    [regression] = regressions(gated)
    assert regression["state"] == "noise"
    assert f"pushed away by {rewritten[:12]}" in regression["reason"]


def test_a_slowdown_whose_fix_was_pushed_away_is_open_again(gated: Gated, main: str) -> None:
    slow = pushed(gated, main, judge=times(1.05), v1_naive="slow")
    fix = pushed(gated, slow, judge=times(0.9), v1_naive="fix")
    [regression] = regressions(gated)
    assert (regression["state"], regression["fixed_by"]["commit"]) == ("fixed", fix)
    push(gated, fix, slow)
    [regression] = regressions(gated)
    assert (regression["state"], regression["fixed_by"]) == ("new", None)
    assert "which fixed it, was pushed away" in regression["reason"]
    assert (line(gated), newest(gated)) == ([slow], slow)
    # And fixed once more when the same commit is pushed again.
    push(gated, slow, fix)
    wait_for(lambda: line(gated) == [slow, fix])
    assert regressions(gated)[0]["state"] == "fixed"
    assert gated.queued() == []


def test_a_branch_that_was_replaced_by_an_unrelated_one_begins_anew(gated: Gated, main: str) -> None:
    old = pushed(gated, main, judge=times(1.0), v1_naive="old")
    orphan = gated.git.commit({**base_files(), **revision("v1_naive", "of another beginning")})
    push(gated, old, orphan)
    gated.measure(times(None))
    later = pushed(gated, orphan, judge=times(1.0), v1_naive="later")
    assert line(gated) == [orphan, later]


def test_deliveries_out_of_order_and_a_lost_one_leave_no_gap(gated: Gated, main: str) -> None:
    first = pushed(gated, main, judge=times(1.0), v1_naive="first")
    second = gated.git.commit(revision("v1_naive", "second"), first)
    third = gated.git.commit(revision("v2_blocked", "third", shared=True), second)
    gated.git.git("update-ref", "refs/heads/main", third)
    # The delivery of `second` is late: what it changed is not the third's to miss.
    deliver(gated, second, third)
    gated.measure(times(1.0), count=2)
    assert line(gated) == [first, third, third]
    deliver(gated, first, second)
    gated.measure(times(1.0))
    assert line(gated) == [first, second, third, third]


def test_the_suite_is_the_branchs_own_after_a_rewrite_and_never_an_older_ones(gated: Gated, main: str) -> None:
    def with_suite(before: str, allowed: float) -> str:
        text = suite("v1_naive", "v2_blocked", policy=f"allowed_slowdown = {allowed}")
        return gated.git.commit({f"{KERNEL}/suite.toml": text}, before)

    def allowed() -> float:
        found = gated.api.ok("GET", "/projects/acme--kernels/kernels/sgemm_cpu/suite")["suite"]
        return float(found["policy"]["allowed_slowdown"])

    first = with_suite(main, 0.01)
    second = with_suite(first, 0.02)
    third = with_suite(second, 0.03)
    push(gated, main, first)
    # The second's delivery comes after the third's.
    push(gated, second, third)
    deliver(gated, first, second)
    assert allowed() == 0.03
    push(gated, third, first)
    assert allowed() == 0.01


def test_a_late_delivery_of_what_was_pushed_away_is_none(gated: Gated, main: str) -> None:
    first = pushed(gated, main, judge=times(1.0), v1_naive="first")
    lost = gated.git.commit(revision("v1_naive", "lost"), first)
    instead = gated.git.commit(revision("v2_blocked", "instead", shared=True), first)
    push(gated, lost, instead)
    gated.measure(times(1.0))
    deliver(gated, first, lost)
    assert line(gated) == [first, instead]
    assert gated.queued() == []
    assert {gate.head_sha for gate in pushes(gated) if gate.ended} == {lost}


def test_the_first_push_that_is_seen_brings_the_kernels_that_it_does_not_change_too(gated: Gated, main: str) -> None:
    docs = gated.git.commit({"README.md": "x"}, main)
    push(gated, main, docs)
    listed = gated.api.ok("GET", "/projects/acme--kernels/kernels/sgemm_cpu/suite")["suite"]["revisions"]
    assert listed == ["v1_naive", "v2_blocked"]
    assert gated.queued() == []


def test_the_first_push_of_a_repository_brings_its_kernels(gated: Gated) -> None:
    first = gated.git.commit(base_files())
    push(gated, "0" * 40, first)
    [job] = gated.measure(times(None))
    assert (job.revision.label, job.base) == ("v2", None)
    assert line(gated) == [first]


def test_what_came_by_another_way_comes_before_the_push_that_follows(gated: Gated, main: str) -> None:
    first = pushed(gated, main, judge=times(1.0), v1_naive="first")
    files = {"kernel.toml": 'label = "v9"\nsummary = "s"\nlanguage = "cpp"\nsource = "x.cpp"\n', "x.cpp": "//\n"}
    by_hand = "b" * 40
    wanted = {"project": "acme--kernels", "kernel": "sgemm_cpu", "files": files, "commit": by_hand}
    listed = parse_suite(suite("v1_naive", "v2_blocked", "v9")).model_dump(mode="json")
    gated.api.ok("PUT", "/projects/acme--kernels/kernels/sgemm_cpu/suite", json=listed)
    gated.api.ok("POST", "/revisions", json=wanted)
    gated.measure(lambda job: report(*(case_result(case.id, base_skipped="as if") for case in job.suite.cases)))
    assert line(gated) == [first, by_hand]
    second = pushed(gated, first, judge=times(1.0), v1_naive="second")
    assert line(gated) == [first, by_hand, second]


def test_a_pull_requests_revisions_hang_beside_the_push_that_they_are_compared_with(gated: Gated, main: str) -> None:
    first = pushed(gated, main, judge=times(1.0), v1_naive="first")
    topic = gated.git.commit(revision("v1_naive", "topic"), first)
    second = pushed(gated, first, judge=times(1.0), v1_naive="second")
    gated.push_to(1, topic)
    gated.measure(times(1.0))
    gated.concluded(topic, "success")
    assert line(gated, mainline=False) == [first, topic, second]


def base_of_submitted(gated: Gated, label: str, source: str = "") -> str | None:
    """The commit of what a revision beside the line, submitted by hand, is compared with."""
    submitted = gated.api.submit(label, source=source, project="acme--kernels", branch="topic")
    base = gated.api.evaluation(submitted["evaluations"][0])["base"]
    return gated.api.ok("GET", f"/revisions/{base['id']}")["commit"] if base else None


def test_what_was_pushed_away_is_no_base_of_what_is_submitted_until_it_is_pushed_again(gated: Gated, main: str) -> None:
    lost = pushed(gated, main, judge=times(1.0), v1_naive="lost", v2_blocked="lost")
    assert (base_of_submitted(gated, "v2"), base_of_submitted(gated, "v8")) == (lost, lost)
    docs = gated.git.commit({"README.md": "x"}, main)
    push(gated, lost, docs)
    assert (base_of_submitted(gated, "v2", "again"), base_of_submitted(gated, "v9")) == (main, None)
    push(gated, docs, lost)
    assert base_of_submitted(gated, "v10") == lost


def test_the_last_point_of_the_line_is_the_base_though_another_came_later(gated: Gated, main: str) -> None:
    first = pushed(gated, main, judge=times(1.0), v1_naive="first")
    second = gated.git.commit(revision("v1_naive", "second"), first)
    third = gated.git.commit(revision("v1_naive", "third"), second)
    gated.git.git("update-ref", "refs/heads/main", third)
    deliver(gated, second, third)
    deliver(gated, first, second)
    assert base_of_submitted(gated, "v2") == third
    assert base_of_submitted(gated, "v9") == third
