"""Gates that are due: their trees read, their plan made, their evaluations queued."""

import hashlib
import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import tuple_, update
from sqlalchemy.orm import aliased
from sqlmodel import Session, col, or_, select
from starlette.concurrency import run_in_threadpool

from contract.outcomes import Reason
from contract.repository import FILE, RepositoryConfig
from service.columns import now
from service.database import Database
from service.dispatch import Dispatcher, Wake
from service.github import gates, mainline, queueing
from service.github.client import (
    UNFORESEEN_TRIES,
    Github,
    GithubAwayError,
    GithubRefusedError,
    own_fault,
    pause_after,
    tries_in,
)
from service.github.folders import FolderError
from service.github.line import Known, NotOnBranchError, Place, place_of
from service.github.planning import make_plan, read_config, with_all_suites
from service.github.plans import Fault, Hold, Plan, Planned
from service.github.repository import GoneError, Repository
from service.github.tables import GithubGate, GithubRepository
from service.github.trees import Trees
from service.models import Project
from service.problems import ProblemError
from service.settings import Settings
from service.store import Store

log = logging.getLogger(__name__)

# GitHub may show a branch as it was for a moment: so often is asked before a push counts as pushed away.
_PATIENT_TRIES = 3
# A push that can't be planned for so long holds up no other.
_WAITED_FOR = timedelta(days=1)


def due(session: Session, *, moment: datetime) -> list[str]:
    """Pushes of one repository one after the other: the last one's suites stay, and each knows the place of those
    before it."""
    earlier = aliased(GithubGate)
    waits = (
        select(earlier.id)
        .where(
            earlier.repository_id == GithubGate.repository_id,
            earlier.kind == gates.PUSH,
            earlier.state == gates.DUE,
            col(earlier.created_at) > moment - _WAITED_FOR,
            tuple_(col(earlier.created_at), col(earlier.id)) < tuple_(col(GithubGate.created_at), col(GithubGate.id)),
        )
        .exists()
    )
    query = select(GithubGate.id).where(
        GithubGate.state == gates.DUE,
        col(GithubGate.due_at) <= moment,
        or_(GithubGate.kind != gates.PUSH, ~waits),
    )
    return list(session.exec(query.order_by(col(GithubGate.due_at)).limit(50)).all())


@dataclass(frozen=True, kw_only=True)
class _Read:
    """What a gate's change is. `sizes`: of the stored bundles; `place`: of a push."""

    planned: Planned
    place: Place | None
    sizes: dict[str, int]
    approved: bool


@dataclass(frozen=True, kw_only=True)
class Planner:
    database: Database
    settings: Settings
    store: Store
    dispatcher: Dispatcher
    github: Github

    async def plan(self, gate_id: str) -> None:
        """What fails is tried again, and said once it is given up. Raises what the database does."""
        taken = await run_in_threadpool(self._take, gate_id)
        if taken is None:
            return
        gate, row = taken
        try:
            planned, place = await self._plan(gate, Repository(self.github, row))
            wakes = await run_in_threadpool(self._queue, gate, row, planned, place)
        except (GoneError, NotOnBranchError) as error:
            await run_in_threadpool(self._end, gate, f"its commit is gone, pushed away perhaps ({error})")
        except (GithubAwayError, GithubRefusedError) as error:
            await run_in_threadpool(self._later, gate, error, tries=tries_in(self.settings.github_retry_for_s))
        except Exception as error:
            log.exception("gate %s: planning it failed", gate.id)
            said = GithubAwayError(own_fault(error, where=f"gate {gate.id}"))
            await run_in_threadpool(self._later, gate, said, tries=UNFORESEEN_TRIES)
        else:
            self.dispatcher.publish_soon(wakes)

    def _take(self, gate_id: str) -> tuple[GithubGate, GithubRepository] | None:
        moment = now()
        with self.database.write() as session:
            held: Any = (
                update(GithubGate)
                .where(
                    col(GithubGate.id) == gate_id,
                    col(GithubGate.state) == gates.DUE,
                    col(GithubGate.due_at) <= moment,
                )
                .values(due_at=moment + timedelta(seconds=20 * self.settings.github_timeout_s))
            )
            if session.exec(held).rowcount != 1:
                return None
            gate = session.get_one(GithubGate, gate_id)
            return gate, session.get_one(GithubRepository, gate.repository_id)

    async def _plan(self, gate: GithubGate, repository: Repository) -> tuple[Planned, Place | None]:
        """The plan, and a push's place."""
        # First: a head that is gone is told apart from a base that is.
        _, parents = await repository.commit(gate.head_sha)
        if gate.kind == gates.PUSH:
            place = await self._place(gate, repository, parents)
            trees = Trees(repository)
            planned = await self._compare(gate, trees, tip=gate.head_sha, base=place.base)
            if place.anew:
                planned = await with_all_suites(planned, trees, head=gate.head_sha)
            return planned, place
        try:
            tip, base = await self._base(gate, repository)
        except GoneError:
            said = f"it has no common ancestor with {gate.base_ref}: rebase it"
            return Planned(plan=Plan(base_sha="", faults=(Fault(path=FILE, said=said),)), bundles={}), None
        return await self._compare(gate, Trees(repository), tip=tip, base=base), None

    async def _compare(self, gate: GithubGate, trees: Trees, *, tip: str, base: str | None) -> Planned:
        """`tip`: where the configuration is read."""
        config, extra = await self._config(gate, trees, tip=tip, base=base)
        planned = (
            await make_plan(trees, base=base, head=gate.head_sha, config=config, is_accepted=self._accepts(gate))
            if config is not None
            else Planned(plan=Plan(base_sha=base or ""), bundles={})
        )
        plan = planned.plan.model_copy(
            update={
                "holds": (*extra.holds, *planned.plan.holds),
                "faults": (*extra.faults, *planned.plan.faults),
                "notes": (*extra.notes, *planned.plan.notes),
            }
        )
        return Planned(plan=plan, bundles=planned.bundles)

    async def _base(self, gate: GithubGate, repository: Repository) -> tuple[str, str]:
        """(where the configuration is read, what the head is compared with). Raises GoneError."""
        if gate.kind == gates.QUEUE:
            return gate.base_sha or "", gate.base_sha or ""
        compared = await repository.compare(gate.base_ref, gate.head_sha)
        return compared.base, compared.merge_base

    async def _place(self, gate: GithubGate, repository: Repository, parents: list[str]) -> Place:
        """Raises NotOnBranchError, and GithubAwayError while GitHub may not show the push yet."""
        before = gate.base_sha or ""
        known = await run_in_threadpool(self._known, gate)
        try:
            place = await place_of(
                repository,
                branch=gate.base_ref,
                head=gate.head_sha,
                before=before if before.strip("0") else None,
                parents=parents,
                known=known,
            )
        except NotOnBranchError as error:
            if gate.plan_tries < _PATIENT_TRIES:
                raise GithubAwayError(str(error)) from error
            raise
        if place.base != before:
            # The commit before it is gone, the branch was rewritten, or a delivery was lost.
            log.info("push %s to %s: compared with %s, not with %s", gate.head_sha, gate.base_ref, place.base, before)
        return place

    def _known(self, gate: GithubGate) -> list[Known]:
        with self.database.read() as session:
            return gates.line(session, repository_id=gate.repository_id)

    async def _config(
        self, gate: GithubGate, trees: Trees, *, tip: str, base: str | None
    ) -> tuple[RepositoryConfig | None, Plan]:
        """The base branch's configuration, and what an edit of it asks for."""
        if gate.kind == gates.PUSH or base is None:
            try:
                return await read_config(trees, tip), Plan(base_sha=base or "")
            except FolderError as error:
                return None, Plan(base_sha=base or "", notes=(str(error),))
        sides = [await trees.find(await trees.root(commit), FILE) for commit in (base, gate.head_sha)]
        shas = [entry.sha if entry else None for entry in sides]
        holds: tuple[Hold, ...] = ()
        if shas[0] is not None and shas[0] != shas[1]:
            digest = hashlib.sha256((shas[1] or "").encode()).hexdigest()
            said = f"{FILE} is {'edited' if shas[1] else 'removed'}: it says what this gate looks at"
            holds = (Hold(subject="suite", kernel=FILE, digest=digest, said=said),)
        try:
            config = await read_config(trees, tip)
        except FolderError as error:
            if holds:
                return None, Plan(base_sha=base, holds=holds, notes=(f"on {gate.base_ref}: {error}",))
            return None, Plan(base_sha=base, faults=(Fault(path=FILE, said=f"on {gate.base_ref}: {error}"),))
        if config is None:
            said = f"{gate.base_ref} has no {FILE}: the gate is not set up there"
            return None, Plan(base_sha=base, holds=holds, notes=(said,))
        return config, Plan(base_sha=base, holds=holds)

    def _accepts(self, gate: GithubGate) -> Any:
        if gate.kind == gates.PUSH:
            return lambda _hold: True

        def accepted(hold: Hold) -> bool:
            with self.database.read() as session:
                row = session.get_one(GithubRepository, gate.repository_id)
                return gates.accepted_hold(session, project_id=row.project_id, hold=hold) is not None

        return accepted

    def _queue(self, gate: GithubGate, row: GithubRepository, planned: Planned, place: Place | None) -> list[Wake]:
        with self.database.read() as session:
            approved = gates.is_approved(session, gate)
        # A fork's files aren't even stored before someone lets them run.
        sizes = queueing.store_bundles(self.store, planned) if approved else {}
        read = _Read(planned=planned, place=place, sizes=sizes, approved=approved)
        try:
            with self.database.write() as session:
                return self._write(session, gate, row, read)
        except ProblemError as error:
            fault = Fault(path=FILE, said=error.problem.detail)
            refused = planned.plan.model_copy(update={"targets": (), "previews": (), "faults": (fault,)})
            read = _Read(planned=Planned(plan=refused, bundles={}), place=place, sizes={}, approved=False)
            with self.database.write() as session:
                return self._write(session, gate, row, read)

    def _write(self, session: Session, gate: GithubGate, row: GithubRepository, read: _Read) -> list[Wake]:
        planned, place, sizes = read.planned, read.place, read.sizes
        current = session.get_one(GithubGate, gate.id, with_for_update=True)
        if current.state != gates.DUE or current.version != gate.version:
            return []  # superseded or begun again while the trees were read
        project = session.get_one(Project, row.project_id)
        plan = queueing.with_new_bases(session, project=project, plan=planned.plan)
        current.plan = plan.model_dump(mode="json")
        current.base_sha = planned.plan.base_sha or current.base_sha
        current.started_at = now()
        current.error = None
        if place is not None:
            current.state, current.finished_at = gates.DONE, now()
            current.first_parent_index = place.index
            session.add(current)
            return mainline.record(
                session,
                gate=current,
                project=project,
                planned=planned,
                place=place,
                sizes=sizes,
                settings=self.settings,
            )
        current.state, current.publish_at = gates.RUNNING, now()
        session.add(current)
        session.flush()
        if not read.approved:
            return []
        return queueing.queue_plan(
            session,
            gate=current,
            project=project,
            planned=planned,
            sizes=sizes,
            place=gates.place_on_line(session, current),
            settings=self.settings,
        )

    def _later(self, gate: GithubGate, error: GithubAwayError | GithubRefusedError, *, tries: int) -> None:
        """Again after a growing pause, or given up after so many `tries`."""
        pause_s = pause_after(gate.plan_tries, error, first_s=self.settings.github_pause_s)
        with self.database.write() as session:
            row = session.get_one(GithubGate, gate.id)
            if row.state != gates.DUE:
                return
            row.plan_tries += 1
            row.error = str(error)[:1000]
            row.due_at = now() + timedelta(seconds=pause_s)
            if row.plan_tries > tries:
                gates.give_up(row, str(error))
            session.add(row)
        log.warning("gate %s: the change can't be read (%s)", gate.id, error)

    def _end(self, gate: GithubGate, why: str) -> None:
        with self.database.write() as session:
            gates.end_gate(session, session.get_one(GithubGate, gate.id), why=why, reason=Reason.SUPERSEDED)
