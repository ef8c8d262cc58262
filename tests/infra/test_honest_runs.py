"""The runs of shipped revisions: what is kept of them, what the page says of it, and that none was blamed."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from contract.devices import DeviceClass
from contract.outcomes import Outcome, Reason
from scripts import honest_runs

FILES = honest_runs.data_files()


def made(**changes: Any) -> honest_runs.Run:
    fields = {
        "at": datetime(2026, 1, 1, tzinfo=UTC),
        "kernel": "gemm",
        "revision": "v1_plain",
        "digest": "d1",
        "number": 1,
        "outcome": Outcome.PASSED,
        "checks": 8,
        "of_bound": 0.25,
        "cases": 2,
        "seconds": 3.0,
        "fresh": False,
        "sandbox": True,
        "protocol": 1,
        "device": "a card",
        "versions": {},
    }
    return honest_runs.Run(**{**fields, **changes})


def test_the_page_holds_what_the_data_say() -> None:
    page = honest_runs.PAGE.read_text(encoding="utf-8")
    assert page == honest_runs.with_sections(page, FILES), "run scripts/honest_runs.py --page"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_no_run_that_is_kept_was_incorrect_or_untrusted(file: Path) -> None:
    blamed = [one for one in honest_runs.read(file) if one.outcome in honest_runs.BLAMED]
    assert blamed == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_shipped_revision_of_the_class_was_run_as_it_is(file: Path) -> None:
    runs = Counter((one.kernel, one.digest) for one in honest_runs.read(file) if one.judged)
    device_class = DeviceClass(file.stem.removeprefix("honest_runs_"))
    short = {each.name: runs[each.key] for each in honest_runs.shipped(device_class) if runs[each.key] < 20}
    assert short == {}


def test_all_revisions_but_those_that_are_bad_on_purpose_are_run_each_against_the_one_before() -> None:
    found = honest_runs.shipped(DeviceClass.CPU)
    assert [each.folder.manifest.label for each in found] == ["v0", "v1", "v2", "v3"]
    assert [each.base.manifest.label if each.base else None for each in found] == [None, "v0", "v1", "v2"]
    of_cards = {each.suite.kernel for each in honest_runs.shipped(DeviceClass.H200)}
    assert of_cards == {"hgemm", "attention_prefill", "rmsnorm"}


def test_of_the_timed_cases_the_smallest_and_the_largest_can_be_run_alone() -> None:
    suites = {each.suite.kernel: each.suite for each in honest_runs.shipped(DeviceClass.H200, ends=True)}
    assert [case.id for case in suites["hgemm"].cases] == ["m=1024,n=1024,k=1024", "m=8192,n=8192,k=8192"]
    assert len(suites["hgemm"].verify_cases) == 4


def test_it_goes_on_where_it_ended_with_whatever_has_the_fewest_runs() -> None:
    first, second, third, _ = honest_runs.shipped(DeviceClass.CPU)
    before = [
        *(made(kernel=first.suite.kernel, digest=first.folder.digest) for _ in range(2)),
        made(kernel=second.suite.kernel, digest=second.folder.digest),
        made(kernel=second.suite.kernel, digest=second.folder.digest, outcome=Outcome.INFRASTRUCTURE_ERROR),
        made(kernel=third.suite.kernel, digest="of another version"),
    ]
    wanted = [(each.name, number) for each, number in honest_runs.rounds([first, second, third], before, 2)]
    assert wanted == [(third.name, 1), (second.name, 2), (third.name, 2)]


def test_the_table_counts_by_outcome_and_only_the_newest_version() -> None:
    later = datetime(2026, 1, 2, tzinfo=UTC)
    runs = [
        made(digest="old", outcome=Outcome.INCORRECT),
        made(at=later, of_bound=0.5, outcome=Outcome.INCONCLUSIVE),
        made(at=later, outcome=Outcome.UNTRUSTED, reason=Reason.LEFT_RUNNING),
        made(at=later, outcome=Outcome.INFRASTRUCTURE_ERROR, checks=0, cases=0, of_bound=None),
    ]
    assert honest_runs.table(runs).splitlines()[2:] == ["| gemm v1_plain | 2 | 0 | 1 | 1 | 16 | 0.50 | 4 |"]


def test_a_run_is_a_whole_evaluation_and_is_kept_as_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELGATE_CACHE_DIR", str(tmp_path / "cache"))
    revision = honest_runs.shipped(DeviceClass.CPU, only="v3", ends=True)[0]
    found = honest_runs.run(revision, DeviceClass.CPU, 1, time.time() + 600)
    assert found is not None
    assert found.judged
    assert (found.base, found.cases, found.fresh) == ("v2", 2, True)
    assert found.checks >= 7 * 8
    file = tmp_path / "runs.jsonl"
    file.write_text(found.model_dump_json(exclude_none=True) + "\n", encoding="utf-8")
    assert honest_runs.read(file) == [found]
    assert honest_runs.run(revision, DeviceClass.CPU, 2, time.time()) is None


def test_none_begins_that_would_not_be_done_in_time(tmp_path: Path) -> None:
    kept: list[honest_runs.Run] = []
    revisions = honest_runs.shipped(DeviceClass.CPU)
    honest_runs.all_runs(
        zip(revisions, itertools.repeat(1), strict=False),
        DeviceClass.CPU,
        lasted={each.key: 100.0 for each in revisions},
        ends_at=time.time() + 60.0,
        keep=kept.append,
    )
    assert kept == []
