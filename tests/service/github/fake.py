"""GitHub, as far as the gate uses it: real git trees, real tokens, and every request held to GitHub's description."""

import base64
import itertools
import json
import re
import secrets
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import jwt
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from tests.service.github.described import Described
from tests.service.github.gitrepo import GitRepo

APP_ID = 4711


@dataclass
class FakeRepository:
    id: int
    full_name: str
    installation: int
    git: GitRepo
    writers: set[str] = field(default_factory=lambda: {"maintainer"})
    pulls: dict[int, dict[str, Any]] = field(default_factory=dict)


@dataclass
class Trouble:
    """An answer that comes instead of the right one, `times` times, where `at` is in "METHOD path"."""

    at: str
    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: dict[str, Any] = field(default_factory=lambda: {"message": "trouble"})
    times: int = 1
    after: bool = False  # done all the same, and the answer lost


class _AnswerError(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class FakeGithub:
    """An ASGI application. `violations`: what requests had against GitHub's description."""

    def __init__(self, described: Described, public_key: bytes) -> None:
        self._described = described
        self._public_key = public_key
        self._lock = threading.Lock()
        self._numbers = itertools.count(9_000_000_001)
        self.repositories: dict[str, FakeRepository] = {}
        self.checks: dict[int, dict[str, Any]] = {}
        self.requests: list[str] = []
        self.violations: list[str] = []
        self.troubles: list[Trouble] = []
        self.tokens: dict[str, tuple[int, list[int]]] = {}
        self.token_life_s = 3600.0
        self.truncate_trees = False

    def add(self, repository: FakeRepository) -> FakeRepository:
        self.repositories[repository.full_name] = repository
        return repository

    def checks_of(self, head_sha: str) -> list[dict[str, Any]]:
        """Oldest first."""
        return [check for _, check in sorted(self.checks.items()) if check["head_sha"] == head_sha]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return
        request = Request(scope, receive)
        body = await request.body()
        path = scope["raw_path"].decode()
        with self._lock:
            response = self._answer(request, path, body)
        await response(scope, receive, send)

    def _answer(self, request: Request, path: str, body: bytes) -> Response:
        line = f"{request.method} {path}"
        self.requests.append(line)
        self.violations += self._described.problems(request.method, path, request.url.query, body)
        trouble = next((each for each in self.troubles if each.at in line and each.times > 0), None)
        if trouble is not None:
            trouble.times -= 1
            if not trouble.after:
                return JSONResponse(trouble.body, trouble.status, trouble.headers)
        try:
            status, answer = self._route(request, path, json.loads(body) if body else {})
        except _AnswerError as error:
            return JSONResponse({"message": str(error)}, error.status)
        except subprocess.CalledProcessError:
            return JSONResponse({"message": "Not Found"}, 404)
        if trouble is not None:
            return JSONResponse(trouble.body, trouble.status, trouble.headers)
        return JSONResponse(answer, status)

    def _route(self, request: Request, path: str, body: Any) -> tuple[int, Any]:
        secret = request.headers.get("authorization", "").partition(" ")[2]
        if made := re.fullmatch(r"/app/installations/(\d+)/access_tokens", path):
            return self._make_token(secret, int(made[1]), body)
        found = re.fullmatch(r"/repos/([^/]+/[^/]+)/(.+)", path)
        repository = self.repositories.get(found[1]) if found else None
        if found is None or repository is None:
            raise _AnswerError(404, "Not Found")
        if found[2] == "installation":
            self._check_app(secret)
            return 200, {"id": repository.installation}
        if repository.id not in self.tokens.get(secret, (0, []))[1]:
            raise _AnswerError(401, "Bad credentials")
        for pattern, handle in _ROUTES:
            matched = re.fullmatch(pattern, f"{request.method} {found[2]}")
            if matched:
                return handle(self, repository, matched, body, request)
        raise _AnswerError(404, "Not Found")

    def _check_app(self, secret: str) -> None:
        try:
            claims = jwt.decode(secret, self._public_key, algorithms=["RS256"], issuer=str(APP_ID))
        except jwt.InvalidTokenError as error:
            raise _AnswerError(401, f"A JSON web token could not be decoded: {error}") from error
        if claims["exp"] - claims["iat"] > 600:
            raise _AnswerError(401, "'exp' is too far in the future")

    def _make_token(self, secret: str, installation: int, body: Any) -> tuple[int, Any]:
        self._check_app(secret)
        own = {each.id for each in self.repositories.values() if each.installation == installation}
        if not own:
            raise _AnswerError(404, "Not Found")
        if not set(body["repository_ids"]) <= own:
            raise _AnswerError(422, "There is at least one repository that does not exist or is not accessible")
        token = f"ghs_{secrets.token_hex(18)}"
        self.tokens[token] = (installation, body["repository_ids"])
        expires = datetime.fromtimestamp(time.time() + self.token_life_s, UTC)
        return 201, {"token": token, "expires_at": expires.strftime("%Y-%m-%dT%H:%M:%SZ"), "permissions": {}}

    # Each handler: (repository, match, body, request) -> (status, answer).

    def compare(self, repository: FakeRepository, match: Any, *_: Any) -> tuple[int, Any]:
        base, head = match[1].replace("%2F", "/").split("...")
        git = repository.git
        tip = git.git("rev-parse", "--verify", f"{base}^{{commit}}")
        behind, ahead = git.git("rev-list", "--left-right", "--count", f"{tip}...{head}").split()
        return 200, {
            "base_commit": {"sha": tip},
            "merge_base_commit": {"sha": git.git("merge-base", tip, head)},
            "ahead_by": int(ahead),
            "behind_by": int(behind),
            "commits": [],
            "files": [],
        }

    def commit(self, repository: FakeRepository, match: Any, *_: Any) -> tuple[int, Any]:
        lines = repository.git.git("cat-file", "commit", match[1]).splitlines()
        tree = next(line.split()[1] for line in lines if line.startswith("tree "))
        parents = [{"sha": line.split()[1]} for line in lines if line.startswith("parent ")]
        return 200, {"sha": match[1], "tree": {"sha": tree}, "parents": parents}

    def tree(self, repository: FakeRepository, match: Any, _body: Any, request: Request) -> tuple[int, Any]:
        recursive = "recursive" in request.query_params
        options = ["-r", "-t"] if recursive else []
        listed = repository.git.git("ls-tree", "-l", *options, match[1])
        entries = []
        for line in listed.splitlines():
            meta, _, path = line.partition("\t")
            mode, kind, sha, size = meta.split()
            entry: dict[str, Any] = {"path": path, "mode": mode, "type": kind, "sha": sha}
            entries.append({**entry, "size": int(size)} if kind == "blob" else entry)
        truncated = recursive and self.truncate_trees
        return 200, {"sha": match[1], "tree": entries[:1] if truncated else entries, "truncated": truncated}

    def blob(self, repository: FakeRepository, match: Any, *_: Any) -> tuple[int, Any]:
        data = repository.git.raw("cat-file", "blob", match[1])
        return 200, {"sha": match[1], "content": base64.encodebytes(data).decode(), "encoding": "base64"}

    def pull(self, repository: FakeRepository, match: Any, *_: Any) -> tuple[int, Any]:
        found = repository.pulls.get(int(match[1]))
        if found is None:
            raise _AnswerError(404, "Not Found")
        return 200, found

    def pulls_of(self, repository: FakeRepository, match: Any, *_: Any) -> tuple[int, Any]:
        return 200, [each for each in repository.pulls.values() if each["head"]["sha"] == match[1]]

    def permission(self, repository: FakeRepository, match: Any, *_: Any) -> tuple[int, Any]:
        return 200, {"permission": "write" if match[1] in repository.writers else "read", "role_name": ""}

    def create_check(self, repository: FakeRepository, _match: Any, body: Any, *_: Any) -> tuple[int, Any]:
        try:
            repository.git.git("rev-parse", "--verify", f"{body['head_sha']}^{{commit}}")
        except subprocess.CalledProcessError:
            raise _AnswerError(422, f"No commit found for SHA: {body['head_sha']}") from None
        number = next(self._numbers)
        self.checks[number] = {"id": number, "history": [], "annotations": [], **body}
        self._change(self.checks[number], body)
        return 201, {"id": number}

    def update_check(self, _repository: FakeRepository, match: Any, body: Any, *_: Any) -> tuple[int, Any]:
        check = self.checks.get(int(match[1]))
        if check is None:
            raise _AnswerError(404, "Not Found")
        self._change(check, body)
        return 200, {"id": check["id"]}

    def find_checks(self, _repository: FakeRepository, match: Any, _body: Any, request: Request) -> tuple[int, Any]:
        found = [{"id": each["id"], "external_id": each["external_id"]} for each in self.checks_of(match[1])]
        if request.query_params.get("filter", "latest") == "latest":
            found = found[-1:]
        return 200, {"total_count": len(found), "check_runs": found}

    def _change(self, check: dict[str, Any], body: dict[str, Any]) -> None:
        output = dict(body.get("output") or {})
        for text in (output.get("summary", ""), output.get("text", "")):
            if len(text.encode()) > 65_535:
                raise _AnswerError(422, "too long")
        check["annotations"] += output.pop("annotations", [])
        check.update({key: value for key, value in body.items() if key != "output"}, output=output)
        step = (check["status"], check.get("conclusion"))
        if not check["history"] or check["history"][-1] != step:
            check["history"].append(step)


_Handler = Callable[..., tuple[int, Any]]
_ROUTES: tuple[tuple[str, _Handler], ...] = (
    (r"GET compare/(.+)", FakeGithub.compare),
    (r"GET git/commits/(\w+)", FakeGithub.commit),
    (r"GET git/trees/(\w+)", FakeGithub.tree),
    (r"GET git/blobs/(\w+)", FakeGithub.blob),
    (r"GET pulls/(\d+)", FakeGithub.pull),
    (r"GET commits/(\w+)/pulls", FakeGithub.pulls_of),
    (r"GET collaborators/([^/]+)/permission", FakeGithub.permission),
    (r"POST check-runs", FakeGithub.create_check),
    (r"PATCH check-runs/(\d+)", FakeGithub.update_check),
    (r"GET commits/(\w+)/check-runs", FakeGithub.find_checks),
)
