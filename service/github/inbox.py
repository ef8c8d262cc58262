"""Deliveries: checked, kept by GitHub's id, and given back one at a time until they are worked off."""

import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from gidgethub import ValidationFailure
from gidgethub.sansio import validate_event
from sqlalchemy import update
from sqlmodel import Session, col, delete, select

from service.columns import now
from service.database import insert_if_missing
from service.github.tables import GithubDelivery
from service.problems import ProblemError

log = logging.getLogger(__name__)

# What the gate acts on. Everything else is acknowledged and forgotten.
EVENTS = frozenset(
    {
        "check_run",
        "check_suite",
        "installation",
        "installation_repositories",
        "issue_comment",
        "merge_group",
        "pull_request",
        "push",
    }
)
_SIGNATURE = re.compile(r"sha256=[0-9a-f]{64}")
_DELIVERY_ID = re.compile(r"[A-Za-z0-9-]{1,64}")
# GitHub redelivers for three days.
_KEPT = timedelta(days=7)


@dataclass(frozen=True, kw_only=True)
class Incoming:
    id: str
    event: str
    action: str
    body: str


def check_delivery(headers: Mapping[str, str], body: bytes, *, secret: str) -> Incoming:
    """Raises ProblemError 401 before anything of `body` is read, 422 for what GitHub would never send."""
    if not _is_signed(body, signature=headers.get("x-hub-signature-256", ""), secret=secret):
        log.warning("refused delivery %r: not signed with the webhook's secret", headers.get("x-github-delivery"))
        raise ProblemError(401, "bad-signature", "this delivery isn't signed with the webhook's secret")
    identifier = headers.get("x-github-delivery", "")
    event = headers.get("x-github-event", "")
    if not _DELIVERY_ID.fullmatch(identifier) or not event or len(event) > 64:
        raise ProblemError(422, "invalid-delivery", "X-GitHub-Delivery and X-GitHub-Event are needed")
    try:
        text = body.decode()
        payload = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ProblemError(422, "invalid-json", "a delivery is JSON: set the webhook's content type to it") from error
    action = payload.get("action") if isinstance(payload, dict) else None
    return Incoming(id=identifier, event=event, action=str(action or "")[:64], body=text)


def _is_signed(body: bytes, *, signature: str, secret: str) -> bool:
    """In constant time (gidgethub's compare_digest)."""
    if not _SIGNATURE.fullmatch(signature):
        return False
    try:
        validate_event(body, signature=signature, secret=secret)
    except ValidationFailure:
        return False
    return True


def keep(session: Session, incoming: Incoming) -> bool:
    """False for one that came before, unless it was given up then: then it is tried again."""
    row = session.get(GithubDelivery, incoming.id)
    if row is None:
        fresh = GithubDelivery(
            id=incoming.id, event=incoming.event, action=incoming.action, payload=incoming.body, state="due"
        )
        return insert_if_missing(session, fresh)
    if row.state != "failed":
        log.info("delivery %s (%s) came before: nothing is done", incoming.id, incoming.event)
        return False
    row.state, row.tries, row.due_at, row.received_at = "due", 0, now(), now()
    row.payload = incoming.body
    session.add(row)
    return True


def due(session: Session, *, moment: datetime) -> str | None:
    """The id of the oldest delivery whose time has come."""
    query = select(GithubDelivery.id).where(GithubDelivery.state == "due", col(GithubDelivery.due_at) <= moment)
    return session.exec(query.order_by(col(GithubDelivery.received_at), col(GithubDelivery.id)).limit(1)).first()


def take(session: Session, identifier: str, *, moment: datetime, hold_s: float) -> GithubDelivery | None:
    """The delivery, out of the way of other replicas for `hold_s`; None where one of them was quicker."""
    held: Any = (
        update(GithubDelivery)
        .where(
            col(GithubDelivery.id) == identifier,
            col(GithubDelivery.state) == "due",
            col(GithubDelivery.due_at) <= moment,
        )
        .values(due_at=moment + timedelta(seconds=hold_s), tries=GithubDelivery.tries + 1)
    )
    if session.exec(held).rowcount != 1:
        return None
    return session.get(GithubDelivery, identifier)


def finish(session: Session, identifier: str, *, state: str, error: str | None = None) -> None:
    values: dict[str, Any] = {"state": state, "error": error}
    if state != "failed":
        values["payload"] = ""
    ended: Any = update(GithubDelivery).where(col(GithubDelivery.id) == identifier).values(**values)
    session.exec(ended)


def retry(session: Session, identifier: str, *, at: datetime, error: str) -> None:
    again: Any = update(GithubDelivery).where(col(GithubDelivery.id) == identifier).values(due_at=at, error=error)
    session.exec(again)


def forget_old(session: Session, *, moment: datetime) -> None:
    old: Any = delete(GithubDelivery).where(
        col(GithubDelivery.state) != "due", col(GithubDelivery.received_at) < moment - _KEPT
    )
    session.exec(old)
