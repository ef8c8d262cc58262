import json
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest
from sqlmodel import select

from service.github import installations
from service.github.inbox import EVENTS
from service.github.tables import GithubDelivery, GithubGate, GithubRepository
from tests.service.conftest import Running
from tests.service.github.gated import Gated, base_files, revision, sign


def examples(octokit: Path, event: str) -> list[dict[str, Any]]:
    """Of this event in GitHub's own collection."""
    listed = json.loads((octokit / "webhooks-examples/api.github.com/index.json").read_text())
    return [example for each in listed if each["name"] == event for example in each["examples"]]


def settle_all(gated: Gated, deliveries: list[str]) -> set[str]:
    return {gated.settled(each) for each in deliveries}


@pytest.mark.parametrize("event", sorted({*EVENTS, "ping"}))
def test_every_sample_is_accepted_and_of_a_stranger_none_has_an_effect(gated: Gated, octokit: Path, event: str) -> None:
    kept = []
    samples = examples(octokit, event)
    assert samples
    for sample in samples:
        delivery = str(uuid.uuid4())
        answer = gated.deliver(event, sample, delivery=delivery)
        assert answer.status_code == 202, answer.text
        if answer.json()["kept"]:
            kept.append(delivery)
    assert len(kept) == (0 if event == "ping" else len(samples))
    assert settle_all(gated, kept) <= {"done", "refused"}
    with gated.running.database.read() as session:
        assert session.exec(select(GithubGate)).all() == []
        assert session.exec(select(GithubRepository)).all() == []
    # Nothing was asked of GitHub but whose installation it is.
    assert {line.rpartition("/")[2] for line in gated.github.requests} <= {"installation"}


def test_samples_of_a_known_repository_open_and_end_gates(gated: Gated, octokit: Path) -> None:
    opened = next(each for each in examples(octokit, "pull_request") if each["action"] == "opened")
    group = examples(octokit, "merge_group")[0]
    ids = []
    for event, sample in (("pull_request", opened), ("merge_group", group)):
        repository = sample["repository"]
        with gated.running.database.write() as session:
            installations.remember(
                session, repository_id=repository["id"], full_name=repository["full_name"], installation_id=55
            )
        delivery = str(uuid.uuid4())
        assert gated.deliver(event, {**sample, "installation": {"id": 55}}, delivery=delivery).json()["kept"]
        ids.append(delivery)
    assert settle_all(gated, ids) == {"done"}
    with gated.running.database.read() as session:
        gates = {gate.kind: gate for gate in session.exec(select(GithubGate)).all()}
    assert gates["pull_request"].head_sha == opened["pull_request"]["head"]["sha"]
    assert gates["pull_request"].number == opened["number"]
    assert gates["merge_group"].head_sha == group["merge_group"]["head_sha"]
    assert gates["merge_group"].base_ref == group["merge_group"]["base_ref"].removeprefix("refs/heads/")


@pytest.mark.parametrize("event", sorted(EVENTS - {"installation", "installation_repositories"}))
def test_every_sample_of_a_known_repository_is_understood(gated: Gated, octokit: Path, event: str) -> None:
    """GitHub's commits are not in the fake's repository: what a sample opens ends as gone, what it asks is refused."""
    deliveries = []
    for sample in examples(octokit, event):
        repository = sample["repository"]
        with gated.running.database.write() as session:
            installations.remember(
                session, repository_id=repository["id"], full_name=repository["full_name"], installation_id=55
            )
        deliveries.append(str(uuid.uuid4()))
        gated.deliver(event, {**sample, "installation": {"id": 55}}, delivery=deliveries[-1])
    assert settle_all(gated, deliveries) <= {"done", "refused"}
    with gated.running.database.read() as session:
        rows = [session.get_one(GithubDelivery, each) for each in deliveries]
    assert [row.error for row in rows if "not understood" in (row.error or "")] == []
    assert gated.queued() == []


@pytest.mark.parametrize(
    "signature",
    ["", "sha256=", "sha256=" + "0" * 64, "sha1=" + "0" * 40, sign(b"{}", "another secret")],
)
def test_a_wrong_signature_is_refused_and_logged_before_anything_is_parsed(
    gated: Gated, signature: str, caplog: pytest.LogCaptureFixture
) -> None:
    headers = {
        "X-GitHub-Event": "push",
        "X-GitHub-Delivery": "d1",
        "X-Hub-Signature-256": signature,
    }
    answer = gated.http.post(f"{gated.running.url}/webhooks/github", content=b"no JSON at all", headers=headers)
    assert answer.status_code == 401
    assert answer.json()["type"].endswith(":bad-signature")
    assert "refused delivery 'd1'" in caplog.text
    with gated.running.database.read() as session:
        assert session.exec(select(GithubDelivery)).all() == []


def test_a_signed_delivery_that_is_no_json_is_refused(gated: Gated) -> None:
    body = b"payload=%7B%7D"
    headers = {"X-GitHub-Event": "push", "X-GitHub-Delivery": "d1", "X-Hub-Signature-256": sign(body)}
    answer = gated.http.post(f"{gated.running.url}/webhooks/github", content=body, headers=headers)
    assert answer.status_code == 422


def test_a_replayed_delivery_is_acknowledged_logged_and_does_nothing(
    gated: Gated, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="service.github")
    main = gated.git.commit(base_files(), branch="main")
    head = gated.git.commit(revision("v1_naive", "new"), main)
    payload = gated.payload(action="opened", number=1, pull_request=gated.pull(1, head))
    assert gated.deliver("pull_request", payload, delivery="once").json() == {"kept": True}
    gated.wait_queued()
    closed = gated.payload(action="closed", number=1, pull_request=gated.pull(1, head))
    gated.deliver("pull_request", closed, delivery="twice")
    gated.concluded(head, "cancelled")
    assert gated.deliver("pull_request", payload, delivery="once").json() == {"kept": False}
    assert "delivery once (pull_request) came before" in caplog.text
    assert gated.settled("once") == "done"
    assert gated.queued() == []


def test_a_delivery_that_comes_late_or_again_supersedes_nothing_newer(gated: Gated) -> None:
    main = gated.git.commit(base_files(), branch="main")
    old, new = (gated.git.commit({"README.md": text}, main) for text in ("old", "new"))

    def event(action: str, head: str, minute: int) -> str:
        pull = {**gated.pull(1, head), "updated_at": f"2026-01-01T00:{minute:02d}:00Z"}
        delivery = str(uuid.uuid4())
        payload = gated.payload(action=action, number=1, pull_request=pull)
        gated.deliver("pull_request", payload, delivery=delivery)
        return gated.settled(delivery)

    assert event("synchronize", new, 2) == "done"
    gated.concluded(new, "success")
    assert event("opened", old, 1) == "refused"
    assert gated.github.checks_of(old) == []
    assert event("closed", new, 4) == "done"
    assert event("reopened", new, 3) == "refused"
    assert event("reopened", new, 5) == "done"
    assert event("closed", new, 4) == "refused"
    with gated.running.database.read() as session:
        [gate] = session.exec(select(GithubGate)).all()
    assert gate.current_since is not None


def test_the_largest_delivery_that_github_sends_is_kept_and_a_larger_one_is_not_read(gated: Gated) -> None:
    padding = "x" * (24 << 20)
    assert gated.deliver("push", gated.payload(ref="refs/heads/topic", padding=padding)).json() == {"kept": True}
    assert gated.deliver("push", gated.payload(padding=padding + padding)).status_code == 413


def test_of_fifty_deliveries_a_second_none_is_lost_and_none_doubled() -> None:
    """The benchmark on a small scale; how long answers take is for a quiet machine to say."""
    command = [sys.executable, "-m", "scripts.bench_webhooks", "--seconds", "2"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[3])
    assert "90 kept of 90 different ones" in ran.stdout, ran.stdout + ran.stderr
    assert "checks: 10 queued, 80 success; 10 evaluations queued" in ran.stdout, ran.stdout + ran.stderr


def test_without_an_app_there_is_no_webhook(running: Running) -> None:
    answer = running.api().http.post(f"{running.url}/webhooks/github", content=b"{}")
    assert answer.status_code == 404
    assert answer.json()["type"].endswith(":github-off")


def test_a_forged_installation_is_refused_and_logged_and_nothing_runs(
    gated: Gated, caplog: pytest.LogCaptureFixture
) -> None:
    main = gated.git.commit(base_files(), branch="main")
    head = gated.git.commit(revision("v1_naive", "new"), main)
    payload = gated.payload(action="opened", number=1, pull_request=gated.pull(1, head))
    gated.deliver("pull_request", {**payload, "installation": {"id": 66}}, delivery="forged")
    assert gated.settled("forged") == "refused"
    assert "delivery forged (pull_request): refused: acme/kernels has installation 55, not 66" in caplog.text
    stranger = {**payload["repository"], "full_name": "acme/other", "id": 5}
    gated.deliver("pull_request", {**payload, "repository": stranger}, delivery="stranger")
    assert gated.settled("stranger") == "refused"
    assert gated.github.checks == {}
    assert gated.queued() == []


def test_another_repository_under_a_known_installation_is_asked_for_too(gated: Gated) -> None:
    main = gated.git.commit(base_files(), branch="main")
    gated.push_to(1, gated.git.commit({"README.md": "x"}, main))
    payload = gated.payload(action="opened", number=1, pull_request=gated.pull(1, main))
    # The number of a repository that is known, the name of one that is not.
    renamed = {**payload["repository"], "full_name": "evil/kernels"}
    gated.deliver("pull_request", {**payload, "repository": renamed}, delivery="renamed")
    assert gated.settled("renamed") == "refused"


def test_only_the_named_owners_count(make_gated: Any) -> None:
    gated = make_gated(github_owners=("someone-else",))
    main = gated.git.commit(base_files(), branch="main")
    payload = gated.payload(action="opened", number=1, pull_request=gated.pull(1, main))
    gated.deliver("pull_request", payload, delivery="d1")
    assert gated.settled("d1") == "refused"
    assert gated.github.requests == []


def test_payloads_of_another_shape_do_nothing_and_the_next_is_worked_off(gated: Gated) -> None:
    for place, payload in enumerate(({"action": "opened"}, {"action": "opened", "pull_request": []}, [])):
        answer = gated.deliver("pull_request", payload, delivery=f"odd-{place}")  # type: ignore[arg-type]
        assert answer.status_code == 202
        assert gated.settled(f"odd-{place}") in {"done", "refused"}
    main = gated.git.commit(base_files(), branch="main")
    docs = gated.git.commit({"README.md": "x"}, main)
    gated.push_to(1, docs, something_new={"a": 1})
    gated.concluded(docs, "success")


def test_an_uninstalled_app_believes_no_delivery_until_github_confirms_it_anew(gated: Gated) -> None:
    main = gated.git.commit(base_files(), branch="main")
    docs = gated.git.commit({"README.md": "x"}, main)
    gated.push_to(1, docs)
    gated.concluded(docs, "success")
    for action in ("suspend", "deleted"):
        gated.deliver("installation", {"action": action, "installation": {"id": 55}}, delivery=action)
        assert gated.settled(action) == "done"
    before = len([line for line in gated.github.requests if line.endswith("/installation")])
    later = gated.git.commit({"README.md": "y"}, docs)
    gated.push_to(1, later, action="synchronize")
    gated.concluded(later, "success")
    assert len([line for line in gated.github.requests if line.endswith("/installation")]) == before + 1


def test_taking_the_app_off_a_repository_ends_what_is_believed_of_it(gated: Gated) -> None:
    main = gated.git.commit(base_files(), branch="main")
    docs = gated.git.commit({"README.md": "x"}, main)
    gated.push_to(1, docs)
    gated.concluded(docs, "success")
    payload = {"action": "removed", "installation": {"id": 55}, "repositories_removed": [{"id": gated.repository.id}]}
    gated.deliver("installation_repositories", payload, delivery="off")
    assert gated.settled("off") == "done"
    gated.repository.installation = 56
    later = gated.git.commit({"README.md": "y"}, docs)
    stale = gated.payload(action="synchronize", number=1, pull_request=gated.pull(1, later))
    gated.deliver("pull_request", {**stale, "installation": {"id": 55}}, delivery="stale")
    assert gated.settled("stale") == "refused"
    gated.push_to(1, later, action="synchronize")
    gated.concluded(later, "success")
