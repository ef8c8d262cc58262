"""Two commits -> the revisions that changed between them, each with what it is compared with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cli.bundles import Folder, read_folder, read_suite
from cli.ci.git import Checkout
from cli.errors import CliError
from contract.bundle import MANIFEST
from contract.manifest import ManifestError
from contract.repository import FILE, RepositoryConfig, parse_repository
from contract.suite import Suite


@dataclass(frozen=True)
class Change:
    """A revision's folder that is new or has another bundle than at the base. `base`: None for the first of a kernel.
    `place`: the folder's path in the repository."""

    kernel: str
    place: str
    head: Folder
    base: Folder | None


@dataclass(frozen=True)
class Changes:
    """`suites`: (base's, head's) of every kernel of the head whose suite this change edits or brings."""

    revisions: tuple[Change, ...]
    suites: tuple[tuple[Suite | None, Suite], ...]
    removed: tuple[str, ...]


def find_changes(checkout: Checkout, *, base: str, head: str, scratch: Path) -> Changes:
    """Both sides are exported below `scratch`: what is judged is what the commits hold. Raises CliError."""
    config = _config(checkout, base) or _config(checkout, head) or RepositoryConfig()
    sides = {commit: scratch / name for name, commit in (("base", base), ("head", head))}
    for commit, folder in sides.items():
        folder.mkdir()
        checkout.export(commit, config.kernels, folder)
    kernels = {side: list(_kernels(folder, config)) for side, folder in sides.items()}
    revisions: list[Change] = []
    suites: list[tuple[Suite | None, Suite]] = []
    for place in kernels[head]:
        before, after = sides[base] / place, sides[head] / place
        suite = read_suite(after)
        base_suite = read_suite(before) if place in kernels[base] else None
        if base_suite is None or base_suite.digest != suite.digest:
            suites.append((base_suite, suite))
        revisions += _changes_of(place, before=before, after=after, base_suite=base_suite, suite=suite)
    removed = tuple(place for place in kernels[base] if place not in kernels[head])
    return Changes(revisions=tuple(revisions), suites=tuple(suites), removed=removed)


def _config(checkout: Checkout, commit: str) -> RepositoryConfig | None:
    text = checkout.read(commit, FILE)
    if text is None:
        return None
    try:
        return parse_repository(text)
    except ManifestError as error:
        raise CliError(f"at {commit[:12]}: {error}") from error


def _kernels(side: Path, config: RepositoryConfig) -> Iterator[str]:
    for root in config.kernels:
        for file in sorted((side / root).glob("*/suite.toml")):
            yield f"{root}/{file.parent.name}"


def _changes_of(place: str, *, before: Path, after: Path, base_suite: Suite | None, suite: Suite) -> Iterator[Change]:
    current = (
        next((name for name in reversed(base_suite.revisions) if (before / name).is_dir()), None)
        if base_suite
        else None
    )
    for manifest in sorted(after.glob(f"*/{MANIFEST}")):
        name = manifest.parent.name
        head = read_folder(manifest.parent)
        appended = base_suite is not None and name in suite.revisions and name not in base_suite.revisions
        known = (before / name / MANIFEST).is_file()
        against = name if known and not appended else current
        base = read_folder(before / against) if against else None
        if base is None or base.digest != head.digest:
            yield Change(kernel=suite.kernel, place=f"{place}/{name}", head=head, base=base)
