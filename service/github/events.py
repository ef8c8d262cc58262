"""What each event does. A payload is only what somebody says: names are checked with GitHub before anything runs, and
unknown actions and fields do nothing."""

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlmodel import Session
from starlette.concurrency import run_in_threadpool

from contract.outcomes import Reason
from service.database import Database
from service.dispatch import Dispatcher, Wake
from service.github import checks, gates, installations
from service.github.client import Github
from service.github.commands import Command, command_in
from service.github.gates import Commit
from service.github.installations import RefusedDeliveryError
from service.github.repository import Pull, Repository, pull_of
from service.github.tables import GithubDelivery, GithubGate, GithubRepository
from service.settings import Settings

log = logging.getLogger(__name__)

_OPENS = frozenset({"opened", "reopened", "synchronize", "ready_for_review"})
_Payload = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Events:
    database: Database
    settings: Settings
    dispatcher: Dispatcher
    github: Github

    async def handle(self, delivery: GithubDelivery) -> None:
        """Raises RefusedDeliveryError where nothing is done, and what GitHub raises."""
        payload: _Payload = json.loads(delivery.payload)
        name = f"{delivery.event}.{delivery.action}" if delivery.action else delivery.event
        if delivery.event in {"installation", "installation_repositories"}:
            await run_in_threadpool(self._write, lambda session: _installation(session, delivery, payload))
            return
        if not _matters(name, payload):
            return
        row = await self._repository(payload)
        if delivery.event == "pull_request":
            await run_in_threadpool(self._write, lambda session: _pull_request(session, row, delivery.action, payload))
        elif delivery.event == "merge_group":
            await run_in_threadpool(self._write, lambda session: _merge_group(session, row, delivery.action, payload))
        elif delivery.event == "push":
            await run_in_threadpool(self._write, lambda session: _push(session, row, payload))
        elif delivery.event == "issue_comment":
            await self._comment(row, payload)
        elif name == "check_run.requested_action":
            await self._button(row, payload)
        else:
            await self._suite(row, delivery, payload)

    async def _repository(self, payload: _Payload) -> GithubRepository:
        repository_id, full_name, installation_id = installations.named_repository(payload)

        def known() -> GithubRepository | None:
            with self.database.read() as session:
                return installations.known(
                    session, repository_id=repository_id, full_name=full_name, installation_id=installation_id
                )

        row = await run_in_threadpool(known)
        if row is not None:
            return row
        await installations.check_installation(
            self.github, full_name=full_name, claimed=installation_id, owners=self.settings.github_owners
        )
        remembered: list[GithubRepository] = []

        def remember(session: Session) -> None:
            remembered.append(
                installations.remember(
                    session, repository_id=repository_id, full_name=full_name, installation_id=installation_id
                )
            )

        await run_in_threadpool(self._write, remember)
        return remembered[0]

    async def _comment(self, row: GithubRepository, payload: _Payload) -> None:
        command = command_in(str(payload["comment"].get("body") or ""))
        if command is None:
            return
        number = int(payload["issue"]["number"])
        who = str(payload["comment"]["user"]["login"])
        repository = Repository(self.github, row)
        await _check_rights(repository, who, what=f"/kernelgate {command.verb}")
        pull = await repository.pull(number)
        said_at = datetime.fromisoformat(str(payload["comment"]["created_at"]))
        wakes: list[Wake] = []

        def act(session: Session) -> None:
            gate = _gate_meant(gates.of_pull(session, row, number), pull, command, said_at)
            wakes.extend(_obey(session, row, gate, command, who=who, settings=self.settings))

        await run_in_threadpool(self._write, act)
        self.dispatcher.publish_soon(wakes)

    async def _button(self, row: GithubRepository, payload: _Payload) -> None:
        verbs = {checks.AGAIN: "again", checks.ACCEPT: "accept", checks.APPROVE: "run"}
        verb = verbs.get(str((payload.get("requested_action") or {}).get("identifier")))
        if verb is None:
            return
        who = str(payload["sender"]["login"])
        await _check_rights(Repository(self.github, row), who, what=f"the button for {verb}")
        check_run_id = int(payload["check_run"]["id"])
        head_sha = str(payload["check_run"]["head_sha"])
        command = Command(verb=verb, why="by the check's button")  # type: ignore[arg-type]
        wakes: list[Wake] = []

        def act(session: Session) -> None:
            found = [each for each in gates.of_commit(session, row, head_sha) if each.check_run_id == check_run_id]
            if not found:
                raise RefusedDeliveryError(f"check run {check_run_id} shows no gate of {head_sha} (any more)")
            wakes.extend(_obey(session, row, found[0], command, who=who, settings=self.settings))

        await run_in_threadpool(self._write, act)
        self.dispatcher.publish_soon(wakes)

    async def _suite(self, row: GithubRepository, delivery: GithubDelivery, payload: _Payload) -> None:
        """check_suite and check_run: a commit to look at (again). Forks' name no pull request: GitHub is asked."""
        head_sha = str(payload[delivery.event]["head_sha"])
        again = delivery.action == "rerequested"
        check_run_id = payload["check_run"].get("id") if delivery.event == "check_run" else None

        def repeat(session: Session) -> list[GithubGate]:
            found = list(gates.of_commit(session, row, head_sha))
            for gate in _gates_to_repeat(found, check_run_id) if again else ():
                wakes.extend(gates.measure_again(session, gate, settings=self.settings))
            return found

        wakes: list[Wake] = []
        found = await run_in_threadpool(self._write, repeat)
        self.dispatcher.publish_soon(wakes)
        if found:
            return
        # A delivery that GitHub lost: the pull requests of this commit are opened from here.
        pulls = await Repository(self.github, row).pulls_of(head_sha)
        await run_in_threadpool(self._write, lambda session: _open_pulls(session, row, pulls))

    def _write(self, step: Callable[[Session], Any]) -> Any:
        with self.database.write() as session:
            return step(session)


def _matters(name: str, payload: _Payload) -> bool:
    """Told from the payload alone, so that what does nothing costs nothing."""
    event, _, action = name.partition(".")
    if event == "pull_request":
        return action in _OPENS or action == "closed" or (action == "edited" and "base" in payload.get("changes", {}))
    if event == "issue_comment":
        on_pull = "pull_request" in payload.get("issue", {})
        return action == "created" and on_pull and command_in(str(payload["comment"].get("body") or "")) is not None
    if event == "push":
        branch = f"refs/heads/{payload.get('repository', {}).get('default_branch', '')}"
        return payload.get("ref") == branch and not payload.get("deleted", False)
    return name in {
        "check_run.requested_action",
        "check_run.rerequested",
        "check_suite.requested",
        "check_suite.rerequested",
        "merge_group.checks_requested",
        "merge_group.destroyed",
    }


def _installation(session: Session, delivery: GithubDelivery, payload: _Payload) -> None:
    """Nothing is believed of what was added: a repository counts once GitHub was asked about it."""
    if delivery.event == "installation" and delivery.action in {"deleted", "suspend"}:
        installations.forget_installation(session, int(payload["installation"]["id"]))
    removed = payload.get("repositories_removed") or []
    installations.forget_repositories(session, [int(each["id"]) for each in removed])


def _pull_request(session: Session, row: GithubRepository, action: str, payload: _Payload) -> None:
    pull = pull_of(payload["pull_request"])
    gates.lock(session, row)
    if gates.is_stale(session, row, pull.number, pull.as_of):
        raise RefusedDeliveryError(f"something newer than {pull.as_of} is known of pull request #{pull.number}")
    if action == "closed":
        why = "the pull request was merged" if payload["pull_request"].get("merged") else "the pull request was closed"
        for gate in gates.of_pull(session, row, pull.number):
            gate.as_of = pull.as_of
            gates.end_gate(session, gate, why=why, reason=Reason.SUPERSEDED)
        return
    _open_pulls(session, row, [pull])


def _open_pulls(session: Session, row: GithubRepository, pulls: Sequence[Pull]) -> None:
    for pull in pulls:
        commit = Commit(
            kind=gates.PULL,
            number=pull.number,
            head_sha=pull.head_sha,
            base_ref=pull.base_ref,
            fork=pull.fork,
            as_of=pull.as_of,
        )
        gates.open_gate(session, row, commit)


def _merge_group(session: Session, row: GithubRepository, action: str, payload: _Payload) -> None:
    group = payload["merge_group"]
    head_sha = str(group["head_sha"])
    if action == "destroyed":
        for gate in gates.of_commit(session, row, head_sha):
            if gate.kind == gates.QUEUE:
                gates.end_gate(session, gate, why="it left the merge queue", reason=Reason.SUPERSEDED)
        return
    base_ref = str(group["base_ref"]).removeprefix("refs/heads/")
    commit = Commit(kind=gates.QUEUE, head_sha=head_sha, base_sha=str(group["base_sha"]), base_ref=base_ref)
    gates.open_gate(session, row, commit)


def _push(session: Session, row: GithubRepository, payload: _Payload) -> None:
    commit = Commit(
        kind=gates.PUSH,
        head_sha=str(payload["after"]),
        base_sha=str(payload["before"]),
        base_ref=str(payload["ref"]).removeprefix("refs/heads/"),
    )
    gates.open_gate(session, row, commit)


async def _check_rights(repository: Repository, who: str, *, what: str) -> None:
    if not await repository.may_write(who):
        raise RefusedDeliveryError(f"{who} has no write permission: {what} does nothing")


def _gate_meant(found: Sequence[GithubGate], pull: Pull, command: Command, said_at: datetime) -> GithubGate:
    """The gate over the pull request's head. A `run` without a commit means what was there to be read when it was said:
    never a push that came after, be it back to a commit that was there before."""
    head = next((gate for gate in found if gate.head_sha == pull.head_sha), None)
    if head is None or head.current_since is None:
        raise RefusedDeliveryError("no gate is over the pull request's head yet: say it again")
    if command.commit is not None and not head.head_sha.startswith(command.commit):
        raise RefusedDeliveryError(f"{command.commit} is not the pull request's head any more")
    if command.verb != "again" and command.commit is None and head.current_since > said_at:
        raise RefusedDeliveryError("the pull request's head came after the comment: name the commit that is meant")
    return head


def _gates_to_repeat(found: Sequence[GithubGate], check_run_id: int | None) -> Sequence[GithubGate]:
    """GitHub's button on one check run means its gate; the one on the suite means all that are current."""
    meant = [
        gate
        for gate in found
        if (gate.check_run_id == check_run_id if check_run_id is not None else gate.current_since is not None)
    ]
    return meant or found[:1]


def _obey(
    session: Session, row: GithubRepository, gate: GithubGate, command: Command, *, who: str, settings: Settings
) -> list[Wake]:
    if command.verb == "run":
        gates.approve(session, gate, who=who)
        return []
    # A change that could not be read may be read again: nothing of it runs for that.
    unread = command.verb == "again" and gate.plan is None
    if gate.fork and not unread and not gates.is_approved(session, gate):
        raise RefusedDeliveryError("this commit of a fork was not let run yet")
    if command.verb == "again":
        return gates.measure_again(session, gate, settings=settings)
    gates.accept(session, gate, project_id=row.project_id, who=who, why=command.why)
    return []
