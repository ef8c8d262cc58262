"""A GitHub for `bench_webhooks.py`: the tests' own, over a repository that is made up as it is asked for, so that it
takes little of the cores that are measured. Commit n is pull request n's head; every tenth changes a kernel."""

import asyncio
import socket
from hashlib import sha1
from typing import Any, cast

import uvicorn
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from tests.service.github.described import Described
from tests.service.github.fake import APP_ID, FakeGithub, FakeRepository
from tests.service.github.gated import base_files, revision
from tests.service.github.gitrepo import GitRepo

__all__ = ["APP_ID", "CHANGES_A_KERNEL", "head_of", "serve"]

MAIN = "f" * 40
CHANGES_A_KERNEL = 10
# GitHub's own answers take a tenth of a second and more.
ANSWERS_IN_S = 0.1


def head_of(number: int) -> str:
    return f"{number:040x}"


class _Unread:
    """Requests are held to GitHub's description by the tests; here it would take a core."""

    def problems(self, *_: Any) -> list[str]:
        return []


class _MadeUp:
    """Answers what the tests' GitHub asks of git, for any commit."""

    def __init__(self) -> None:
        self._files = {name: str(text).encode() for name, text in base_files().items()}
        self._blobs: dict[str, bytes] = {}

    def git(self, *arguments: str) -> str:
        match arguments:
            case ("rev-parse", "--verify", name):
                commit = name.removesuffix("^{commit}")
                return MAIN if commit == "main" else commit
            case ("rev-list", *_, span):
                return "0 0" if span == f"{MAIN}...{MAIN}" else "0 1"
            case ("merge-base", *_):
                return MAIN
            case ("cat-file", "commit", commit):
                return f"tree {commit}\nparent {MAIN}\n"
            case ("ls-tree", "-l", *recursive, tree):
                return "\n".join(self._entries(tree, recursive=bool(recursive)))
        raise ValueError(f"git {arguments}")

    def raw(self, *arguments: str) -> bytes:
        return self._blobs[arguments[-1]]

    def _entries(self, tree: str, *, recursive: bool) -> list[str]:
        """A root has its commit's id; the tree of kernels that of the commit which changed it last, with `e` before."""
        if not recursive:
            changed = tree != MAIN and int(tree, 16) % CHANGES_A_KERNEL == 0
            kernels = f"e{tree[1:]}" if changed else f"e{MAIN[1:]}"
            return [
                self._blob(".kernelgate.toml", self._files[".kernelgate.toml"]),
                f"040000 tree {kernels} -\tkernels",
            ]
        files = dict(self._files)
        if tree != f"e{MAIN[1:]}":
            files |= {name: str(text).encode() for name, text in revision("v1_naive", f"of {tree}").items()}
        inside = {name.removeprefix("kernels/"): data for name, data in files.items() if name.startswith("kernels/")}
        return [self._blob(name, data) for name, data in inside.items()]

    def _blob(self, name: str, data: bytes) -> str:
        sha = sha1(data, usedforsecurity=False).hexdigest()
        self._blobs[sha] = data
        return f"100644 blob {sha} {len(data)}\t{name}"


class _Github(FakeGithub):
    """And says at /checks what came of each commit."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != "/checks":
            await asyncio.sleep(ANSWERS_IN_S)
            await super().__call__(scope, receive, send)
            return
        found: dict[str, list[str]] = {}
        for check in self.checks.values():
            found.setdefault(check["head_sha"], []).append(check.get("conclusion") or check["status"])
        await JSONResponse(found)(scope, receive, send)


def serve(listening: socket.socket, public_key: bytes) -> None:
    """Until the process ends."""
    github = _Github(cast("Described", _Unread()), public_key)
    git = cast("GitRepo", _MadeUp())
    github.add(FakeRepository(id=1, full_name="acme/kernels", installation=1, git=git))
    server = uvicorn.Server(uvicorn.Config(github, log_level="warning", ws="none", lifespan="off"))
    server.run(sockets=[listening])
