"""Browsers: a token, or a one-time code, becomes an HttpOnly cookie, and every change needs the CSRF header beside
it."""

from typing import Annotated, Self

from fastapi import APIRouter, Body, Cookie, Request, Response, status
from pydantic import Field, model_validator
from sqlmodel import col, delete

from contract.api import Scope
from contract.base import Model
from contract.views import SignInCode
from service import signing_in
from service.auth import COOKIE, Reader, SettingsDep, authenticate_cookie, csrf_of, hash_secret
from service.database import DatabaseDep
from service.models import BrowserSession
from service.problems import ProblemError

router = APIRouter(tags=["session"])


class SessionIn(Model):
    """One of the two."""

    token: str | None = Field(default=None, max_length=500)
    code: str | None = Field(default=None, max_length=500, description="of a one-time link")

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.token is None) == (self.code is None):
            raise ValueError("send a token or a code")
        return self


class SessionOut(Model):
    """`csrf`: send it as X-Kernelgate-CSRF with every change. None where reading is public and nobody signed in."""

    scope: Scope
    csrf: str | None


@router.post("/session", status_code=status.HTTP_201_CREATED)
def sign_in(
    wanted: Annotated[SessionIn, Body(examples=[{"token": "kg_tok_…"}, {"code": "kg_cod_…"}])],
    request: Request,
    response: Response,
    database: DatabaseDep,
    settings: SettingsDep,
) -> SessionOut:
    """Trade a token or a one-time code for a cookie."""
    _check_origin(request)
    with database.write() as session:
        principal = signing_in.principal_of(session, token=wanted.token, code=wanted.code)
        cookie = signing_in.open_session(session, principal, lasts_s=settings.session_s)
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
    settings: SettingsDep,
    principal: Reader,
    cookie: Annotated[str | None, Cookie(alias=COOKIE)] = None,
) -> None:
    del principal
    if cookie:
        with database.write() as session:
            session.exec(delete(BrowserSession).where(col(BrowserSession.secret_hash) == hash_secret(cookie)))
    response.delete_cookie(COOKIE, httponly=True, samesite=settings.cookie_same_site, secure=settings.cookie_secure)


@router.post("/session/code", status_code=status.HTTP_201_CREATED)
def make_sign_in_code(database: DatabaseDep, settings: SettingsDep, principal: Reader) -> SignInCode:
    """A link that signs one browser in as this token, once, within minutes. The code stands behind `#`: it reaches no
    log."""
    with database.write() as session:
        code, expires_at = signing_in.make_code(session, principal, lasts_s=settings.sign_in_code_s)
    return SignInCode(code=code, url=f"{settings.public_url.rstrip('/')}/login#code={code}", expires_at=expires_at)


def _check_origin(request: Request) -> None:
    """Nobody's page may sign a browser in here as somebody else."""
    if request.headers.get("Sec-Fetch-Site", "same-origin") not in {"same-origin", "none"}:
        raise ProblemError(403, "csrf", "sign in from the service's own page")
