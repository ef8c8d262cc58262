"""Browsers: a token becomes an HttpOnly cookie, and every change needs the CSRF header beside it."""

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Body, Cookie, Response, status
from sqlmodel import col, delete

from contract.api import Scope
from contract.base import Model
from service.auth import (
    COOKIE,
    Reader,
    SettingsDep,
    authenticate,
    authenticate_cookie,
    csrf_of,
    hash_secret,
    new_secret,
)
from service.columns import now
from service.database import DatabaseDep
from service.ids import new_id
from service.models import BrowserSession
from service.problems import ProblemError

router = APIRouter(tags=["session"])


class SessionIn(Model):
    token: str


class SessionOut(Model):
    """`csrf`: send it as X-Kernelgate-CSRF with every change. None where reading is public and nobody signed in."""

    scope: Scope
    csrf: str | None


@router.post("/session", status_code=status.HTTP_201_CREATED)
def sign_in(
    wanted: Annotated[SessionIn, Body(examples=[{"token": "kg_tok_…"}])],
    response: Response,
    database: DatabaseDep,
    settings: SettingsDep,
) -> SessionOut:
    """Trade a token for a cookie."""
    with database.write() as session:
        principal = authenticate(session, wanted.token)
        if principal is None or principal.token_id is None:
            raise ProblemError(401, "unauthorised", "this token is unknown or was revoked", field="token")
        if principal.scope is Scope.WORKER:
            raise ProblemError(403, "forbidden", "a worker's token opens no browser session", field="token")
        identifier = new_id("ses")
        cookie = new_secret(identifier)
        moment = now()
        session.exec(delete(BrowserSession).where(col(BrowserSession.expires_at) <= moment))
        session.add(
            BrowserSession(
                id=identifier,
                secret_hash=hash_secret(cookie),
                token_id=principal.token_id,
                expires_at=moment + timedelta(seconds=settings.session_s),
            )
        )
    response.set_cookie(
        COOKIE,
        cookie,
        max_age=int(settings.session_s),
        httponly=True,
        samesite=settings.cookie_same_site,
        secure=settings.cookie_secure,
    )
    return SessionOut(scope=principal.scope, csrf=csrf_of(cookie))


@router.get("/session")
def current_session(
    database: DatabaseDep, principal: Reader, cookie: Annotated[str | None, Cookie(alias=COOKIE)] = None
) -> SessionOut:
    """Who this browser is, and its CSRF token, after a page was loaded anew."""
    with database.read() as session:
        known = cookie is not None and authenticate_cookie(session, cookie) is not None
    return SessionOut(scope=principal.scope, csrf=csrf_of(cookie) if cookie and known else None)


@router.delete("/session", status_code=status.HTTP_204_NO_CONTENT)
def sign_out(
    response: Response,
    database: DatabaseDep,
    principal: Reader,
    cookie: Annotated[str | None, Cookie(alias=COOKIE)] = None,
) -> None:
    del principal
    if cookie:
        with database.write() as session:
            session.exec(delete(BrowserSession).where(col(BrowserSession.secret_hash) == hash_secret(cookie)))
    response.delete_cookie(COOKIE)
