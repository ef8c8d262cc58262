"""What the gate is asked about a commit, and what it answers (verdict.gate decides)."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from contract.api import EvaluationOut
from contract.base import Model
from contract.devices import DeviceClass
from contract.names import CaseId, CommitId, KernelName, Label, ProjectSlug
from contract.outcomes import Outcome, Verdict
from contract.suite import Suite


class GateConclusion(StrEnum):
    """`success` alone lets a merge through."""

    SUCCESS = "success"
    FAILURE = "failure"
    NOT_MEASURED = "not_measured"
    CANCELLED = "cancelled"
    PENDING = "pending"


class RowStatus(StrEnum):
    """What a row does to the conclusion. `bad` fails; `missing` and `cancelled` hold the merge back; `pending` waits;
    `unproven`, `tolerated` and `good` let it pass."""

    BAD = "bad"
    MISSING = "missing"
    CANCELLED = "cancelled"
    PENDING = "pending"
    UNPROVEN = "unproven"
    TOLERATED = "tolerated"
    GOOD = "good"


class Acceptance(Model):
    """Someone with the right to do so accepts a slowdown: on one class and case, or on all where these are None. The
    verdict stays `slower`."""

    device_class: DeviceClass | None = None
    case: CaseId | None = None
    who: str
    reason: str


class Anchored(Model):
    """The head over the policy's anchor, on one class and case: the product of the comparisons between them, with its
    interval. `gap`: why there is none."""

    device_class: DeviceClass
    case: CaseId
    ratio: float | None = None
    interval: tuple[float, float] | None = None
    gap: str | None = None


class GateSubject(Model):
    """A kernel that a commit touches, with the suite that judges it (the base's). `evaluations`: all of the commit's,
    finished or not, in any order. One against the policy's anchor beside one against another base counts for the
    anchor alone; `anchored` is for classes without such a one."""

    suite: Suite
    evaluations: tuple[EvaluationOut, ...] = ()
    acceptances: tuple[Acceptance, ...] = ()
    anchored: tuple[Anchored, ...] = ()


class GateRow(Model):
    """One case on one class, or (without a case) what holds for a class as a whole. `said`: one sentence's worth."""

    status: RowStatus
    kernel: KernelName
    said: str
    device_class: DeviceClass | None = None
    case: CaseId | None = None
    revision: Label | None = None
    base: Label | None = None
    evaluation: str | None = None
    outcome: Outcome | None = None
    verdict: Verdict | None = None
    ratio: float | None = None
    interval: tuple[float, float] | None = None
    allowed_slowdown: float | None = None
    smallest_detectable: float | None = None
    tolerated: str | None = Field(default=None, description="why a slowdown is forgiven: an allowance, an acceptance")


class GateAnswer(Model):
    """`sentence` says why. `proven`: nothing was left undecided. `rows`: the bad ones first."""

    conclusion: GateConclusion
    sentence: str
    proven: bool
    pending: int = Field(description="evaluations that have not ended yet")
    rows: tuple[GateRow, ...]


class CommitGate(Model):
    """The gate over everything that a project's commit brought."""

    project: ProjectSlug
    commit: CommitId
    kernels: tuple[KernelName, ...]
    answer: GateAnswer
