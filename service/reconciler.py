"""Repairs what messages, nodes and brokers lose: republishes queued rows, ends leases that nobody keeps.

Every replica runs one. Each repair is a compare-and-set on its row, so two replicas never repair the same thing twice.
"""

import logging
import threading
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import false, update
from sqlmodel import Session, col, or_, select

from contract.outcomes import Reason, State
from service import states
from service.columns import now
from service.database import Database
from service.dispatch import Dispatcher, Wake, wake_of
from service.models import Attempt, Evaluation
from service.outages import begin_silence
from service.regressions.tracking import refresh_stale, stale_series
from service.settings import Settings

log = logging.getLogger(__name__)

_BATCH = 200


class Reconciler:
    def __init__(self, *, database: Database, dispatcher: Dispatcher, settings: Settings) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._settings = settings
        # Nobody could be heard before this moment: silence counts from here. None: rounds are called by hand.
        self._listens_since: datetime | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reconciler", daemon=True)

    def start(self) -> None:
        self._listens_since = now()
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._settings.reconcile_every_s):
            try:
                self.reconcile()
            except Exception:
                # The database may be away for a while; the next round tries again.
                log.exception("reconciling failed")
                self._listens_since = now()

    def reconcile(self) -> None:
        """One round."""
        self._dispatcher.publish([*self._end_leases(), *self._due()])
        self._note_silence()
        self._refresh_series()

    def _note_silence(self) -> None:
        silent_since = now() - timedelta(seconds=self._settings.node_offline_after_s)
        # What was not heard while the service was away is no outage of the node's.
        if self._listens_since is None or self._listens_since < silent_since:
            with self._database.write() as session:
                begin_silence(session, before=silent_since)

    def _refresh_series(self) -> None:
        """Histories into which a revision came that isn't their newest."""
        with self._database.read() as session:
            stale = stale_series(session, limit=_BATCH)
        for series_id in stale:
            with self._database.write() as session:
                refresh_stale(session, series_id)

    def _end_leases(self) -> list[Wake]:
        moment = now()
        timeout = timedelta(seconds=self._settings.heartbeat_timeout_s)
        # A service that was away must not take its own silence for the nodes'.
        heard = self._listens_since is None or self._listens_since < moment - timeout
        stale = col(Attempt.heartbeat_at) < moment - timeout if heard else false()
        ended: list[Wake] = []
        with self._database.read() as session:
            query = (
                select(Evaluation.id)
                .join(Attempt, col(Attempt.id) == col(Evaluation.attempt_id))
                .where(Evaluation.state == State.LEASED)
                .where(or_(stale, col(Attempt.deadline) < moment))
            )
            candidates = session.exec(query.limit(_BATCH)).all()
        for evaluation_id in candidates:
            with self._database.write() as session:
                wake = end_lease_if_dead(session, evaluation_id=evaluation_id, moment=moment, settings=self._settings)
            if wake:
                ended.append(wake)
        return ended

    def _due(self) -> list[Wake]:
        """Queued rows whose time to be published has come, each marked before it is published."""
        moment = now()
        with self._database.read() as session:
            query = select(Evaluation).where(Evaluation.state == State.QUEUED)
            query = query.where(col(Evaluation.publish_due_at) <= moment).order_by(col(Evaluation.publish_due_at))
            rows = session.exec(query.limit(_BATCH)).all()
        wakes: list[Wake] = []
        for row in rows:
            with self._database.write() as session:
                if self._mark_published(session, row, moment):
                    wakes.append(wake_of(row))
        return wakes

    def _mark_published(self, session: Session, row: Evaluation, moment: datetime) -> bool:
        # The longer a row waits behind others, the less likely it is that its message was lost.
        delay_s = min(
            self._settings.republish_after_s * 2 ** min(row.publishes, 20), self._settings.republish_at_most_s
        )
        mark: Any = update(Evaluation).where(
            col(Evaluation.id) == row.id,
            col(Evaluation.state) == State.QUEUED,
            col(Evaluation.publish_due_at) == row.publish_due_at,
        )
        values = {"publish_due_at": moment + timedelta(seconds=delay_s), "publishes": row.publishes + 1}
        return bool(session.exec(mark.values(**values)).rowcount == 1)


def end_lease_if_dead(session: Session, *, evaluation_id: str, moment: datetime, settings: Settings) -> Wake | None:
    """End the lease if it is still dead now that the row is held; the wake where it goes back to the queue."""
    evaluation = session.exec(select(Evaluation).where(Evaluation.id == evaluation_id).with_for_update()).one()
    attempt = session.get(Attempt, evaluation.attempt_id) if evaluation.attempt_id else None
    if evaluation.state != State.LEASED or attempt is None:
        return None
    silent_s = (moment - attempt.heartbeat_at).total_seconds()
    if attempt.deadline < moment:
        why = f"node {attempt.node} passed its deadline of {settings.lease_deadline_s:g} s"
    elif silent_s > settings.heartbeat_timeout_s:
        why = f"node {attempt.node} was not heard of for {silent_s:.0f} s"
    else:
        return None
    if evaluation.cancel_requested:
        states.end_cancelled(session, evaluation, message=f"cancelled; {why}")
        return None
    states.end_attempt(session, evaluation, end="expired")
    if evaluation.attempts >= settings.max_attempts:
        message = f"{evaluation.attempts} attempts ended without a report; the last: {why}"
        states.fail(session, evaluation, reason=Reason.ATTEMPTS_EXHAUSTED, message=message)
        return None
    states.requeue(session, evaluation, settings=settings)
    return wake_of(evaluation)
