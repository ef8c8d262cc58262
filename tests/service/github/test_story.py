"""A pull request's whole way through the gate, with a node that answers over the worker's API."""

from tests.service.github.gated import KERNEL, Gated, base_files, revision, times


def test_a_pull_request_from_opened_to_merged(gated: Gated) -> None:
    main = gated.git.commit(base_files(), branch="main")
    slow = gated.git.commit(revision("v2_blocked", "slow", shared=True), main)
    gated.push_to(41, slow)
    [waiting] = gated.wait_queued()
    assert waiting["revision"]["label"] == waiting["base"]["label"] == "v2"
    job = gated.node.claim(waiting["id"])
    gated.node.beat(job, {"stage": "measure", "done": 1, "total": 2})
    gated.wait_for(lambda: gated.check(slow)["status"] == "in_progress")
    gated.node.finish(job, times(1.05)(job))
    check = gated.concluded(slow, "failure")
    assert [status for status, _ in check["history"]] == ["queued", "in_progress", "completed"]
    assert "slower" in check["output"]["title"]
    assert check["output"]["summary"].count("| ✗ |") == 2
    assert {action["identifier"] for action in check["actions"]} == {"again", "accept"}

    better = gated.git.commit(revision("v2_blocked", "better", shared=True), slow)
    gated.push_to(41, better, action="synchronize")
    gated.wait_queued()
    best = gated.git.commit(revision("v2_blocked", "best", shared=True), better)
    gated.push_to(41, best, action="synchronize")
    gated.concluded(better, "cancelled")
    [job] = gated.measure(times(0.97))
    assert job.base is not None
    assert gated.api.evaluation(job.evaluation_id)["outcome"] == "passed"
    gated.concluded(best, "success")

    # In the queue the base is the queue's, and what was answered is not asked again.
    merged = gated.git.commit({f"{KERNEL}/v2_blocked/sgemm.cpp": "// v2 best\n"}, main, best)
    gated.queue(merged, main)
    check = gated.concluded(merged, "success")
    assert check["history"][0] == ("queued", None)
    assert gated.queued() == []


def test_a_docs_only_change_is_answered_at_once(gated: Gated) -> None:
    main = gated.git.commit(base_files(), branch="main")
    docs = gated.git.commit({"README.md": "more words\n", f"{KERNEL}/v1_naive/NOTES.md": "words\n"}, main)
    gated.push_to(1, docs)
    check = gated.concluded(docs, "success")
    assert check["output"]["title"] == "no kernel is touched: nothing to judge"
    assert gated.queued() == []
