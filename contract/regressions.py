"""What got slower (or faster) on a mainline: one object a cause, with a state, over every case and class it touches."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Literal

from pydantic import Field

from contract.api import Page
from contract.base import Model
from contract.devices import DeviceClass
from contract.names import CommitId, KernelName, Label, MetricName, ProjectSlug


class RegressionState(StrEnum):
    NEW = "new"
    ACKNOWLEDGED = "acknowledged"
    EXPECTED = "expected"
    FIXED = "fixed"
    NOISE = "noise"


# The one place that knows a state's successors. What was closed can be opened again.
REGRESSION_SUCCESSORS: dict[RegressionState, frozenset[RegressionState]] = {
    RegressionState.NEW: frozenset(RegressionState) - {RegressionState.NEW},
    RegressionState.ACKNOWLEDGED: frozenset(RegressionState) - {RegressionState.ACKNOWLEDGED},
    RegressionState.EXPECTED: frozenset(RegressionState) - {RegressionState.EXPECTED},
    RegressionState.FIXED: frozenset({RegressionState.NEW}),
    RegressionState.NOISE: frozenset({RegressionState.NEW}),
}

Direction = Literal["slower", "faster"]


class RevisionSpot(Model):
    id: str
    label: Label
    commit: CommitId | None
    summary: str


class AffectedCase(Model):
    """One case on one class. `ratio` = time after / time before. `evidence`: side_by_side (an evaluation against its
    base), published (an imported history's values), history (a step in the series; `metric` says in which).
    `now`: the newest revision over the level before, where it can be followed; `fixed_by`: the revision that was back
    at that level."""

    kernel: KernelName
    device_class: DeviceClass
    case: str
    evidence: Literal["side_by_side", "published", "history"]
    metric: MetricName | None
    revision: RevisionSpot
    base: RevisionSpot | None
    evaluation: str | None
    ratio: float
    interval: tuple[float, float] | None
    allowed_slowdown: float | None
    now: float | None
    fixed_by: RevisionSpot | None


class RegressionEventOut(Model):
    state: RegressionState
    who: str
    reason: str
    at: datetime


class RegressionOut(Model):
    """`revision`: where it was first seen; `suspects`: every revision that may be the cause, in order, with it: those
    before it were not measured. `kept` is False where the mainline went on without the revision."""

    id: str
    project: ProjectSlug
    direction: Direction
    state: RegressionState
    sentence: str
    revision: RevisionSpot
    after: RevisionSpot | None = Field(description="the last revision before it that was measured")
    suspects: tuple[RevisionSpot, ...]
    kernels: tuple[KernelName, ...]
    device_classes: tuple[DeviceClass, ...]
    worst_ratio: float
    affected: int = Field(description="how many cases are affected")
    cases: tuple[AffectedCase, ...] = Field(description="the most affected first; in a brief list it alone")
    fixed_by: RevisionSpot | None
    kept: bool | None
    who: str | None = Field(description="who put it into this state; `kernelgate` where a measurement did")
    reason: str | None
    created_at: datetime
    changed_at: datetime
    events: tuple[RegressionEventOut, ...]


class RegressionPage(Page):
    items: tuple[RegressionOut, ...]


class RegressionIn(Model):
    """`reason` says why; it is kept with who said it."""

    state: RegressionState
    reason: str = Field(min_length=1, max_length=2000)
    who: str = Field(default="", max_length=100, description="a name to show beside the token's note")


class ChangeOut(Model):
    """A change of level of one series (`step`), points away from it (`outlier`), or other circumstances (`segment`).
    `ratio` = cost after / before. `note`: why a step counts for no regression."""

    kind: Literal["step", "outlier", "segment"]
    revision: RevisionSpot
    after: RevisionSpot | None
    unmeasured: tuple[RevisionSpot, ...]
    ratio: float | None
    interval: tuple[float, float] | None
    before_value: float | None
    after_value: float | None
    changed: dict[str, tuple[str, str]]
    note: str | None
    regression: str | None


class PendingOut(Model):
    """The newest points are away from the level since `revision`: too few to tell a step from an outlier."""

    revision: RevisionSpot
    ratio: float
    points: int


class ChangesOut(Model):
    project: ProjectSlug
    kernel: KernelName
    device_class: DeviceClass
    case: str
    metric: MetricName
    changes: tuple[ChangeOut, ...]
    pending: PendingOut | None
