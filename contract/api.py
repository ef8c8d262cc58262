"""The resources of /api/v1, as the service answers them and its clients read them."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Literal

from pydantic import Field

from contract.base import Model
from contract.devices import DeviceClass
from contract.names import CommitId, Digest, KernelName, Label, MetricName, NodeName, ProjectSlug
from contract.outcomes import Outcome, Reason, Stage, State, Verdict
from contract.report import CaseResult, Check, Environment, LeftOut, StageTime
from contract.statics import FunctionStatics
from contract.suite import Suite


class Scope(StrEnum):
    READ = "read"
    SUBMIT = "submit"
    MAINTAIN = "maintain"
    WORKER = "worker"
    ADMIN = "admin"


class Problem(Model):
    """RFC 9457. `type` is stable: `urn:kernelgate:problem:<name>`."""

    type: str
    title: str
    status: int
    detail: str
    field: str | None = None


class ProjectIn(Model):
    slug: ProjectSlug
    name: str = Field(default="", max_length=200)


class ProjectOut(ProjectIn):
    created_at: datetime


class SuiteOut(Model):
    project: ProjectSlug
    suite: Suite
    digest: Digest
    created_at: datetime


class RevisionIn(Model):
    """`files` maps each path of the bundle to its text. `base`: a label, digest or revision id; by default the
    revision before this one in the suite's list, else the newest mainline revision. `profile`: read the card's counters
    too; a revision that was measured without is measured again."""

    project: ProjectSlug
    kernel: KernelName
    files: dict[str, str]
    commit: CommitId | None = None
    branch: str | None = Field(default=None, max_length=255)
    base: str | None = Field(default=None, max_length=100)
    device_classes: tuple[DeviceClass, ...] = Field(default=(), description="by default, the suite's")
    build_only: bool = False
    profile: bool = False


class RevisionOut(Model):
    id: str
    project: ProjectSlug
    kernel: KernelName
    label: Label
    digest: Digest | None
    summary: str
    commit: CommitId | None
    branch: str | None
    mainline: bool
    origin: Literal["submitted", "imported"]
    provenance: str | None = None
    created_at: datetime
    evaluations: tuple[str, ...] = Field(description="ids, newest first")


class EvaluationIn(Model):
    """Evaluate a revision again (`repeat` counts up), or against another base, or on another class."""

    revision: str
    device_class: DeviceClass
    base: str | None = None
    build_only: bool = False
    profile: bool = False


class BaseRef(Model):
    id: str
    label: Label
    digest: Digest | None


class AttemptOut(Model):
    node: str
    started_at: datetime
    ended_at: datetime | None
    end: str | None = Field(default=None, description="reported, expired, cancelled")


class EvaluationOut(Model):
    id: str
    project: ProjectSlug
    kernel: KernelName
    revision: BaseRef
    base: BaseRef | None
    device_class: DeviceClass
    suite_digest: Digest | None = Field(description="none where the evaluation was imported")
    protocol_version: int
    repeat: int
    build_only: bool
    profile: bool = Field(default=False, description="whether a profile was asked for")
    state: State
    outcome: Outcome | None
    reason: Reason | None
    message: str | None
    summary: str | None = Field(default=None, description="the outcome in one sentence")
    stage: Stage | None
    progress: str | None
    created_at: datetime
    leased_at: datetime | None
    finished_at: datetime | None
    attempts: tuple[AttemptOut, ...]
    stages: tuple[StageTime, ...]
    left_out: tuple[LeftOut, ...] = Field(default=(), description="what the node did not do, and why")
    environment: Environment | None
    statics: tuple[FunctionStatics, ...]
    base_statics: tuple[FunctionStatics, ...] = ()
    checks: tuple[Check, ...]
    cases: tuple[CaseResult, ...]
    reproduce: str | None = Field(default=None, description="the command that asks for this evaluation again")


class KernelOut(Model):
    project: ProjectSlug
    name: KernelName
    operator: str
    summary: str
    device_classes: tuple[DeviceClass, ...]
    cases: tuple[str, ...]
    metrics: tuple[MetricName, ...]
    revisions: int
    newest: Label | None


class Point(Model):
    """One revision in a series. A failed revision has an outcome and no value. `place` counts the range's points from
    0, also those that were thinned out: it is the point's place on an axis."""

    place: int = 0
    revision: str
    evaluation: str | None
    label: Label
    commit: CommitId | None
    summary: str
    mainline: bool
    at: datetime
    value: float | None
    low: float | None
    high: float | None
    outcome: Outcome | None
    verdict: Verdict | None
    base: Label | None
    ratio: float | None
    interval: tuple[float, float] | None
    of_baseline: float | None


class Series(Model):
    project: ProjectSlug
    kernel: KernelName
    device_class: DeviceClass
    case: str
    metric: MetricName
    unit: str
    better: Literal["lower", "higher"] | None
    baseline: str | None
    baseline_value: float | None
    points: tuple[Point, ...]
    total: int = Field(default=0, description="points in the range before any were thinned out")
    earlier: str | None = Field(default=None, description="pass as `before` for the page before this one")


class ProcessPair(Model):
    """The median time per call, us, of one base process and of the head process that ran beside it."""

    base: float
    head: float


class CaseComparison(Model):
    case: str
    verdict: Verdict | None
    ratio: float | None
    interval: tuple[float, float] | None
    smallest_detectable: float | None
    measured: Literal["pairs", "published", "separately", "none"] = Field(
        description="pairs: side by side on one card; separately: in two evaluations, no verdict"
    )
    allowed: str | None = None
    base: dict[str, float]
    head: dict[str, float]
    processes: tuple[ProcessPair, ...] = ()


class CompareOut(Model):
    """`statics` are the head's; with `base_statics` only where one toolchain built both, else `statics_apart` says why
    not."""

    project: ProjectSlug
    kernel: KernelName
    device_class: DeviceClass
    base: BaseRef
    head: BaseRef
    evaluation: str | None
    cases: tuple[CaseComparison, ...]
    statics: tuple[FunctionStatics, ...] = ()
    base_statics: tuple[FunctionStatics, ...] = ()
    statics_apart: str | None = None


class NodeOut(Model):
    name: str
    device_class: DeviceClass
    device: str
    driver: str | None
    host: str
    state: Literal["idle", "busy", "offline", "unhealthy"]
    problem: str | None
    evaluation: str | None
    last_seen_at: datetime


class ImportIn(Model):
    """A CSV of columns kernel,device_class,label,base,case,metric,value,unit,note, in the order of the revisions."""

    csv: str = Field(max_length=4_000_000)
    provenance: str = Field(min_length=1, max_length=2000)
    margin: float = Field(default=0.01, gt=0, lt=1)


class ImportOut(Model):
    kernels: tuple[str, ...]
    revisions: int
    added: int
    metrics: int


class TokenIn(Model):
    scope: Scope
    project: ProjectSlug | None = None
    node: NodeName | None = None
    note: str = Field(default="", max_length=200)


class TokenOut(TokenIn):
    id: str
    created_at: datetime
    secret: str | None = Field(default=None, description="shown once, when it is made")


class Page(Model):
    next: str | None = Field(default=None, description="pass as `after` for the next page")


class EvaluationPage(Page):
    items: tuple[EvaluationOut, ...]


class RevisionPage(Page):
    items: tuple[RevisionOut, ...]


class ProjectPage(Page):
    items: tuple[ProjectOut, ...]


class KernelPage(Page):
    items: tuple[KernelOut, ...]


class TokenPage(Page):
    items: tuple[TokenOut, ...]
