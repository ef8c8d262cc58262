"""Check runs brought to where gates stand: the newest state is sent, whatever was missed while GitHub was away."""

import logging
from datetime import datetime, timedelta
from typing import Any

import httpx
from sqlalchemy import update
from sqlmodel import Session, col, select
from starlette.concurrency import run_in_threadpool

from service.columns import now
from service.database import Database
from service.github import gates
from service.github.annotations import AT_ONCE
from service.github.checks import Check, check_of, external_id_of
from service.github.client import (
    UNFORESEEN_TRIES,
    Github,
    GithubAwayError,
    GithubRefusedError,
    own_fault,
    pause_after,
    tries_in,
)
from service.github.repository import Repository
from service.github.standing import Scene, scene_of
from service.github.tables import GithubGate
from service.settings import Settings

log = logging.getLogger(__name__)


def due(session: Session, *, moment: datetime) -> list[str]:
    query = select(GithubGate.id).where(col(GithubGate.publish_at) <= moment)
    return list(session.exec(query.order_by(col(GithubGate.publish_at)).limit(50)).all())


class Outbox:
    def __init__(self, *, database: Database, settings: Settings, github: Github) -> None:
        self._database = database
        self._settings = settings
        self._github = github

    async def publish(self, gate_id: str) -> None:
        """Send what changed, or leave it for later. Raises what the database does."""
        try:
            await self._publish(gate_id)
        except Exception as error:
            log.exception("gate %s: its check can't be made", gate_id)
            await run_in_threadpool(self._unmade, gate_id, own_fault(error, where=f"gate {gate_id}"))

    async def _publish(self, gate_id: str) -> None:
        scene = await run_in_threadpool(self._take, gate_id)
        if scene is None:
            return
        check = check_of(scene, public_url=self._settings.public_url.rstrip("/"))
        if not self._is_news(scene.gate, check):
            await run_in_threadpool(self._look_again, scene, check)
            return
        try:
            await self._send(scene, check)
        except GithubAwayError as error:
            await run_in_threadpool(self._later, scene.gate, error)
        except GithubRefusedError as error:
            await run_in_threadpool(self._refused, scene.gate, error)

    def _take(self, gate_id: str) -> Scene | None:
        """The gate, out of the way of other replicas while it is sent."""
        moment = now()
        hold_s = 4 * self._settings.github_timeout_s
        with self._database.write() as session:
            held: Any = (
                update(GithubGate)
                .where(col(GithubGate.id) == gate_id, col(GithubGate.publish_at) <= moment)
                .values(publish_at=moment + timedelta(seconds=hold_s), tries=GithubGate.tries + 1)
            )
            if session.exec(held).rowcount != 1:
                return None
        # Read after it: whoever waits to write doesn't wait for this.
        with self._database.read() as session:
            return scene_of(session, session.get_one(GithubGate, gate_id), settings=self._settings)

    def _is_news(self, gate: GithubGate, check: Check) -> bool:
        if gate.sent is None or gate.check_run_id is None:
            return True
        if gate.sent == check.key:
            return gate.annotations_sent < len(check.annotations)
        if gate.sent.partition(":")[0] != check.status or check.status == "completed":
            return True
        return gate.sent_at is None or now() - gate.sent_at >= timedelta(seconds=self._settings.github_progress_s)

    async def _send(self, scene: Scene, check: Check) -> None:
        gate = scene.gate
        repository = Repository(self._github, scene.repository)
        if check.status != "completed" and (gate.sent or "").startswith("completed"):
            gates.forget_check(gate)  # a conclusion is never taken back
        check_run_id = gate.check_run_id
        if check_run_id is None and gate.tries > 1:
            check_run_id = await repository.find_check(gate.head_sha, external_id_of(gate))
        sent = gate.annotations_sent
        first = check.annotations[sent : sent + AT_ONCE]
        try:
            check_run_id = await _put(repository, gate, check_run_id, with_annotations(check.body, first))
            sent += len(first)
        except GithubRefusedError as error:
            if error.status != httpx.codes.UNPROCESSABLE_ENTITY:
                raise
            log.warning("gate %s: GitHub refuses the whole check (%s); sending the plain one", gate.id, error)
            check_run_id = await _put(repository, gate, check_run_id, plain(check.body))
            sent = len(check.annotations)
        # Kept before more is sent: a failure from here on must not make a second check run.
        await run_in_threadpool(self._sent, scene, check, check_run_id, sent)
        while sent < len(check.annotations):
            batch = check.annotations[sent : sent + AT_ONCE]
            await repository.update_check(check_run_id, with_annotations(check.body, batch))
            sent += len(batch)
            await run_in_threadpool(self._sent, scene, check, check_run_id, sent)

    def _sent(self, scene: Scene, check: Check, check_run_id: int, annotations: int) -> None:
        with self._database.write() as session:
            gate = session.get_one(GithubGate, scene.gate.id, with_for_update=True)
            changed = gate.version != scene.gate.version
            if not changed or gate.checks <= scene.gate.checks:
                gate.check_run_id, gate.annotations_sent, gate.checks = check_run_id, annotations, scene.gate.checks
            gate.sent, gate.sent_at, gate.tries, gate.error = check.key, now(), 0, None
            if changed:
                # Restarted, ended or accepted meanwhile: that is to be sent next.
                gate.publish_at = now()
            else:
                self._settle(gate, done=not scene.open and annotations >= len(check.annotations))
            session.add(gate)
        if check.status == "completed" and check.key != scene.gate.sent:
            # A transaction of its own: two gates that are sent at once must not wait for each other.
            with self._database.write() as session:
                gates.look_at_those_beside(session, scene.gate)

    def _look_again(self, scene: Scene, check: Check) -> None:
        with self._database.write() as session:
            gate = session.get_one(GithubGate, scene.gate.id, with_for_update=True)
            same = gate.version == scene.gate.version and gate.sent == check.key
            gate.tries = 0
            self._settle(gate, done=same and not scene.open)
            session.add(gate)

    def _settle(self, gate: GithubGate, *, done: bool) -> None:
        if done and gate.state == gates.RUNNING:
            gate.state, gate.finished_at = gates.DONE, now()
        gate.publish_at = None if done else now() + timedelta(seconds=self._settings.github_every_s)

    def _later(self, gate: GithubGate, error: GithubAwayError) -> None:
        pause_s = pause_after(gate.tries - 1, error, first_s=self._settings.github_pause_s)
        self._note(gate, error, publish_at=now() + timedelta(seconds=pause_s))
        log.warning("gate %s: check not sent (%s); again in %.0f s", gate.id, error, pause_s)

    def _refused(self, gate: GithubGate, error: GithubRefusedError) -> None:
        """A vanished check run is made anew; anything else may be mended by people (permissions, say)."""
        gone = error.status == httpx.codes.NOT_FOUND and gate.check_run_id is not None
        pause_s = 0.0 if gone else pause_after(gate.tries + 3, first_s=self._settings.github_pause_s)
        lasting = gate.tries >= tries_in(self._settings.github_retry_for_s)
        at = None if lasting else now() + timedelta(seconds=pause_s)
        self._note(gate, error, publish_at=at, forget=gone)
        log.warning("gate %s: GitHub refuses its check (%s); %s", gate.id, error, "given up" if lasting else "again")

    def _unmade(self, gate_id: str, why: str) -> None:
        """Again after a growing pause; then a check that says why stands in for the one that can't be made."""
        with self._database.write() as session:
            row = session.get_one(GithubGate, gate_id)
            pause_s = pause_after(row.tries - 1, first_s=self._settings.github_pause_s)
            row.publish_at = now() + timedelta(seconds=pause_s)
            if row.tries > UNFORESEEN_TRIES and row.plan is not None:
                row.tries = 0
                gates.give_up(row, why)
            session.add(row)

    def _note(self, gate: GithubGate, error: Exception, *, publish_at: datetime | None, forget: bool = False) -> None:
        with self._database.write() as session:
            row = session.get_one(GithubGate, gate.id)
            row.error = str(error)[:1000]
            row.publish_at = publish_at
            if forget:
                gates.forget_check(row)
            session.add(row)


async def _put(repository: Repository, gate: GithubGate, check_run_id: int | None, body: dict[str, Any]) -> int:
    if check_run_id is None:
        return await repository.create_check({**body, "head_sha": gate.head_sha, "external_id": external_id_of(gate)})
    await repository.update_check(check_run_id, body)
    return check_run_id


def with_annotations(body: dict[str, Any], annotations: list[dict[str, Any]]) -> dict[str, Any]:
    if not annotations:
        return body
    return {**body, "output": {**body["output"], "annotations": annotations}}


def plain(body: dict[str, Any]) -> dict[str, Any]:
    """The same without what GitHub may dislike: better a bare check than none, which would block for ever."""
    output = {
        "title": body["output"]["title"],
        "summary": "GitHub refused the full text; the details are in Kernelgate.",
    }
    return {**{key: value for key, value in body.items() if key != "actions"}, "output": output}
