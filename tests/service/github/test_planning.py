"""Two trees -> a plan, read from real git objects without a network."""

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from contract import bundle
from contract.repository import RepositoryConfig
from service.github.planning import make_plan
from service.github.plans import Plan, Planned
from service.github.repository import Entry, Repository, Tree
from service.github.trees import Trees
from tests.service.github.gated import KERNEL, base_files, revision, suite
from tests.service.github.gitrepo import GitRepo


class LocalRepository:
    """service.github.repository.Repository's reading part, on a repository at hand."""

    def __init__(self, git: GitRepo, *, truncated: bool = False) -> None:
        self._git = git
        self._truncated = truncated
        self.blobs: list[str] = []

    async def commit(self, sha: str) -> tuple[str, list[str]]:
        return self._git.git("rev-parse", f"{sha}^{{tree}}"), []

    async def tree(self, sha: str, *, recursive: bool) -> Tree:
        entries = {}
        for line in self._git.git("ls-tree", "-l", *(["-r", "-t"] if recursive else []), sha).splitlines():
            meta, _, path = line.partition("\t")
            mode, kind, name, size = meta.split()
            entries[path] = Entry(sha=name, kind=kind, link=mode == "120000", bytes=int(size) if kind == "blob" else 0)
        return Tree(entries={} if recursive and self._truncated else entries, truncated=recursive and self._truncated)

    async def root(self, sha: str) -> str:
        return (await self.commit(sha))[0]

    async def blob(self, sha: str) -> bytes:
        self.blobs.append(sha)
        return self._git.raw("cat-file", "blob", sha)


@pytest.fixture
def git(tmp_path: Path) -> GitRepo:
    return GitRepo(tmp_path / "repository.git")


@pytest.fixture
def main(git: GitRepo) -> str:
    return git.commit(base_files())


def planned(git: GitRepo, base: str, head: str, *, local: LocalRepository | None = None, **options: Any) -> Planned:
    trees = Trees(cast("Repository", local or LocalRepository(git)))
    return asyncio.run(make_plan(trees, base=base, head=head, config=RepositoryConfig(), **options))


def plan_of(git: GitRepo, main: str, files: dict[str, Any]) -> Plan:
    return planned(git, main, git.commit(files, main)).plan


def pairs(plan: Plan) -> list[tuple[str, str | None]]:
    """(head's folder, base's folder) of each target."""
    return [
        (each.head.folder.rpartition("/")[2], each.base.folder.rpartition("/")[2] if each.base else None)
        for each in plan.targets
    ]


def test_a_changed_folder_is_compared_with_itself(git: GitRepo, main: str) -> None:
    plan = plan_of(git, main, revision("v1_naive", "new"))
    assert pairs(plan) == [("v1_naive", "v1_naive")]
    assert plan.holds == ()


def test_a_new_folder_is_compared_with_the_bases_current_revision(git: GitRepo, main: str) -> None:
    listed = suite("v1_naive", "v2_blocked", "v3_packed")
    plan = plan_of(git, main, {f"{KERNEL}/suite.toml": listed, **revision("v3_packed")})
    assert pairs(plan) == [("v3_packed", "v2_blocked")]
    assert plan.targets[0].base_from.startswith("the current revision at ")
    assert (plan.holds, plan.previews) == ((), ())


def test_an_old_folder_that_becomes_the_current_one_is_compared_too(git: GitRepo, main: str) -> None:
    before = git.commit(revision("v3_packed"), main)
    listed = suite("v1_naive", "v2_blocked", "v3_packed")
    plan = planned(git, before, git.commit({f"{KERNEL}/suite.toml": listed}, before)).plan
    assert pairs(plan) == [("v3_packed", "v2_blocked")]


def test_a_shared_header_changes_the_revisions_that_use_it_and_no_other(git: GitRepo, main: str) -> None:
    plan = plan_of(git, main, {f"{KERNEL}/common.h": "// other\n"})
    assert pairs(plan) == [("v2_blocked", "v2_blocked")]


@pytest.mark.parametrize(
    "files",
    [
        {"README.md": "x", "src/tool.py": "x"},
        {f"{KERNEL}/NOTES.md": "x", f"{KERNEL}/v1_naive/.sgemm.cpp.swp": "x", f"{KERNEL}/unused.h": "x"},
    ],
)
def test_what_is_in_no_bundle_needs_nothing(git: GitRepo, main: str, files: dict[str, str]) -> None:
    assert plan_of(git, main, files).is_empty


def test_bundles_are_those_that_the_command_line_would_send(git: GitRepo, main: str) -> None:
    head = git.commit({**revision("v2_blocked", "new", shared=True), f"{KERNEL}/v2_blocked/notes.txt": "x"}, main)
    answer = planned(git, main, head)
    files = answer.bundles[answer.plan.targets[0].head.digest]
    assert sorted(files) == ["common.h", "kernel.toml", "sgemm.cpp"]
    assert bundle.digest(files) == answer.plan.targets[0].head.digest


def test_a_listing_that_github_cut_short_is_read_folder_by_folder(git: GitRepo, main: str) -> None:
    head = git.commit(revision("v1_naive", "new"), main)
    whole, cut = planned(git, main, head), planned(git, main, head, local=LocalRepository(git, truncated=True))
    assert cut == whole


def test_the_suite_is_the_bases_and_an_edit_is_shown_and_held(git: GitRepo, main: str) -> None:
    edited = suite("v1_naive", "v2_blocked", policy="allowed_slowdown = 0.3")
    plan = plan_of(git, main, {f"{KERNEL}/suite.toml": edited, **revision("v1_naive", "new")})
    assert plan.targets[0].suite.policy.allowed_slowdown == 0.005
    assert plan.previews[0].suite.policy.allowed_slowdown == 0.3
    assert [hold.subject for hold in plan.holds] == ["suite"]
    alone = plan_of(git, main, {f"{KERNEL}/suite.toml": edited})
    assert alone.targets == ()
    assert [preview.head.label for preview in alone.previews] == ["v2"]


def test_a_new_kernel_waits_for_its_suite_to_be_accepted(git: GitRepo, main: str) -> None:
    files = {"kernels/other/suite.toml": suite("v1_a", kernel="other"), **revision("v1_a", kernel="kernels/other")}
    head = git.commit(files, main)
    before, after = planned(git, main, head), planned(git, main, head, is_accepted=lambda _hold: True)
    assert (before.plan.targets, [hold.subject for hold in before.plan.holds]) == ((), ["new_kernel"])
    assert pairs(after.plan) == [("v1_a", None)]


def test_a_base_that_can_not_be_built_is_not_replaced_in_silence(git: GitRepo, main: str) -> None:
    broken = git.commit({f"{KERNEL}/v2_blocked/kernel.toml": "label = 1\n"}, main)
    plan = planned(git, broken, git.commit(revision("v2_blocked", "mended"), broken)).plan
    assert pairs(plan) == [("v2_blocked", None)]
    assert "judged without a base" in plan.notes[0]


@pytest.mark.parametrize(
    ("files", "path", "said"),
    [
        ({f"{KERNEL}/v1_naive/kernel.toml": "label ="}, f"{KERNEL}/v1_naive/kernel.toml", "Invalid value"),
        ({f"{KERNEL}/v1_naive/sgemm.cpp": None}, f"{KERNEL}/v1_naive/kernel.toml", "source sgemm.cpp is not in"),
        ({f"{KERNEL}/common.h": None}, f"{KERNEL}/v2_blocked/kernel.toml", "shared common.h is not a file"),
        ({f"{KERNEL}/suite.toml": "kernel = 1"}, f"{KERNEL}/suite.toml", "valid string"),
        ({f"{KERNEL}/suite.toml": suite("v1_naive", "v2_blocked", "v9")}, f"{KERNEL}/suite.toml", "v9 is listed"),
        ({f"{KERNEL}/suite.toml": suite("v1_naive", kernel="renamed")}, f"{KERNEL}/suite.toml", "a new name needs"),
        ({f"{KERNEL}/v1_naive/big.h": "x" * (1 << 20)}, f"{KERNEL}/v1_naive/kernel.toml", "at most"),
    ],
)
def test_what_the_author_has_to_mend_is_named_with_its_place(
    git: GitRepo, main: str, files: dict[str, Any], path: str, said: str
) -> None:
    faults = plan_of(git, main, files).faults
    assert [fault.path for fault in faults] == [path]
    assert said in faults[0].said


def test_no_change_reads_without_end(git: GitRepo, main: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.github.trees._MAX_FILES", 40)
    monkeypatch.setattr("service.github.planning._MOST_FAULTS", 3)
    flood: dict[str, Any] = {}
    for number in range(100):
        flood |= revision(f"w{number}_flood", str(number))
    local = LocalRepository(git)
    plan = planned(git, main, git.commit(flood, main), local=local).plan
    assert len(local.blobs) <= 40
    assert len(plan.faults) == 3
    assert "split it" in plan.faults[0].said


def test_nothing_is_read_of_kernels_that_did_not_change(git: GitRepo, main: str) -> None:
    both = git.commit(
        {"kernels/other/suite.toml": suite("v1_a", kernel="other"), **revision("v1_a", kernel="kernels/other")}, main
    )
    local = LocalRepository(git)
    planned(git, both, git.commit(revision("v1_a", "new", kernel="kernels/other"), both), local=local)
    own = git.git("rev-parse", f"{both}:{KERNEL}/suite.toml")
    assert own not in local.blobs


OPERATOR = """DIMS = ("m", "n", "k")
INPUTS = {"a": ("m", "k")}
OUTPUTS = {"c": ("m", "n")}
FLOP = "m * n * k"


def reference(xp, inputs, dims): ...


def baseline(torch, inputs, outputs, dims): ...
"""
OWN = suite("v1_naive", "v2_blocked").replace('operator = "gemm"', 'operator = "mine"')


@pytest.fixture
def own(git: GitRepo) -> str:
    """A base whose kernel brings its operator."""
    return git.commit({**base_files(), f"{KERNEL}/suite.toml": OWN, f"{KERNEL}/operator.py": OPERATOR})


def test_a_revision_is_judged_by_the_bases_operator(git: GitRepo, own: str) -> None:
    plan = plan_of(git, own, revision("v1_naive", "new"))
    assert [each.suite.operator_source for each in plan.targets] == [OPERATOR]
    assert (plan.holds, plan.previews, plan.faults) == ((), (), ())


def test_a_changed_operator_is_an_edited_suite_and_runs_only_once_accepted(git: GitRepo, own: str) -> None:
    head = git.commit({f"{KERNEL}/operator.py": f"{OPERATOR}# lax\n", **revision("v1_naive", "new")}, own)
    plan = planned(git, own, head).plan
    assert [each.suite.operator_source for each in plan.targets] == [OPERATOR]
    assert plan.previews == ()
    [hold] = plan.holds
    assert (hold.subject, hold.digest) == ("suite", plan.suites[0].digest)
    assert "its operator.py, code that runs in the judge" in hold.said

    accepted = planned(git, own, head, is_accepted=lambda given: given == hold).plan
    assert [each.suite.operator_source for each in accepted.previews] == [f"{OPERATOR}# lax\n"]


def test_an_edited_suite_with_the_bases_operator_is_previewed(git: GitRepo, own: str) -> None:
    plan = plan_of(git, own, {f"{KERNEL}/suite.toml": OWN.replace("m = 64", "m = 65"), **revision("v1_naive", "new")})
    assert [each.suite.operator_source for each in plan.previews] == [OPERATOR]


def test_an_operator_that_a_revision_brings_is_a_file_of_its_bundle_and_no_more(git: GitRepo, own: str) -> None:
    head = git.commit({f"{KERNEL}/v1_naive/operator.py": f"{OPERATOR}# lax\n"}, own)
    answer = planned(git, own, head)
    [target] = answer.plan.targets
    assert target.suite.operator_source == OPERATOR
    assert "operator.py" in answer.bundles[target.head.digest]
    assert answer.plan.holds == ()


def test_a_new_kernels_operator_waits_for_a_yes_that_names_it(git: GitRepo, main: str) -> None:
    other = "kernels/other"
    files = {f"{other}/suite.toml": OWN.replace("sgemm_cpu", "other"), f"{other}/operator.py": OPERATOR}
    plan = plan_of(git, main, files | revision("v1_naive", kernel=other) | revision("v2_blocked", kernel=other))
    assert plan.targets == ()
    assert "its operator.py, code that runs in the judge" in plan.holds[0].said


def test_an_operator_that_can_not_be_read_is_a_fault(git: GitRepo, own: str) -> None:
    plan = plan_of(git, own, {f"{KERNEL}/operator.py": "DIMS = ("})
    assert plan.targets == ()
    assert "operator_source: operator.py:1:" in plan.faults[0].said
