"""GitHub's API as one App: installation tokens, renewed when they are needed, and what an error means."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

import gidgethub
import httpx
from gidgethub.apps import get_jwt
from gidgethub.httpx import GitHubAPI

from service.kept import Kept
from service.settings import Settings

USER_AGENT = "kernelgate"
# GitHub's tokens last an hour; none is used in its last minutes.
_TOKEN_SLACK_S = 300.0
_LONGEST_PAUSE_S = 900.0
# Git's objects never change, and pull requests share nearly all of them.
_KEPT_BYTES = 32 << 20

_T = TypeVar("_T")


class GithubRefusedError(Exception):
    """GitHub will not do it, however often it is asked."""

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status


class GithubAwayError(Exception):
    """GitHub is down, slow, or limits us. `pause_s`: how long it asked to be left alone."""

    def __init__(self, message: str, *, pause_s: float | None = None) -> None:
        super().__init__(message)
        self.pause_s = pause_s


def pause_after(tries: int, error: GithubAwayError | GithubRefusedError | None = None, *, first_s: float) -> float:
    """Seconds until the next try: doubling from `first_s` to 15 min, but not less than GitHub said, nor than 30 first
    pauses where it refused, which people may mend."""
    grown = min(first_s * 2.0 ** min(max(tries, 0), 20), _LONGEST_PAUSE_S)
    if isinstance(error, GithubRefusedError):
        return max(30 * first_s, grown)
    return max((error and error.pause_s) or 0.0, grown)


# What no one foresaw: a fault of the service's own, or something of it that is away, such as the store. Half an hour.
UNFORESEEN_TRIES = 10


def own_fault(error: Exception, *, where: str) -> str:
    """What people may read of an error that nobody foresaw: its text is for the log."""
    return f"the service itself failed ({type(error).__name__}); its log says more at {where}"


def tries_in(seconds: float) -> int:
    """How many tries `pause_after` makes in that time, about."""
    return 9 + int(seconds / _LONGEST_PAUSE_S)


@dataclass(kw_only=True)
class _Token:
    secret: str
    expires_at: float


class Github:
    """One App on one GitHub. Made in the event loop that uses it. `objects`: of git, with their size, by repository."""

    def __init__(self, settings: Settings, *, transport: httpx.AsyncBaseTransport | None = None) -> None:
        if settings.github_app_id is None or settings.github_private_key is None:
            raise ValueError("no GitHub App is set up")
        self.app_id = settings.github_app_id
        self._private_key = settings.github_private_key
        self._url = settings.github_url
        self._http = httpx.AsyncClient(
            timeout=settings.github_timeout_s, transport=transport, follow_redirects=True, trust_env=transport is None
        )
        self.objects: Kept[tuple[Any, int]] = Kept(_KEPT_BYTES, weigh=lambda held: held[1])
        self._tokens: dict[tuple[int, int], _Token] = {}
        # What is done side by side takes one new token: signing for it takes a core a tenth of a second.
        self._renewing: defaultdict[tuple[int, int], asyncio.Lock] = defaultdict(asyncio.Lock)

    async def close(self) -> None:
        await self._http.aclose()

    async def installation_of(self, full_name: str) -> int:
        """The installation that GitHub says `full_name` has; GithubRefusedError where it has none."""
        jwt = self._jwt()
        found = await self._call(lambda: self._api().getitem(f"/repos/{full_name}/installation", jwt=jwt))
        return int(found["id"])

    async def on_repository(
        self, *, installation_id: int, repository_id: int, use: Callable[[GitHubAPI], Awaitable[_T]]
    ) -> _T:
        """`use` with a token of that one repository. A token that GitHub no longer takes is replaced once."""
        key = (installation_id, repository_id)
        try:
            return await self._use(key, use)
        except GithubRefusedError as error:
            if error.status != httpx.codes.UNAUTHORIZED:
                raise
            self._tokens.pop(key, None)
            return await self._use(key, use)

    async def _use(self, key: tuple[int, int], use: Callable[[GitHubAPI], Awaitable[_T]]) -> _T:
        async with self._renewing[key]:
            token = self._tokens.get(key)
            if token is None or token.expires_at - time.time() < _TOKEN_SLACK_S:
                token = self._tokens[key] = await self._new_token(*key)
        api = self._api(token.secret)
        return await self._call(lambda: use(api))

    async def _new_token(self, installation_id: int, repository_id: int) -> _Token:
        jwt = self._jwt()
        answer = await self._call(
            lambda: self._api().post(
                f"/app/installations/{installation_id}/access_tokens",
                data={"repository_ids": [repository_id]},
                jwt=jwt,
            )
        )
        expires = datetime.fromisoformat(answer["expires_at"])
        return _Token(secret=answer["token"], expires_at=expires.timestamp())

    def _jwt(self) -> str:
        # Read each time: the key may be replaced while the service runs.
        return get_jwt(app_id=str(self.app_id), private_key=self._private_key.read_bytes(), expiration=540)

    def _api(self, token: str | None = None) -> GitHubAPI:
        return GitHubAPI(self._http, USER_AGENT, oauth_token=token, base_url=self._url)

    async def _call(self, call: Callable[[], Awaitable[_T]]) -> _T:
        try:
            return await call()
        except (gidgethub.GitHubBroken, httpx.HTTPError, OSError, ValueError) as error:
            raise GithubAwayError(f"GitHub is away: {error or type(error).__name__}", pause_s=_asked(error)) from error
        except gidgethub.RateLimitExceeded as error:
            reset = error.rate_limit.reset_datetime
            wait_s = (reset - datetime.now(UTC)).total_seconds() + 1.0
            message = f"GitHub's rate limit is used up until {reset:%H:%M:%S} UTC"
            raise GithubAwayError(message, pause_s=wait_s) from error
        except gidgethub.HTTPException as error:
            status = int(error.status_code)
            pause_s = _asked(error)
            if status == httpx.codes.TOO_MANY_REQUESTS or pause_s is not None:
                raise GithubAwayError(
                    f"GitHub limits us: {error}", pause_s=60.0 if pause_s is None else pause_s
                ) from error
            raise GithubRefusedError(f"GitHub refused: {error}", status=status) from error


def _asked(error: Exception) -> float | None:
    """Retry-After, which a secondary rate limit and an outage may bring."""
    headers: Any = getattr(error, "headers", None) or {}
    text = str(headers.get("retry-after", ""))
    return float(text) if text.isdigit() else None
