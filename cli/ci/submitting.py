"""Changed revisions -> the service: it judges by its own suite, which no change brings along."""

from __future__ import annotations

from dataclasses import dataclass

from cli.bundles import Folder
from cli.ci.changes import Change, Changes
from cli.client import Client
from cli.errors import ProblemError
from cli.submission import Wanted, asked_for, find_suite
from contract.api import EvaluationOut, RevisionIn, RevisionOut


@dataclass(frozen=True)
class Job:
    """`branch` is never a default branch's name: what a job submits is no point of the main line."""

    project: str
    head: str
    base: str
    branch: str


def submit_changes(client: Client, changes: Changes, job: Job) -> list[EvaluationOut]:
    """The evaluations to wait for, of each changed revision."""
    found: list[EvaluationOut] = []
    for change in changes.revisions:
        found += _submit(client, change, job)
    return found


def held(client: Client, changes: Changes, job: Job) -> list[str]:
    """What needs a maintainer: suites that this change edits and the service doesn't have so, kernels it removes."""
    said = [f"{place}: the kernel is removed" for place in changes.removed]
    for base, head in changes.suites:
        stored = find_suite(client, job.project, head.kernel)
        if stored is None or stored.digest != head.digest:
            what = "edited" if base is not None else "new"
            said.append(
                f"the suite of {head.kernel} is {what}, and the service judges by another: "
                "a maintainer who agrees runs `kernelgate suite push`"
            )
    return said


def _submit(client: Client, change: Change, job: Job) -> tuple[EvaluationOut, ...]:
    base = change.base.digest if change.base else None
    body = _body(change.head, change.kernel, job, commit=job.head, base=base)
    try:
        revision = client.post("/revisions", RevisionOut, body)
    except ProblemError as error:
        if error.kind != "unknown-base" or change.base is None:
            raise
        # A base that the service never saw is brought and measured; never another one in its place.
        client.post("/revisions", RevisionOut, _body(change.base, change.kernel, job, commit=job.base, base=None))
        revision = client.post("/revisions", RevisionOut, body)
    return asked_for(client, revision, Wanted(project=job.project, base=base))


def _body(folder: Folder, kernel: str, job: Job, *, commit: str, base: str | None) -> RevisionIn:
    return RevisionIn(
        project=job.project, kernel=kernel, files=folder.texts(), commit=commit, branch=job.branch, base=base
    )
