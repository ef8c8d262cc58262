"""Two commits -> a plan: which revisions changed, what each is compared with, and what needs a person."""

import contextlib
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from contract.bundle import Files
from contract.manifest import ManifestError, check_constraints
from contract.repository import FILE, RepositoryConfig, parse_repository
from contract.suite import Suite
from service.github.folders import (
    Bundled,
    FolderError,
    KernelFolder,
    kernel_folders,
    read_bundle,
    read_suite,
    same_revision,
)
from service.github.plans import (
    OWN_CODE,
    Fault,
    Hold,
    Plan,
    Planned,
    Preview,
    Target,
    Version,
    current_folder,
    list_hold,
    suite_hold,
)
from service.github.repository import GoneError
from service.github.trees import Trees

# More say nothing that these don't.
_MOST_FAULTS = 200

# A new kernel is measured once its suite was accepted.
IsAccepted = Callable[[Hold], bool]


@dataclass(kw_only=True)
class Draft:
    """A plan while it is made."""

    trees: Trees
    is_accepted: IsAccepted
    targets: list[Target] = field(default_factory=list)
    previews: list[Preview] = field(default_factory=list)
    holds: list[Hold] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    suites: list[Suite] = field(default_factory=list)
    bundles: dict[str, Files] = field(default_factory=dict)

    async def version(self, folder: KernelFolder, name: str, suite: Suite) -> Version:
        """Raises FolderError."""
        bundled = await read_bundle(self.trees, folder, name)
        _check_operator(bundled, suite)
        self.bundles[bundled.version.digest] = bundled.files
        return bundled.version


def _check_operator(bundled: Bundled, suite: Suite) -> None:
    try:
        check_constraints(bundled.manifest, suite.operator_schema)
    except ManifestError as error:
        raise FolderError(f"{bundled.version.folder}/kernel.toml", str(error)) from error


async def read_config(trees: Trees, commit: str) -> RepositoryConfig | None:
    """.kernelgate.toml at a commit; None where there is none. Raises FolderError where it can't be read."""
    entry = await trees.find(await trees.root(commit), FILE)
    if entry is None:
        return None
    try:
        return parse_repository((await trees.read(entry)).decode())
    except (ManifestError, UnicodeDecodeError, GoneError) as error:
        raise FolderError(FILE, str(error)) from error


async def make_plan(
    trees: Trees,
    *,
    base: str | None,
    head: str,
    config: RepositoryConfig,
    is_accepted: IsAccepted = lambda _hold: False,
) -> Planned:
    """`base`, `head`: commits; no base: everything is new. Raises GoneError where one of them is gone."""
    draft = Draft(trees=trees, is_accepted=is_accepted)
    roots = {commit: await trees.root(commit) for commit in (base, head) if commit is not None}
    for path in config.kernels:
        sides: list[dict[str, KernelFolder]] = []
        entries = [await trees.find(roots[commit], path) if commit else None for commit in (base, head)]
        if entries[0] and entries[1] and entries[0].sha == entries[1].sha:
            continue
        for commit, entry in zip((base, head), entries, strict=True):
            listed = entry is not None and entry.kind == "tree"
            sides.append(
                await kernel_folders(trees, commit=commit or "", tree=entry.sha, path=path) if entry and listed else {}
            )
        for folder in sorted({*sides[0], *sides[1]}):
            await _plan_kernel(draft, base=sides[0].get(folder), head=sides[1].get(folder))
    plan = Plan(
        base_sha=base or "",
        targets=tuple(draft.targets),
        previews=tuple(draft.previews),
        holds=tuple(draft.holds),
        faults=tuple(draft.faults[:_MOST_FAULTS]),
        notes=tuple(draft.notes),
        suites=tuple(draft.suites),
    )
    return Planned(plan=plan, bundles=draft.bundles)


async def with_all_suites(planned: Planned, trees: Trees, *, head: str) -> Planned:
    """The plan with the suite of every kernel at the head that can be read."""
    try:
        config = await read_config(trees, head)
    except FolderError:
        return planned  # its notes say so
    root = await trees.root(head)
    suites: dict[str, Suite] = {}
    for path in config.kernels if config else ():
        entry = await trees.find(root, path)
        if entry is None or entry.kind != "tree":
            continue
        for folder in (await kernel_folders(trees, commit=head, tree=entry.sha, path=path)).values():
            with contextlib.suppress(FolderError):  # a fault of the plan where the push brought it
                suite = await read_suite(trees, folder)
                suites[suite.kernel] = suite
    plan = planned.plan.model_copy(update={"suites": tuple(suites.values())})
    return planned.model_copy(update={"plan": plan})


async def _plan_kernel(draft: Draft, *, base: KernelFolder | None, head: KernelFolder | None) -> None:
    try:
        if head is None:
            if base is not None:
                suite = await read_suite(draft.trees, base)
                said = f"the kernel {suite.kernel} is removed"
                draft.holds.append(Hold(subject="removed", kernel=suite.kernel, digest=suite.digest, said=said))
            return
        if base is not None and not head.differs(base):
            return
        head_suite = await read_suite(draft.trees, head)
        draft.suites.append(head_suite)
        base_suite = await _base_suite(draft, base) if base is not None else None
        if base is None or base_suite is None:
            await _plan_new_kernel(draft, head=head, suite=head_suite)
        else:
            await _plan_changed_kernel(draft, base=base, head=head, base_suite=base_suite, head_suite=head_suite)
    except FolderError as error:
        draft.faults.append(Fault(path=error.path, said=str(error)))


async def _base_suite(draft: Draft, base: KernelFolder) -> Suite | None:
    """None where the base's own suite can't be read: a change that mends it is like a new kernel."""
    try:
        return await read_suite(draft.trees, base)
    except FolderError as error:
        draft.notes.append(f"the base's suite can't be read ({error}): the change is taken for a new kernel")
        return None


async def _plan_new_kernel(draft: Draft, *, head: KernelFolder, suite: Suite) -> None:
    said = f"{suite.kernel} has no suite on the base: someone has to accept the one that it brings"
    if suite.operator_source is not None:
        said += f", and {OWN_CODE}"
    hold = Hold(subject="new_kernel", kernel=suite.kernel, digest=suite.digest, said=said)
    draft.holds.append(hold)
    current = current_folder(suite, head.revisions())
    if current is None:
        raise FolderError(f"{head.path}/suite.toml", f"{head.path}: none of the listed revisions has a folder")
    version = await draft.version(head, current, suite)
    if draft.is_accepted(hold):
        from_words = "nothing: the kernel is new"
        target = Target(kernel=suite.kernel, suite=suite, head=version, base=None, base_from=from_words)
        draft.targets.append(target)


async def _plan_changed_kernel(
    draft: Draft, *, base: KernelFolder, head: KernelFolder, base_suite: Suite, head_suite: Suite
) -> None:
    if head_suite.kernel != base_suite.kernel:
        raise FolderError(
            f"{head.path}/suite.toml",
            f"{head.path}: the kernel is {base_suite.kernel} on the base; a new name needs a new folder",
        )
    for name in head_suite.revisions:
        if name not in head.revisions():
            raise FolderError(f"{head.path}/suite.toml", f"{head.path}/suite.toml: {name} is listed and has no folder")
    if (hold := list_hold(base_suite, head_suite)) is not None:
        draft.holds.append(hold)
    targets = await _targets(draft, base=base, head=head, base_suite=base_suite, head_suite=head_suite)
    draft.targets += targets
    if (hold := suite_hold(base_suite, head_suite)) is not None:
        draft.holds.append(hold)
        # An operator is code that runs in the judge: none that the base lacks does before someone has said yes to it.
        if head_suite.operator_source in (None, base_suite.operator_source) or draft.is_accepted(hold):
            draft.previews += await _previews(draft, targets, head=head, suite=head_suite)


async def _targets(
    draft: Draft, *, base: KernelFolder, head: KernelFolder, base_suite: Suite, head_suite: Suite
) -> list[Target]:
    found: list[Target] = []
    current = current_folder(base_suite, base.revisions())
    for name in head.revisions():
        appended = name in head_suite.revisions and name not in base_suite.revisions
        known = name in base.revisions()
        if known and not appended and await same_revision(draft.trees, base, head, name):
            continue
        try:
            version = await draft.version(head, name, base_suite)
        except FolderError as error:
            draft.faults.append(Fault(path=error.path, said=str(error)))
            continue
        against = name if known and not appended else current
        base_version, base_from = await _base_version(draft, base, against, base_suite, new=against != name)
        if base_version is not None and base_version.digest == version.digest:
            continue
        found.append(
            Target(kernel=base_suite.kernel, suite=base_suite, head=version, base=base_version, base_from=base_from)
        )
    return found


async def _base_version(
    draft: Draft, base: KernelFolder, name: str | None, suite: Suite, *, new: bool
) -> tuple[Version | None, str]:
    if name is None:
        return None, "nothing: the base lists no revision"
    try:
        version = await draft.version(base, name, suite)
    except FolderError as error:
        # Never another one in its place, and never in silence.
        note = f"{base.path}/{name} can't be built at the base ({error}): the change is judged without a base"
        draft.notes.append(note)
        return None, note
    return version, f"{'the current revision' if new else 'the same folder'} at {base.commit[:12]}"


async def _previews(draft: Draft, targets: Collection[Target], *, head: KernelFolder, suite: Suite) -> list[Preview]:
    if targets:
        return [Preview(kernel=suite.kernel, suite=suite, head=each.head, base=each.base) for each in targets]
    current = current_folder(suite, head.revisions())
    if current is None:
        return []
    version = await draft.version(head, current, suite)
    return [Preview(kernel=suite.kernel, suite=suite, head=version, base=None)]
