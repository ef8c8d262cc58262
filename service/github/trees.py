"""Trees of a commit: folders found without listing a repository, files read once."""

from dataclasses import dataclass, field

from service.github.repository import MAX_BLOB_BYTES, Entry, GoneError, Repository

# Folders below which GitHub listed only a part are listed one by one, up to here.
_MAX_FOLDERS = 2000
# Files read for one change: nobody's pull request may use up GitHub's rate limit.
_MAX_FILES = 2000


@dataclass
class Trees:
    """Reads through `repository`, remembering what it read: objects never change."""

    repository: Repository
    _blobs: dict[str, bytes] = field(default_factory=dict)
    _listings: dict[str, dict[str, Entry]] = field(default_factory=dict)

    async def root(self, commit: str) -> str:
        return await self.repository.root(commit)

    async def find(self, tree: str, path: str) -> Entry | None:
        """What is at `path` below the tree, or None."""
        entry = Entry(sha=tree, kind="tree", link=False, bytes=0)
        for part in path.split("/"):
            if entry.kind != "tree":
                return None
            listed = (await self.repository.tree(entry.sha, recursive=False)).entries.get(part)
            if listed is None:
                return None
            entry = listed
        return entry

    async def files(self, tree: str) -> dict[str, Entry]:
        """Everything below the tree but folders, by its path."""
        if tree not in self._listings:
            self._listings[tree] = await self._list(tree)
        return self._listings[tree]

    async def read(self, entry: Entry) -> bytes:
        """Raises GoneError for what is no file, too large for one of a revision, or one too many."""
        if entry.kind != "blob" or entry.link or entry.bytes > MAX_BLOB_BYTES:
            raise GoneError("a link, a submodule or a file too large")
        if entry.sha not in self._blobs:
            if len(self._blobs) >= _MAX_FILES:
                raise GoneError(f"the change touches over {_MAX_FILES} files of kernels: split it")
            self._blobs[entry.sha] = await self.repository.blob(entry.sha)
        return self._blobs[entry.sha]

    async def _list(self, tree: str) -> dict[str, Entry]:
        whole = await self.repository.tree(tree, recursive=True)
        if not whole.truncated:
            return {path: entry for path, entry in whole.entries.items() if entry.kind != "tree"}
        found: dict[str, Entry] = {}
        folders = [("", tree)]
        for prefix, sha in folders:
            for name, entry in (await self.repository.tree(sha, recursive=False)).entries.items():
                if entry.kind == "tree":
                    folders.append((f"{prefix}{name}/", entry.sha))
                else:
                    found[prefix + name] = entry
            if len(folders) > _MAX_FOLDERS:
                raise GoneError(f"over {_MAX_FOLDERS} folders: name the kernels' folder more narrowly")
        return found
