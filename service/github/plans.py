"""What a change asks of the gate: revisions to compare, and what a person has to decide. Made from two trees."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from contract.base import Model
from contract.bundle import Files
from contract.own_operator import FILE
from contract.suite import Suite

Subject = Literal["suite", "new_kernel", "removed", "revisions"]
OWN_CODE = f"its {FILE}, code that runs in the judge"


class Version(Model):
    """A revision's folder at a commit, as a bundle."""

    folder: str
    commit: str
    digest: str
    label: str
    source: str


class Target(Model):
    """One revision to evaluate, and what with. `suite`: the base's, or the head's where the base has none.
    `base_from`: how the base was chosen, in words."""

    kernel: str
    suite: Suite
    head: Version
    base: Version | None
    base_from: str


class Hold(Model):
    """What no measurement decides: it needs a person's acceptance. `digest`: what would be accepted."""

    subject: Subject
    kernel: str
    digest: str
    said: str


class Preview(Model):
    """An edited suite: what it would say of the targets (or of the current revision) of its kernel."""

    kernel: str
    suite: Suite
    head: Version
    base: Version | None


class Fault(Model):
    """Something in the change that makes it unjudgeable: the author has to mend it. `path`: where it is."""

    path: str
    said: str


class Plan(Model):
    base_sha: str
    targets: tuple[Target, ...] = ()
    previews: tuple[Preview, ...] = ()
    holds: tuple[Hold, ...] = ()
    faults: tuple[Fault, ...] = ()
    notes: tuple[str, ...] = ()
    suites: tuple[Suite, ...] = Field(default=(), description="of every kernel at the head, changed or not")

    @property
    def is_empty(self) -> bool:
        return not (self.targets or self.previews or self.holds or self.faults)


class Planned(Model):
    """A plan with the files of its versions, by digest."""

    plan: Plan
    bundles: dict[str, Files]


def digest_of_list(folders: tuple[str, ...]) -> str:
    return hashlib.sha256(json.dumps(list(folders)).encode()).hexdigest()


def current_folder(suite: Suite, folders: Mapping[str, object]) -> str | None:
    """The last listed revision whose folder is there."""
    return next((name for name in reversed(suite.revisions) if name in folders), None)


def suite_hold(base: Suite, head: Suite) -> Hold | None:
    """What an edited suite needs accepted, with what it takes away; None where it is the same."""
    if base.digest == head.digest:
        return None
    head_cases = {case.id for case in head.cases}
    gone = [case.title or case.id for case in base.cases if case.id not in head_cases]
    taken = f"; it removes {', '.join(gone)}" if gone else ""
    if head.operator_source != base.operator_source:
        taken += f"; {OWN_CODE}" if head.operator_source else "; its own operator is gone"
    said = f"the suite of {base.kernel} is edited{taken}: judged by the base's, until someone accepts the edit"
    return Hold(subject="suite", kernel=base.kernel, digest=head.digest, said=said)


def list_hold(base: Suite, head: Suite) -> Hold | None:
    """Appending to the list of revisions is part of a change; anything else may hide one."""
    if head.revisions[: len(base.revisions)] == base.revisions:
        return None
    said = f"{base.kernel}'s list of revisions is changed other than by appending to it"
    return Hold(subject="revisions", kernel=base.kernel, digest=digest_of_list(head.revisions), said=said)
