"""The gate's own thread: deliveries worked off, gates planned, checks sent. One in every replica; each step takes its
row first, so that two never do the same."""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Protocol

import httpx
from sqlmodel import Session

from service.columns import now
from service.database import Database
from service.dispatch import Dispatcher
from service.github import inbox, outbox, planner
from service.github.client import (
    UNFORESEEN_TRIES,
    Github,
    GithubAwayError,
    GithubRefusedError,
    own_fault,
    pause_after,
    tries_in,
)
from service.github.events import Events
from service.github.installations import RefusedDeliveryError
from service.github.outbox import Outbox
from service.github.pace import Pace
from service.github.planner import Planner
from service.github.repository import GoneError
from service.github.tables import GithubDelivery
from service.settings import Settings
from service.store import Store

log = logging.getLogger(__name__)

_FORGET_EVERY = timedelta(hours=1)
# Checks are not kept waiting by a flood of deliveries.
_DELIVERIES_A_ROUND = 50


class _Due(Protocol):
    def __call__(self, session: Session, *, moment: datetime) -> list[str]: ...


class GithubWorker:
    """`transport`: where GitHub is, for tests."""

    def __init__(
        self,
        *,
        settings: Settings,
        database: Database,
        store: Store,
        dispatcher: Dispatcher,
        pace: Pace,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._settings = settings
        self._database = database
        self._store = store
        self._dispatcher = dispatcher
        self._pace = pace
        self._transport = transport
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="github", daemon=True)
        self._forgotten_at = now()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        github = Github(self._settings, transport=self._transport)
        try:
            while not self._stop.is_set():
                more = False
                try:
                    more = await self.round(github)
                except Exception:
                    # The database may be away for a while; the next round tries again.
                    log.exception("the gate's round failed")
                if not more:
                    await asyncio.to_thread(self._stop.wait, self._settings.github_every_s)
        finally:
            await github.close()

    async def round(self, github: Github) -> bool:
        """What is due now, once; whether there may be more of it. Deliveries first and in their order: they open and
        end gates."""
        events = Events(database=self._database, settings=self._settings, dispatcher=self._dispatcher, github=github)
        delivered = 0
        while delivered < _DELIVERIES_A_ROUND:
            identifier = await asyncio.to_thread(self._next_delivery)
            # Where GitHub is away for one it is for the next, too.
            if identifier is None or self._stop.is_set() or not await self._deliver(events, identifier):
                break
            delivered += 1
        sender = Outbox(database=self._database, settings=self._settings, github=github)
        # The check shows as queued before its trees are read.
        await self._each(sender.publish, outbox.due)
        plans = Planner(
            database=self._database,
            settings=self._settings,
            store=self._store,
            dispatcher=self._dispatcher,
            github=github,
        )
        planned = await self._each(plans.plan, planner.due)
        if planned:
            await self._each(sender.publish, outbox.due)
        if now() - self._forgotten_at > _FORGET_EVERY:
            self._forgotten_at = now()
            await asyncio.to_thread(self._forget)
        return delivered == _DELIVERIES_A_ROUND or planned > 0

    async def _each(self, step: Callable[[str], Awaitable[None]], due: _Due) -> int:
        """How many went through."""
        going: set[asyncio.Task[bool]] = set()
        ended: list[asyncio.Task[bool]] = []
        for identifier in await asyncio.to_thread(self._read, due):
            while len(going) >= self._pace.at_once:
                done, going = await asyncio.wait(going, return_when=asyncio.FIRST_COMPLETED)
                ended += done
            going.add(asyncio.create_task(self._try(step, identifier)))
        return sum([each.result() for each in ended] + await asyncio.gather(*going))

    async def _try(self, step: Callable[[str], Awaitable[None]], identifier: str) -> bool:
        try:
            await step(identifier)
        except Exception:
            # Its row was taken for a while: it comes again by itself.
            log.exception("gate %s failed", identifier)
            return False
        return True

    def _read(self, due: _Due) -> list[str]:
        with self._database.read() as session:
            return due(session, moment=now())

    def _next_delivery(self) -> str | None:
        with self._database.read() as session:
            return inbox.due(session, moment=now())

    async def _deliver(self, events: Events, identifier: str) -> bool:
        """False where GitHub didn't do its part."""
        delivery = await asyncio.to_thread(self._take, identifier)
        if delivery is None:
            return True
        try:
            await events.handle(delivery)
        except (RefusedDeliveryError, GoneError) as error:
            log.warning("delivery %s (%s): refused: %s", identifier, delivery.event, error)
            await asyncio.to_thread(self._finish, identifier, "refused", str(error))
        except (GithubAwayError, GithubRefusedError) as error:
            tries = tries_in(self._settings.github_retry_for_s)
            await asyncio.to_thread(self._retry, delivery, error, most=tries)
            return False
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            # A payload of another shape than GitHub documents: trying again changes nothing.
            log.exception("delivery %s (%s): not understood", identifier, delivery.event)
            await asyncio.to_thread(self._finish, identifier, "refused", f"not understood: {error!r}")
        except Exception as error:
            log.exception("delivery %s (%s): working it off failed", identifier, delivery.event)
            said = GithubAwayError(own_fault(error, where=f"delivery {identifier}"))
            await asyncio.to_thread(self._retry, delivery, said, most=UNFORESEEN_TRIES)
        else:
            await asyncio.to_thread(self._finish, identifier, "done", None)
        return True

    def _take(self, identifier: str) -> GithubDelivery | None:
        hold_s = 20 * self._settings.github_timeout_s
        with self._database.write() as session:
            return inbox.take(session, identifier, moment=now(), hold_s=hold_s)

    def _finish(self, identifier: str, state: str, error: str | None) -> None:
        with self._database.write() as session:
            inbox.finish(session, identifier, state=state, error=error)

    def _retry(self, delivery: GithubDelivery, error: GithubAwayError | GithubRefusedError, *, most: int) -> None:
        with self._database.write() as session:
            if delivery.tries > most:
                log.error("delivery %s: given up: %s", delivery.id, error)
                inbox.finish(session, delivery.id, state="failed", error=str(error))
                return
            pause_s = pause_after(delivery.tries - 1, error, first_s=self._settings.github_pause_s)
            log.warning("delivery %s: %s; again in %.0f s", delivery.id, error, pause_s)
            inbox.retry(session, delivery.id, at=now() + timedelta(seconds=pause_s), error=str(error))

    def _forget(self) -> None:
        with self._database.write() as session:
            inbox.forget_old(session, moment=now())
