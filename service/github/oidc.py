"""A GitHub Actions job's own token for a short-lived one of ours: nobody stores a secret.

The job's claims are held against rules that this service's operator wrote. A job of a fork's pull request gets no
such token from GitHub: forks are gated by the App alone.
"""

import logging
import threading
import time
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Any

import httpx
import jwt
from sqlmodel import Session, col, delete, select

from contract.api import Scope
from contract.text import one_line
from service.auth import issue_token
from service.columns import now
from service.models import BrowserSession, Project, SignInCode, Token
from service.problems import ProblemError, not_found
from service.settings import OidcRule, Settings

log = logging.getLogger(__name__)

_LEEWAY_S = 30.0
_KEYS_FOR_S = 3600.0
# An unknown key id asks again, but a flood of nonsense must not become one of requests.
_ASK_AGAIN_S = 30.0
_CLAIMS = ("aud", "event_name", "exp", "iat", "iss", "ref", "repository", "workflow_ref")


class Keys:
    """The issuer's public keys, fetched when they are needed and kept for an hour."""

    def __init__(self, settings: Settings, *, transport: httpx.BaseTransport | None = None) -> None:
        self._url = f"{settings.github_oidc_issuer.rstrip('/')}/.well-known/jwks"
        self._timeout_s = settings.github_timeout_s
        self._transport = transport
        self._lock = threading.Lock()
        self._keys: dict[str, jwt.PyJWK] = {}
        self._fetched_at = -_KEYS_FOR_S

    def find(self, key_id: str) -> jwt.PyJWK | None:
        """Raises ProblemError 503 where the issuer doesn't answer and no keys are known."""
        with self._lock:
            age_s = time.monotonic() - self._fetched_at
            if age_s > _KEYS_FOR_S or (key_id not in self._keys and age_s > _ASK_AGAIN_S):
                self._fetch()
            return self._keys.get(key_id)

    def _fetch(self) -> None:
        try:
            with httpx.Client(timeout=self._timeout_s, transport=self._transport) as http:
                answer = http.get(self._url).raise_for_status().json()
            found = jwt.PyJWKSet.from_dict(answer)
        except (httpx.HTTPError, ValueError, jwt.PyJWTError) as error:
            log.warning("the keys of %s can't be had: %s", self._url, error)
            if not self._keys:
                raise ProblemError(503, "issuer-away", "the token's issuer does not answer; try again") from error
        else:
            self._keys = {key.key_id: key for key in found.keys if key.key_id}
        self._fetched_at = time.monotonic()


def read_claims(token: str, *, keys: Keys, settings: Settings) -> dict[str, Any]:
    """What the issuer says of the job. Raises ProblemError 401 `bad-job-token`."""
    try:
        key_id = str(jwt.get_unverified_header(token).get("kid", ""))
        key = keys.find(key_id)
        if key is None:
            raise jwt.InvalidTokenError("its key is none of the issuer's")
        claims: dict[str, Any] = jwt.decode(
            token,
            key,
            algorithms=["RS256"],
            audience=settings.github_oidc_audience,
            issuer=settings.github_oidc_issuer,
            leeway=_LEEWAY_S,
            options={"require": list(_CLAIMS)},
        )
    except jwt.PyJWTError as error:
        log.warning("refused a job's token: %s", error)
        raise ProblemError(401, "bad-job-token", f"this is no token for this service: {error}") from error
    return claims


def rule_for(claims: dict[str, Any], rules: tuple[OidcRule, ...]) -> OidcRule:
    """The rule that lets this job in. Raises ProblemError 403 `job-not-allowed`."""
    for rule in rules:
        if _fits(claims, rule):
            return rule
    said = ", ".join(f"{name}={one_line(str(claims[name]), 200)}" for name in ("repository", "ref", "event_name"))
    workflow = one_line(str(claims["workflow_ref"]), 200)
    log.warning("refused a job that no rule allows: %s, workflow %s", said, workflow)
    raise ProblemError(
        403, "job-not-allowed", f"no rule of KERNELGATE_GITHUB_OIDC_ALLOW lets this job in: {said}, workflow {workflow}"
    )


def _fits(claims: dict[str, Any], rule: OidcRule) -> bool:
    workflow = str(claims["workflow_ref"]).partition("@")[0]
    return (
        str(claims["repository"]).lower() == rule.repository.lower()
        and workflow.lower() == f"{rule.repository}/.github/workflows/{rule.workflow}".lower()
        and str(claims["event_name"]) in rule.events
        and any(fnmatchcase(str(claims["ref"]), pattern) for pattern in rule.refs)
    )


def exchange(session: Session, *, claims: dict[str, Any], rule: OidcRule, settings: Settings) -> tuple[Token, str]:
    """A token of scope submit for the rule's project, and its secret; it ends by itself."""
    project = session.exec(select(Project).where(Project.slug == rule.project)).first()
    if project is None:
        raise not_found("project", rule.project, field="project")
    _forget_ended(session)
    note = one_line(f"job {claims.get('run_id', '?')} of {claims['repository']} at {claims['ref']}", 200)
    token, secret = issue_token(session, scope=Scope.SUBMIT, project_id=project.id, note=note)
    token.expires_at = now() + timedelta(seconds=settings.github_job_token_s)
    session.flush()
    return token, secret


def _forget_ended(session: Session) -> None:
    ended = select(Token.id).where(col(Token.expires_at) < now())
    for table in (BrowserSession, SignInCode):
        session.exec(delete(table).where(col(table.token_id).in_(ended)))
    session.exec(delete(Token).where(col(Token.expires_at) < now()))
