"""Browser sessions, and the one-time codes that open them."""

from datetime import datetime, timedelta

from sqlmodel import Session, col, delete

from contract.api import Scope
from service.auth import Principal, authenticate, authenticate_code, hash_secret, new_secret
from service.columns import now
from service.ids import new_id
from service.models import BrowserSession, SignInCode
from service.problems import ProblemError


def principal_of(session: Session, *, token: str | None, code: str | None) -> Principal:
    """Who `token` or `code` is; a code is spent by this. Raises 401 for an unknown, revoked, old or spent one."""
    if code is not None:
        principal = authenticate_code(session, code)
        if principal is None:
            raise ProblemError(
                401,
                "unauthorised",
                "this link was used or is too old; `kernelgate up` prints a new one, or use a token",
                field="code",
            )
        return principal
    principal = authenticate(session, token or "")
    if principal is None:
        raise ProblemError(401, "unauthorised", "this token is unknown or was revoked", field="token")
    if principal.scope is Scope.WORKER:
        raise ProblemError(403, "forbidden", "a worker's token opens no browser session", field="token")
    return principal


def open_session(session: Session, principal: Principal, *, lasts_s: float) -> str:
    """The new cookie's value."""
    identifier = new_id("ses")
    cookie = new_secret(identifier)
    moment = now()
    session.exec(delete(BrowserSession).where(col(BrowserSession.expires_at) <= moment))
    session.add(
        BrowserSession(
            id=identifier,
            secret_hash=hash_secret(cookie),
            token_id=principal.token_id or "",
            expires_at=moment + timedelta(seconds=lasts_s),
        )
    )
    return cookie


def make_code(session: Session, principal: Principal, *, lasts_s: float) -> tuple[str, datetime]:
    """A code that signs one browser in as `principal`, once, and when it ends."""
    if principal.token_id is None:
        raise ProblemError(401, "unauthorised", "a sign-in code stands for a token: send one")
    identifier = new_id("cod")
    code = new_secret(identifier)
    moment = now()
    session.exec(delete(SignInCode).where(col(SignInCode.expires_at) <= moment))
    row = SignInCode(
        id=identifier,
        secret_hash=hash_secret(code),
        token_id=principal.token_id,
        expires_at=moment + timedelta(seconds=lasts_s),
    )
    session.add(row)
    return code, row.expires_at
