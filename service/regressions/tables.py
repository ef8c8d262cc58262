"""The tables of histories: regressions with their cases and states, and the changes of each series."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Index, Text, UniqueConstraint
from sqlmodel import Field, SQLModel

from service.columns import id_field, optional_reference, reference, time_field

Json = dict[str, Any]


class Regression(SQLModel, table=True):
    """One cause of a change of speed on a project's mainline; `direction` faster is an improvement.

    `revision_id`: where it was first seen, `after_id` the last measured before. `suspects`: ids of the revisions that
    may be the cause, in the order of the history. `kept`: False where the mainline went on without the revision.
    """

    __table_args__ = (
        Index("ix_regression_project", "project_id", "direction", "id"),
        Index("ix_regression_revision", "revision_id"),
        Index("ix_regression_commit", "project_id", "commit"),
    )

    id: str = id_field("reg")
    project_id: str = reference("project.id", index=False)
    direction: str = Field(max_length=8)
    state: str = Field(default="new", max_length=16)
    revision_id: str = reference("revision.id", index=False)
    after_id: str | None = optional_reference("revision.id", index=False)
    commit: str | None = Field(default=None, max_length=64)
    suspects: list[str] = Field(default_factory=list, sa_type=JSON)
    worst_ratio: float
    fixed_by: str | None = optional_reference("revision.id", index=False)
    kept: bool | None = None
    who: str | None = Field(default=None, max_length=200)
    reason: str | None = Field(default=None, sa_type=Text)
    created_at: datetime = time_field()
    changed_at: datetime = time_field()


class RegressionCase(SQLModel, table=True):
    """One (kernel, class, case) that a regression touches. `ratio` = time of `revision_id` over time of `base_id`.

    `perhaps`: ids of other measured revisions with which a step may as well begin. `standings`: what later revisions of
    the mainline stand at over the base, by id, the newest last; `fixed_by` is the first of them that was back at the
    level before.
    """

    __tablename__ = "regression_case"
    __table_args__ = (
        UniqueConstraint("regression_id", "kernel_id", "device_class", "case", name="uq_regression_case"),
        Index("ix_regression_case_kernel", "kernel_id", "device_class", "case"),
    )

    id: str = id_field("rgc")
    regression_id: str = reference("regression.id", index=False)
    kernel_id: str = reference("kernel.id", index=False)
    device_class: str = Field(max_length=16)
    case: str = Field(max_length=200)
    evidence: str = Field(max_length=16)
    metric: str | None = Field(default=None, max_length=63)
    revision_id: str = reference("revision.id", index=False)
    base_id: str | None = optional_reference("revision.id", index=False)
    evaluation_id: str | None = optional_reference("evaluation.id")
    perhaps: list[str] = Field(default_factory=list, sa_type=JSON)
    ratio: float
    low: float | None = None
    high: float | None = None
    allowed_slowdown: float | None = None
    standings: dict[str, float] = Field(default_factory=dict, sa_type=JSON)
    fixed_by: str | None = optional_reference("revision.id", index=False)
    kept: bool | None = None


class RegressionEvent(SQLModel, table=True):
    """One state that a regression came into: by whom and why."""

    __tablename__ = "regression_event"

    regression_id: str = Field(foreign_key="regression.id", primary_key=True, max_length=40)
    number: int = Field(primary_key=True)
    state: str = Field(max_length=16)
    who: str = Field(max_length=200)
    reason: str = Field(sa_type=Text)
    at: datetime = time_field()


class SeriesTrack(SQLModel, table=True):
    """What verdict.history.Tracker knows of a series. `last_key`: the place of the newest point in the history's
    order. `stale`: a point came that isn't the newest, so it is to be worked out anew."""

    __tablename__ = "series_track"
    __table_args__ = (Index("ix_series_track_stale", "stale"),)

    series_id: str = Field(foreign_key="series.id", primary_key=True, max_length=40)
    state: Json = Field(default_factory=dict, sa_type=JSON)
    least: float
    last_key: list[Any] = Field(default_factory=list, sa_type=JSON)
    stale: bool = False


class SeriesChange(SQLModel, table=True):
    """A step, an outlier or a new segment of one series, in the order in which they were found."""

    __tablename__ = "series_change"
    __table_args__ = (Index("ix_series_change_series", "series_id"),)

    id: str = id_field("chg")
    series_id: str = reference("series.id", index=False)
    kind: str = Field(max_length=8)
    revision_id: str = reference("revision.id", index=False)
    after_id: str | None = optional_reference("revision.id", index=False)
    unmeasured: list[str] = Field(default_factory=list, sa_type=JSON)
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    before_value: float | None = None
    after_value: float | None = None
    changed: Json = Field(default_factory=dict, sa_type=JSON)
    note: str | None = Field(default=None, sa_type=Text)
    regression_id: str | None = optional_reference("regression.id", index=False)
