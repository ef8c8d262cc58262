"""GitHub's own sample payloads, of a repository that is known: what each does, and what it leaves alone."""

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
from pydantic import SecretStr
from sqlmodel import select

from service.database import Database
from service.dispatch import Dispatcher
from service.github import gates, installations
from service.github.client import Github
from service.github.events import Events
from service.github.gates import Commit
from service.github.inbox import EVENTS
from service.github.tables import GithubDelivery, GithubGate, GithubRepository
from tests.service.conftest import Backends
from tests.service.github.fake import APP_ID, FakeGithub, FakeRepository

OPENS = "opens the gate over its commit"
FINDS = "asks GitHub, and opens the gate of the pull request that has the commit"
ENDS = "ends the gate"
REPEATS = "plans again, with a new check run"
PLANS = "plans again"
FORGETS = "believes nothing of the repository any more"
NOTHING = "nothing"

# event.action (of a push its ref) -> the effect where there is no gate over the commit, and where there is one.
EFFECTS = {
    "check_run.completed": (NOTHING, NOTHING),
    "check_run.created": (NOTHING, NOTHING),
    "check_run.requested_action": (NOTHING, NOTHING),  # somebody else's button
    "check_run.rerequested": (FINDS, REPEATS),
    "check_suite.completed": (NOTHING, NOTHING),
    "check_suite.requested": (FINDS, NOTHING),
    "check_suite.rerequested": (FINDS, REPEATS),
    "installation.created": (NOTHING, NOTHING),  # GitHub is asked about each repository once it matters
    "installation.deleted": (FORGETS, FORGETS),
    "installation.new_permissions_accepted": (NOTHING, NOTHING),
    "installation.suspend": (FORGETS, FORGETS),
    "installation.unsuspend": (NOTHING, NOTHING),
    "installation_repositories.added": (NOTHING, NOTHING),
    "installation_repositories.removed": (FORGETS, FORGETS),
    "issue_comment.created": (NOTHING, NOTHING),  # no command in it
    "issue_comment.deleted": (NOTHING, NOTHING),
    "issue_comment.edited": (NOTHING, NOTHING),
    "merge_group.checks_requested": (OPENS, NOTHING),
    "pull_request.assigned": (NOTHING, NOTHING),
    "pull_request.closed": (NOTHING, ENDS),
    "pull_request.converted_to_draft": (NOTHING, NOTHING),
    "pull_request.labeled": (NOTHING, NOTHING),
    "pull_request.locked": (NOTHING, NOTHING),
    "pull_request.opened": (OPENS, NOTHING),
    "pull_request.ready_for_review": (OPENS, NOTHING),
    "pull_request.reopened": (OPENS, NOTHING),
    "pull_request.review_request_removed": (NOTHING, NOTHING),
    "pull_request.review_requested": (NOTHING, NOTHING),
    "pull_request.synchronize": (OPENS, NOTHING),
    "pull_request.unassigned": (NOTHING, NOTHING),
    "pull_request.unlabeled": (NOTHING, NOTHING),
    "pull_request.unlocked": (NOTHING, NOTHING),
    "push.refs/heads/master": (OPENS, PLANS),
    "push.refs/tags/simple-tag": (NOTHING, NOTHING),
}
INSTALLATION = 55


def samples(octokit: Path) -> list[tuple[str, dict[str, Any]]]:
    """(its name in the table, the sample)"""
    listed = json.loads((octokit / "webhooks-examples/api.github.com/index.json").read_text())
    return [
        (f"{each['name']}.{sample['ref'] if each['name'] == 'push' else sample['action']}", sample)
        for each in listed
        if each["name"] in EVENTS
        for sample in each["examples"]
    ]


def commit_of(sample: dict[str, Any]) -> Commit:
    """The commit that the sample is about, as a gate over it."""
    if "merge_group" in sample:
        group = sample["merge_group"]
        return Commit(kind=gates.QUEUE, head_sha=group["head_sha"], base_sha=group["base_sha"], base_ref="main")
    if "ref" in sample:
        branch = sample["repository"]["default_branch"]
        return Commit(kind=gates.PUSH, head_sha=sample["after"], base_sha=sample["before"], base_ref=branch)
    if "pull_request" in sample:
        pull = sample["pull_request"]
        head, base = pull["head"]["sha"], pull["base"]["ref"]
        return Commit(kind=gates.PULL, number=pull["number"], head_sha=head, base_ref=base)
    checked = sample.get("check_run") or sample.get("check_suite") or {"head_sha": "a" * 40}
    return Commit(kind=gates.PULL, number=7, head_sha=checked["head_sha"], base_ref="main")


class Scene:
    """The events' handlers over a database that knows the sample's repository, and a GitHub that has it, with the pull
    request #7 over the sample's commit. Nothing plans or sends beside them."""

    def __init__(self, events: Events, fake: FakeGithub, sample: dict[str, Any], *, gate: bool) -> None:
        self.events, self.fake, self.commit = events, fake, commit_of(sample)
        removed = sample.get("repositories_removed") or [{"id": 1, "full_name": "acme/any"}]
        repository = sample.get("repository") or removed[0]
        self.id = int(repository["id"])
        self.installation = INSTALLATION if "repository" in sample else sample["installation"]["id"]
        self.payload = {**sample, "installation": {**sample.get("installation", {}), "id": self.installation}}
        git = next(iter(fake.repositories.values())).git
        known = fake.add(FakeRepository(self.id, repository["full_name"], self.installation, git))
        known.pulls[7] = {
            "number": 7,
            "state": "open",
            "head": {"sha": self.commit.head_sha, "repo": {"id": self.id}},
            "base": {"ref": "main", "repo": {"id": self.id}},
        }
        with events.database.write() as session:
            for table in (GithubGate, GithubRepository):
                for row in session.exec(select(table)).all():
                    session.delete(row)
                session.flush()
            row = installations.remember(
                session, repository_id=self.id, full_name=repository["full_name"], installation_id=self.installation
            )
            if gate:
                opened = gates.open_gate(session, row, self.commit)
                opened.state, opened.check_run_id = gates.RUNNING, 4
                session.add(opened)

    def gates(self) -> list[dict[str, Any]]:
        with self.events.database.read() as session:
            return [gate.model_dump(exclude={"as_of"}) for gate in session.exec(select(GithubGate)).all()]

    def send(self, name: str) -> str:
        """The effect, as the table calls it."""
        event, _, action = name.partition(".")
        before, asked = self.gates(), len(self.fake.requests)
        delivery = GithubDelivery(id="d", event=event, action=action, payload=json.dumps(self.payload))
        asyncio.run(self.events.handle(delivery))
        after = self.gates()
        with self.events.database.read() as session:
            if not session.get_one(GithubRepository, self.id).active:
                assert after == before
                return FORGETS
        return self._effect(before, after, was_asked=len(self.fake.requests) > asked)

    def _effect(self, before: list[dict[str, Any]], after: list[dict[str, Any]], *, was_asked: bool) -> str:
        if after == before:
            return NOTHING if not was_asked else "asks GitHub for nothing"
        [gate] = after
        assert gate["head_sha"] == self.commit.head_sha
        assert (gate["kind"], gate["number"]) == (self.commit.kind, self.commit.number)
        assert gate["base_ref"] == self.commit.base_ref
        if not before:
            assert gate["state"] == gates.DUE
            assert gate["base_sha"] == self.commit.base_sha
            return FINDS if was_asked else OPENS
        if gate["ended"]:
            assert gate["state"] == gates.DONE
            assert gate["current_since"] is None
            return ENDS
        assert gate["state"] == gates.DUE
        return REPEATS if gate["checks"] == before[0]["checks"] + 1 and gate["check_run_id"] is None else PLANS


@pytest.fixture
def events(backends: Backends, github: FakeGithub, key: tuple[Path, bytes]) -> Events:
    backend = backends.get("sqlite")
    backend.empty()
    settings = backend.settings.model_copy(
        update={
            "github_app_id": APP_ID,
            "github_private_key": key[0],
            "github_webhook_secret": SecretStr("s"),
            "github_url": "http://github.test",
        }
    )
    database: Database = backend.database
    dispatcher = cast("Dispatcher", SimpleNamespace(publish_soon=lambda wakes: wakes))
    return Events(
        database=database,
        settings=settings,
        dispatcher=dispatcher,
        github=Github(settings, transport=httpx.ASGITransport(app=github)),
    )


@pytest.mark.parametrize("gate", [False, True], ids=["without a gate", "with a gate"])
def test_every_sample_has_its_effect_and_no_other(
    events: Events, github: FakeGithub, octokit: Path, *, gate: bool
) -> None:
    found = [(name, Scene(events, github, sample, gate=gate).send(name)) for name, sample in samples(octokit)]
    assert {name for name, _ in found} == set(EFFECTS)
    assert found == [(name, EFFECTS[name][gate]) for name, _ in found]
