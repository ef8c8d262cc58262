"""What the pages of the web view are made of, beside the resources of contract.api."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from contract.api import KernelOut, NodeOut, Page
from contract.base import Model
from contract.devices import DeviceClass
from contract.names import CommitId, KernelName, Label, MetricName, ProjectSlug
from contract.outcomes import Outcome, Verdict
from contract.spreads import Spread


class Standing(Model):
    """Where one kernel stands on one device class: its newest revision of the mainline that says something.

    `value`, `unit` and `sparkline` are of `metric` on `case` (the suite's first case that has values), the sparkline
    oldest first, without revisions that failed. `over_baseline`: speed as a share of the baseline's on that case.
    `worst_*`: the case that lost most against the base (time_head / time_base). `correct` is None where the revision
    was not verified here (only compiled, or imported).
    """

    kernel: KernelName
    operator: str
    summary: str
    device_class: DeviceClass
    revision: str
    label: Label
    commit: CommitId | None
    evaluation: str
    at: datetime
    outcome: Outcome
    sentence: str | None = Field(description="the outcome in one sentence")
    correct: bool | None
    bad: bool = Field(description="it failed, or something is slower than allowed")
    case: str | None
    metric: MetricName | None
    unit: str | None
    better: Literal["lower", "higher"] | None
    value: float | None
    low: float | None
    high: float | None
    over_baseline: float | None
    baseline: str | None
    verdict: Verdict | None = Field(description="the worst of all cases")
    base: Label | None
    worst_case: str | None
    worst_ratio: float | None
    worst_interval: tuple[float, float] | None
    cases: int = Field(description="how many were measured")
    sparkline: tuple[float, ...]


class Headline(Model):
    """The line that stands for a kernel on a class, as in its Standing."""

    device_class: DeviceClass
    case: str
    metric: MetricName


class KernelDetail(KernelOut):
    """One kernel with what its page chooses from. `static_metrics` are lines of no case, by class: what the machine
    code says."""

    headlines: tuple[Headline, ...]
    static_metrics: dict[DeviceClass, tuple[MetricName, ...]]


class Work(Model):
    """What a node works on, where the token may see it."""

    evaluation: str
    project: ProjectSlug
    kernel: KernelName
    label: Label


class Outage(Model):
    """When a node could not be used; `ended_at` is null while it can't."""

    began_at: datetime
    ended_at: datetime | None
    why: str


class NodeDetail(NodeOut):
    """A node with how it measures: `clocks` as around its newest evaluation, `spread` and `spread_floor` as standard
    deviations of ln(head/base) between pairs of its processes, of its newest cases in the median: what was seen, and
    the least that their verdicts assumed."""

    sandbox: bool
    work: Work | None
    measured_at: datetime | None
    clocks: dict[str, str | float | bool]
    spread: float | None
    spread_floor: float | None
    outages: tuple[Outage, ...] = Field(description="the newest first")
    learnt: tuple[Spread, ...] = Field(description="what shipped kernels are apart here, measured while it was idle")


class NodePage(Page):
    items: tuple[NodeDetail, ...]


class Queue(Model):
    """What waits for a device class, and what runs on it, of all projects."""

    device_class: DeviceClass
    queued: int
    running: int
    oldest_queued_at: datetime | None


class Overview(Model):
    """`standings`: the bad ones first, the newest first of these; then by kernel and class. `without_results`: kernels
    that have no result yet."""

    project: ProjectSlug
    standings: tuple[Standing, ...]
    without_results: tuple[KernelName, ...]
    queues: tuple[Queue, ...]
    nodes: tuple[NodeOut, ...]


class ScalingPoint(Model):
    """One case of a family. `x`: the value of the curve's `axis`. `flops_per_byte` where throughput and memory
    throughput were both measured."""

    case: str
    title: str | None
    x: int
    dims: dict[str, int]
    value: float | None
    low: float | None
    high: float | None
    baseline: float | None = Field(description="the baseline's value of the same metric")
    over_baseline: float | None
    throughput: float | None
    flops_per_byte: float | None


class Curve(Model):
    """A case family of one revision; `axis` names the dimensions that grow together, such as `m=n=k` or `seqlen`."""

    family: str
    axis: str
    points: tuple[ScalingPoint, ...]


class Roofs(Model):
    """What the card can do at most, by its data sheet: `throughput` in the unit of the curves' throughput, for the
    kernel's type; `per_intensity` what its memory lets it do at one operation per byte, in the same unit."""

    throughput: float
    per_intensity: float


class Scaling(Model):
    project: ProjectSlug
    kernel: KernelName
    device_class: DeviceClass
    revision: str
    label: Label
    evaluation: str | None
    metric: MetricName
    unit: str
    better: Literal["lower", "higher"] | None
    throughput_unit: str | None
    baseline: str | None
    roofs: Roofs | None = Field(description="null where the class has no known limits, such as a CPU")
    curves: tuple[Curve, ...]


class SourceFiles(Model):
    """A revision's bundle, path -> text."""

    revision: str
    label: Label
    files: dict[str, str]


class SignInCode(Model):
    """`code` signs one browser in, once, until `expires_at`: POST /session with it, or open `url`."""

    code: str
    url: str
    expires_at: datetime
