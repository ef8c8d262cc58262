"""What a CI job's checkout says of itself: its commit, the one it is compared with, and their files."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.errors import CliError

_HISTORY = "check the whole history out (actions/checkout: fetch-depth: 0)"


@dataclass(frozen=True)
class Checkout:
    """A git repository. Nothing in it is changed."""

    path: Path

    def commit(self, name: str) -> str:
        """The full id of the commit that `name` means. Raises CliError."""
        return self._git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", what=f"there is no commit {name}")

    def merge_base(self, one: str, other: str) -> str:
        return self._git("merge-base", one, other, what=f"{one} and {other} have no common ancestor here")

    def read(self, commit: str, path: str) -> str | None:
        """A file at a commit, or None."""
        done = self._run("show", f"{commit}:{path}")
        return done.stdout.decode() if done.returncode == 0 else None

    def export(self, commit: str, folders: Iterable[str], to: Path) -> None:
        """Write the folders' files at a commit below `to`; folders that it lacks are left out."""
        there = [each for each in folders if self._has(commit, each)]
        if not there:
            return
        done = self._run("archive", "--format=tar", commit, "--", *there)
        done.check_returncode()
        with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
            archive.extractall(to, filter="data")

    def _has(self, commit: str, folder: str) -> bool:
        return self._run("cat-file", "-e", f"{commit}:{folder}").returncode == 0

    def _git(self, *arguments: str, what: str) -> str:
        done = self._run(*arguments)
        if done.returncode != 0:
            raise CliError(f"{self.path}: {what}", hint=_HISTORY)
        return done.stdout.decode().strip()

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        git = shutil.which("git")
        if git is None:
            raise CliError("git is not on PATH", hint="it says what a commit changed")
        return subprocess.run([git, *arguments], cwd=self.path, capture_output=True, check=False)


def base_of(checkout: Checkout, head: str, *, environ: Mapping[str, str]) -> str:
    """The commit that GitHub Actions' event compares `head` with: a queue's base, the merge base with a pull request's
    branch, or what a push moved from. Raises CliError for any other event."""
    event = environ.get("GITHUB_EVENT_NAME", "")
    payload = _payload(environ)
    if event == "merge_group":
        return checkout.commit(str(payload["merge_group"]["base_sha"]))
    if event == "pull_request":
        return checkout.merge_base(checkout.commit(str(payload["pull_request"]["base"]["sha"])), head)
    if event == "push":
        before = str(payload.get("before", ""))
        return checkout.commit(before if before.strip("0") else f"{head}^")
    if event == "pull_request_target":
        raise CliError(
            "pull_request_target runs with the repository's rights on what a fork may have written; never gate by it",
            hint="use pull_request, and the GitHub App for forks",
        )
    raise CliError(
        f"what to compare with does not follow from the event {event!r}" if event else "what to compare with?",
        hint="name the commit: --base origin/main",
    )


def _payload(environ: Mapping[str, str]) -> dict[str, Any]:
    try:
        payload: dict[str, Any] = json.loads(Path(environ["GITHUB_EVENT_PATH"]).read_text())
    except (KeyError, OSError, ValueError):
        return {}
    return payload
