"""One repository on GitHub, as far as the gate needs it: git objects, check runs, pull requests, people."""

import base64
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar, cast

import httpx
from gidgethub.httpx import GitHubAPI

from service.github.client import Github, GithubRefusedError
from service.github.tables import GithubRepository

CHECK_NAME = "kernelgate"
MAX_BLOB_BYTES = 1 << 20
# In memory, about.
_ENTRY_BYTES = 500
_WRITERS = frozenset({"admin", "write"})  # `maintain` is reported as write

_T = TypeVar("_T")


class GoneError(Exception):
    """A commit, tree or branch that isn't there (any more): pushed away, or never was."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One entry of a tree. `kind`: blob, tree, or commit (a submodule); `link`: a symbolic link."""

    sha: str
    kind: str
    link: bool
    bytes: int


@dataclass(frozen=True, kw_only=True)
class Tree:
    """`truncated`: GitHub left entries out."""

    entries: dict[str, Entry]
    truncated: bool


@dataclass(frozen=True, kw_only=True)
class Pull:
    """`as_of`: when GitHub last changed it, where it says so."""

    number: int
    state: str
    head_sha: str
    base_ref: str
    fork: bool
    as_of: datetime | None


@dataclass(frozen=True, kw_only=True)
class Compared:
    """Two commits. `base`, `merge_base`: commit ids; `ahead`: commits that only the head contains, `behind`: only the
    base."""

    base: str
    merge_base: str
    ahead: int
    behind: int


class Repository:
    def __init__(self, github: Github, row: GithubRepository) -> None:
        self._github = github
        self._row = row
        self._path = f"/repos/{row.full_name}"

    async def compare(self, base: str, head: str) -> Compared:
        """Commits or branches. Raises GoneError where one is unknown or they have no common ancestor."""
        url = self._path + "/compare/{basehead}?per_page=1"
        found = await self._get(url, {"basehead": f"{base}...{head}"})
        return Compared(
            base=found["base_commit"]["sha"],
            merge_base=found["merge_base_commit"]["sha"],
            ahead=int(found["ahead_by"]),
            behind=int(found["behind_by"]),
        )

    async def commit(self, sha: str) -> tuple[str, list[str]]:
        """(its tree, its parents)."""
        found = await self._get(f"{self._path}/git/commits/{sha}")
        return found["tree"]["sha"], [parent["sha"] for parent in found["parents"]]

    async def root(self, sha: str) -> str:
        """The commit's tree. It may be gone since it was read last."""
        return await self._object(f"commit {sha}", lambda: self._root(sha), lambda _: _ENTRY_BYTES)

    async def tree(self, sha: str, *, recursive: bool) -> Tree:
        return await self._object(
            f"tree {sha} {recursive}",
            lambda: self._tree(sha, recursive=recursive),
            lambda tree: _ENTRY_BYTES * (1 + len(tree.entries)),
        )

    async def blob(self, sha: str) -> bytes:
        return await self._object(f"blob {sha}", lambda: self._blob(sha), lambda data: _ENTRY_BYTES + len(data))

    async def _root(self, sha: str) -> str:
        return (await self.commit(sha))[0]

    async def _tree(self, sha: str, *, recursive: bool) -> Tree:
        found = await self._get(f"{self._path}/git/trees/{sha}" + ("?recursive=1" if recursive else ""))
        entries = {
            each["path"]: Entry(
                sha=each["sha"], kind=each["type"], link=each["mode"] == "120000", bytes=each.get("size") or 0
            )
            for each in found["tree"]
        }
        return Tree(entries=entries, truncated=bool(found.get("truncated")))

    async def _blob(self, sha: str) -> bytes:
        found = await self._get(f"{self._path}/git/blobs/{sha}")
        if found["encoding"] == "base64":
            return base64.b64decode(found["content"])
        return str(found["content"]).encode()

    async def pull(self, number: int) -> Pull:
        return pull_of(await self._get(f"{self._path}/pulls/{number}"))

    async def pulls_of(self, sha: str) -> list[Pull]:
        """Open pull requests whose head `sha` is, forks' included."""
        found = await self._get(f"{self._path}/commits/{sha}/pulls")
        return [pull for pull in map(pull_of, found) if pull.state == "open" and pull.head_sha == sha]

    async def may_write(self, login: str) -> bool:
        try:
            found = await self._get(self._path + "/collaborators/{login}/permission", {"login": login})
        except GoneError:
            return False
        return found["permission"] in _WRITERS

    async def create_check(self, body: dict[str, Any]) -> int:
        answer = await self._use(lambda api: api.post(f"{self._path}/check-runs", data=body))
        return int(answer["id"])

    async def update_check(self, check_run_id: int, body: dict[str, Any]) -> None:
        await self._use(lambda api: api.patch(f"{self._path}/check-runs/{check_run_id}", data=body))

    async def find_check(self, head_sha: str, external_id: str) -> int | None:
        """The check run that an earlier, unheard answer made."""
        # Not only the latest: another pull request over the commit may have made one since.
        url = f"{self._path}/commits/{head_sha}/check-runs?check_name={CHECK_NAME}&filter=all&per_page=100"
        found = await self._get(url)
        return next((int(run["id"]) for run in found["check_runs"] if run.get("external_id") == external_id), None)

    async def _object(self, name: str, read: Callable[[], Awaitable[_T]], weigh: Callable[[_T], int]) -> _T:
        key = (self._row.id, name)
        held = self._github.objects.get(key)
        if held is None:
            read_now = await read()
            held = (read_now, weigh(read_now))
            self._github.objects.put(key, held)
        return cast("_T", held[0])

    async def _get(self, url: str, variables: dict[str, str] | None = None) -> Any:
        try:
            return await self._use(lambda api: api.getitem(url, variables or {}))
        except GithubRefusedError as error:
            if error.status in {httpx.codes.NOT_FOUND, httpx.codes.GONE, httpx.codes.UNPROCESSABLE_ENTITY}:
                raise GoneError(str(error)) from error
            raise

    async def _use(self, use: Callable[[GitHubAPI], Awaitable[_T]]) -> _T:
        row = self._row
        return await self._github.on_repository(installation_id=row.installation_id, repository_id=row.id, use=use)


def pull_of(data: dict[str, Any]) -> Pull:
    """A pull request, in an answer of the API or in a payload. One whose head repository is gone counts as a fork's."""
    head, base = data["head"], data["base"]
    head_repository = (head.get("repo") or {}).get("id")
    return Pull(
        number=int(data["number"]),
        state=str(data.get("state", "open")),
        head_sha=str(head["sha"]),
        base_ref=str(base["ref"]),
        fork=head_repository is None or head_repository != base["repo"]["id"],
        as_of=datetime.fromisoformat(str(data["updated_at"])) if data.get("updated_at") else None,
    )
