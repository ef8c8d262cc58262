"""Who asks, and what they may: bearer tokens, and cookies that stand for one.

A route takes `principal: Reader` (or Submitter, Maintainer, Admin, WorkerNode) and, once it knows the project, calls
`principal.allow(project)`. The look-up uses a transaction of its own, over before the route's begins.
"""

import hashlib
import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Request
from fastapi.security import HTTPBearer
from sqlmodel import Session, col, delete

from contract.api import Scope
from service.columns import now
from service.database import Database, DatabaseDep
from service.ids import new_id
from service.models import BrowserSession, Project, SignInCode, Token
from service.problems import ProblemError
from service.settings import Settings

COOKIE = "kernelgate_session"
CSRF_HEADER = "X-Kernelgate-CSRF"
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})

# What a scope includes beside itself. A worker's token opens the worker's routes and nothing else.
_INCLUDES: dict[Scope, frozenset[Scope]] = {
    Scope.READ: frozenset({Scope.READ}),
    Scope.SUBMIT: frozenset({Scope.READ, Scope.SUBMIT}),
    Scope.MAINTAIN: frozenset({Scope.READ, Scope.SUBMIT, Scope.MAINTAIN}),
    Scope.ADMIN: frozenset({Scope.READ, Scope.SUBMIT, Scope.MAINTAIN, Scope.ADMIN}),
    Scope.WORKER: frozenset({Scope.WORKER}),
}


@dataclass(frozen=True, kw_only=True)
class Principal:
    """`project`: the id of the only project it may touch, None for all. `node`: what a worker's token is bound to."""

    scope: Scope
    token_id: str | None = None
    project: str | None = None
    node: str | None = None

    def may(self, scope: Scope) -> bool:
        return scope in _INCLUDES[self.scope]

    def allow(self, project: Project) -> None:
        """Raise 403 `forbidden` where the token is bound to another project."""
        if self.project is not None and self.project != project.id:
            raise ProblemError(403, "forbidden", f"this token is bound to another project than {project.slug}")


def hash_secret(secret: str) -> str:
    """SHA-256, hex. Fit for 256 random bits; it would not be for a password."""
    return hashlib.sha256(secret.encode()).hexdigest()


def matches(secret: str, digest: str) -> bool:
    """In constant time."""
    return hmac.compare_digest(hash_secret(secret), digest)


def new_secret(identifier: str) -> str:
    """`kg_<id>_<256 random bits>`: the id finds the row, the row's digest checks the whole."""
    return f"kg_{identifier}_{secrets.token_urlsafe(32)}"


def issue_token(
    session: Session, *, scope: Scope, project_id: str | None = None, node: str | None = None, note: str = ""
) -> tuple[Token, str]:
    """A new token and its secret, which is kept nowhere."""
    identifier = new_id("tok")
    secret = new_secret(identifier)
    token = Token(
        id=identifier, secret_hash=hash_secret(secret), scope=scope, project_id=project_id, node=node, note=note
    )
    session.add(token)
    return token, secret


def csrf_of(cookie: str) -> str:
    """What a page must send in X-Kernelgate-CSRF beside its cookie. It follows from the cookie, unread by scripts."""
    return hmac.new(cookie.encode(), b"kernelgate csrf", hashlib.sha256).hexdigest()


def authenticate(session: Session, secret: str) -> Principal | None:
    token = session.get(Token, _identifier(secret))
    return _principal(token) if token and matches(secret, token.secret_hash) and is_live(token) else None


def authenticate_cookie(session: Session, cookie: str) -> Principal | None:
    row = session.get(BrowserSession, _identifier(cookie))
    if row is None or not matches(cookie, row.secret_hash) or row.expires_at <= now():
        return None
    token = session.get(Token, row.token_id)
    return _principal(token) if token and is_live(token) else None


def is_live(token: Token) -> bool:
    return token.expires_at is None or token.expires_at > now()


def authenticate_code(session: Session, code: str) -> Principal | None:
    """A one-time code; it is spent by this, whoever comes second."""
    row = session.get(SignInCode, _identifier(code))
    if row is None or not matches(code, row.secret_hash) or row.expires_at <= now():
        return None
    token = session.get(Token, row.token_id)
    spent = session.exec(delete(SignInCode).where(col(SignInCode.id) == row.id))
    return _principal(token) if token and spent.rowcount == 1 and is_live(token) else None


def _identifier(secret: str) -> str:
    """The id inside `kg_<prefix>_<id>_…`; "" where it has another shape."""
    parts = secret.split("_", 3)
    return f"{parts[1]}_{parts[2]}" if len(parts) == 4 and parts[0] == "kg" and secret.isascii() else ""


def _principal(token: Token) -> Principal:
    return Principal(scope=Scope(token.scope), token_id=token.id, project=token.project_id, node=token.node)


def settings_of(request: Request) -> Settings:
    return cast("Settings", request.app.state.settings)


SettingsDep = Annotated[Settings, Depends(settings_of)]


def _find(request: Request, database: Database) -> Principal | None:
    header = request.headers.get("Authorization", "")
    cookie = request.cookies.get(COOKIE)
    if header:
        kind, _, secret = header.partition(" ")
        if kind.lower() != "bearer":
            raise ProblemError(401, "unauthorised", "use `Authorization: Bearer <token>`")
        with database.read() as session:
            principal = authenticate(session, secret.strip())
        if principal is None:
            raise ProblemError(401, "unauthorised", "this token is unknown or was revoked")
        return principal
    if cookie is None:
        return None
    with database.read() as session:
        principal = authenticate_cookie(session, cookie)
    if principal and request.method not in _SAFE_METHODS:
        sent = request.headers.get(CSRF_HEADER, "")
        if not hmac.compare_digest(sent.encode(), csrf_of(cookie).encode()):
            raise ProblemError(
                403, "csrf", f"a change with a cookie needs the {CSRF_HEADER} header that POST /session gave"
            )
    return principal


def requires(scope: Scope) -> Callable[..., Principal]:
    def dependency(request: Request, database: DatabaseDep, settings: SettingsDep) -> Principal:
        principal = _find(request, database)
        if principal is None:
            if scope is Scope.READ and settings.public_read:
                return Principal(scope=Scope.READ)
            raise ProblemError(401, "unauthorised", "this needs a token: `Authorization: Bearer <token>`")
        if not principal.may(scope) and not (scope is Scope.READ and settings.public_read):
            raise ProblemError(
                403, "forbidden", f"this needs a token of scope {scope.value}, yours is {principal.scope.value}"
            )
        return principal

    return dependency


_SCHEME = Depends(HTTPBearer(auto_error=False, description="a token: `kernelgate token create`"))
Reader = Annotated[Principal, Depends(requires(Scope.READ))]
Submitter = Annotated[Principal, Depends(requires(Scope.SUBMIT))]
Maintainer = Annotated[Principal, Depends(requires(Scope.MAINTAIN))]
Admin = Annotated[Principal, Depends(requires(Scope.ADMIN))]
WorkerNode = Annotated[Principal, Depends(requires(Scope.WORKER))]
BEARER = _SCHEME
