"""Commits made with git's plumbing, in a bare repository without a work tree."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

_WHO = {f"GIT_{role}_{field}": "test@example.org" for role in ("AUTHOR", "COMMITTER") for field in ("NAME", "EMAIL")}


class GitRepo:
    def __init__(self, path: Path) -> None:
        self.path = path
        subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", path], check=True)
        self._clock = 1_700_000_000

    def commit(
        self, files: Mapping[str, str | bytes | None], *parents: str, branch: str | None = None, message: str = "change"
    ) -> str:
        """The first parent's tree with `files` on top (None removes one, a path ending in / a folder)."""
        index = {"GIT_INDEX_FILE": str(self.path / "test-index")}
        (self.path / "test-index").unlink(missing_ok=True)
        if parents:
            self.git("read-tree", parents[0], env=index)
        for name, content in files.items():
            if content is None:
                paths = self.git("ls-files", "--cached", env=index).splitlines()
                gone = [path for path in paths if path == name or (name.endswith("/") and path.startswith(name))]
                lines = "".join(f"0 {'0' * 40}\t{path}\n" for path in gone)
                self.git("update-index", "--index-info", env=index, data=lines.encode())
                continue
            data = content.encode() if isinstance(content, str) else content
            blob = self.git("hash-object", "-w", "--stdin", data=data)
            self.git("update-index", "--add", "--cacheinfo", f"100644,{blob},{name}", env=index)
        tree = self.git("write-tree", env=index)
        self._clock += 1
        date = {"GIT_AUTHOR_DATE": f"{self._clock} +0000", "GIT_COMMITTER_DATE": f"{self._clock} +0000"}
        linked = [part for parent in parents for part in ("-p", parent)]
        sha = self.git("commit-tree", tree, *linked, "-m", message, env={**_WHO, **date})
        if branch:
            self.git("update-ref", f"refs/heads/{branch}", sha)
        return sha

    def git(self, *arguments: str, env: Mapping[str, str] | None = None, data: bytes = b"") -> str:
        """Raises CalledProcessError."""
        ran = subprocess.run(
            ["git", "-C", self.path, *arguments],
            input=data,
            capture_output=True,
            env={**os.environ, **(env or {})},
            check=True,
        )
        return ran.stdout.decode().strip()

    def raw(self, *arguments: str) -> bytes:
        ran = subprocess.run(["git", "-C", self.path, *arguments], capture_output=True, check=True)
        return ran.stdout
