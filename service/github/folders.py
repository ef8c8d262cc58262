"""Kernels' folders in a tree, and the bundle of each revision in them."""

from dataclasses import dataclass

from contract import bundle
from contract.bundle import BundleError, Files
from contract.manifest import Manifest, ManifestError, parse_manifest, parse_suite
from contract.own_operator import FILE as OWN_OPERATOR
from contract.repository import belongs_to_revision
from contract.suite import Suite
from service.github.plans import Version
from service.github.repository import Entry, GoneError
from service.github.trees import Trees

SUITE = "suite.toml"


class FolderError(Exception):
    """A folder that is no revision, or a suite that can't be read; `path` is where, in the repository."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.path = path


@dataclass(frozen=True, kw_only=True)
class KernelFolder:
    """`path`: in the repository; `files`: everything below it, by its path from there; `commit`: where it was read."""

    path: str
    commit: str
    files: dict[str, Entry]

    def revisions(self) -> dict[str, None]:
        """Its revisions' folders, in the order of their names."""
        return {
            name.partition("/")[0]: None
            for name in sorted(self.files)
            if name.endswith(f"/{bundle.MANIFEST}") and name.count("/") == 1
        }

    def differs(self, other: "KernelFolder") -> bool:
        return {name: entry.sha for name, entry in self.files.items()} != {
            name: entry.sha for name, entry in other.files.items()
        }


@dataclass(frozen=True, kw_only=True)
class Bundled:
    version: Version
    manifest: Manifest
    files: Files


async def kernel_folders(trees: Trees, *, commit: str, tree: str, path: str) -> dict[str, KernelFolder]:
    """The kernels below the tree that is at `path`, by their folder's path in the repository."""
    found: dict[str, dict[str, Entry]] = {}
    for name, entry in (await trees.files(tree)).items():
        folder, _, rest = name.partition("/")
        if rest:
            found.setdefault(f"{path}/{folder}", {})[rest] = entry
    return {
        folder: KernelFolder(path=folder, commit=commit, files=files)
        for folder, files in found.items()
        if SUITE in files
    }


async def read_suite(trees: Trees, folder: KernelFolder) -> Suite:
    """Raises FolderError."""
    path = f"{folder.path}/{SUITE}"
    try:
        text = (await trees.read(folder.files[SUITE])).decode()
        beside = folder.files.get(OWN_OPERATOR)
        operator = (await trees.read(beside)).decode() if beside else None
        return parse_suite(text, operator=operator, file=path)
    except (ManifestError, UnicodeDecodeError, GoneError) as error:
        raise FolderError(path, str(error)) from error


async def read_bundle(trees: Trees, folder: KernelFolder, name: str) -> Bundled:
    """The bundle of the revision in folder `name`, as the command line would send it. Raises FolderError."""
    path = f"{folder.path}/{name}"
    try:
        manifest_entry = folder.files[f"{name}/{bundle.MANIFEST}"]
        raw = await trees.read(manifest_entry)
        manifest = parse_manifest(raw.decode(), file=f"{path}/{bundle.MANIFEST}")
        entries = _entries(folder, name, manifest)
        _check_size(path, entries)
        files = {bundle.MANIFEST: raw} | {inside: await trees.read(entry) for inside, entry in entries.items()}
        bundle.check(files)
    except (ManifestError, UnicodeDecodeError, BundleError, GoneError) as error:
        raise FolderError(f"{path}/{bundle.MANIFEST}", f"{path}: {error}") from error
    version = Version(
        folder=path,
        commit=folder.commit,
        digest=bundle.digest(files),
        label=manifest.label,
        source=f"{path}/{manifest.source}",
    )
    return Bundled(version=version, manifest=manifest, files=files)


async def same_revision(trees: Trees, base: KernelFolder, head: KernelFolder, name: str) -> bool:
    """Whether the revision in folder `name` is the same bundle on both sides, told from the trees alone."""
    if name not in base.revisions() or name not in head.revisions():
        return False
    sides = []
    for folder in (base, head):
        entry = folder.files[f"{name}/{bundle.MANIFEST}"]
        try:
            manifest = parse_manifest((await trees.read(entry)).decode())
            entries = _entries(folder, name, manifest)
        except (ManifestError, UnicodeDecodeError, GoneError, BundleError):
            # Whatever is wrong is wrong on both sides only if nothing in the folder changed.
            entries = {inside: each for inside, each in folder.files.items() if inside.startswith(f"{name}/")}
        sides.append({bundle.MANIFEST: entry.sha} | {inside: each.sha for inside, each in entries.items()})
    return sides[0] == sides[1]


def _entries(folder: KernelFolder, name: str, manifest: Manifest) -> dict[str, Entry]:
    found = {}
    for path, entry in folder.files.items():
        inside = path.removeprefix(f"{name}/")
        if inside != path and belongs_to_revision(inside):
            found[inside] = entry
    for shared in manifest.shared:
        if shared in found:
            raise BundleError("bad_manifest", f"shared {shared} is a file of the revision as well")
        if shared not in folder.files:
            raise BundleError("bad_manifest", f"shared {shared} is not a file in {folder.path}")
        found[shared] = folder.files[shared]
    return found


def _check_size(path: str, entries: dict[str, Entry]) -> None:
    """Before anything is read."""
    size = sum(entry.bytes for entry in entries.values())
    if size > bundle.MAX_BYTES or len(entries) >= bundle.MAX_FILES:
        raise BundleError(
            "too_large",
            f"{path}: {len(entries)} files, {size} bytes; at most {bundle.MAX_FILES} and {bundle.MAX_BYTES}",
        )
