"""The part of the first migration that makes the tables of regressions and changes."""

from typing import Any

import sqlalchemy as sa
from alembic import op

_TIME = sa.DateTime(timezone=True)


def _id(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.String(length=40), nullable=nullable)


def create() -> None:
    op.create_table(
        "regression",
        _id("id"),
        _id("project_id"),
        sa.Column("direction", sa.String(length=8), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        _id("revision_id"),
        _id("after_id", nullable=True),
        sa.Column("commit", sa.String(length=64), nullable=True),
        sa.Column("suspects", sa.JSON(), nullable=False),
        sa.Column("worst_ratio", sa.Float(), nullable=False),
        _id("fixed_by", nullable=True),
        sa.Column("kept", sa.Boolean(), nullable=True),
        sa.Column("who", sa.String(length=200), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("changed_at", _TIME, nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"]),
        sa.ForeignKeyConstraint(["revision_id"], ["revision.id"]),
        sa.ForeignKeyConstraint(["after_id"], ["revision.id"]),
        sa.ForeignKeyConstraint(["fixed_by"], ["revision.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_regression_project", "regression", ["project_id", "direction", "id"], unique=False)
    op.create_index("ix_regression_revision", "regression", ["revision_id"], unique=False)
    op.create_index("ix_regression_commit", "regression", ["project_id", "commit"], unique=False)
    _create_cases()
    op.create_table(
        "series_track",
        _id("series_id"),
        sa.Column("state", sa.JSON(), nullable=False),
        sa.Column("least", sa.Float(), nullable=False),
        sa.Column("last_key", sa.JSON(), nullable=False),
        sa.Column("stale", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["series_id"], ["series.id"]),
        sa.PrimaryKeyConstraint("series_id"),
    )
    op.create_index("ix_series_track_stale", "series_track", ["stale"], unique=False)
    op.create_table(
        "series_change",
        _id("id"),
        _id("series_id"),
        sa.Column("kind", sa.String(length=8), nullable=False),
        _id("revision_id"),
        _id("after_id", nullable=True),
        sa.Column("unmeasured", sa.JSON(), nullable=False),
        sa.Column("ratio", sa.Float(), nullable=True),
        sa.Column("low", sa.Float(), nullable=True),
        sa.Column("high", sa.Float(), nullable=True),
        sa.Column("before_value", sa.Float(), nullable=True),
        sa.Column("after_value", sa.Float(), nullable=True),
        sa.Column("changed", sa.JSON(), nullable=False),
        sa.Column("note", sa.Text(), nullable=True),
        _id("regression_id", nullable=True),
        sa.ForeignKeyConstraint(["series_id"], ["series.id"]),
        sa.ForeignKeyConstraint(["revision_id"], ["revision.id"]),
        sa.ForeignKeyConstraint(["after_id"], ["revision.id"]),
        sa.ForeignKeyConstraint(["regression_id"], ["regression.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_series_change_series", "series_change", ["series_id"], unique=False)


def _create_cases() -> None:
    op.create_table(
        "regression_case",
        _id("id"),
        _id("regression_id"),
        _id("kernel_id"),
        sa.Column("device_class", sa.String(length=16), nullable=False),
        sa.Column("case", sa.String(length=200), nullable=False),
        sa.Column("evidence", sa.String(length=16), nullable=False),
        sa.Column("metric", sa.String(length=63), nullable=True),
        _id("revision_id"),
        _id("base_id", nullable=True),
        _id("evaluation_id", nullable=True),
        sa.Column("perhaps", sa.JSON(), nullable=False),
        sa.Column("ratio", sa.Float(), nullable=False),
        sa.Column("low", sa.Float(), nullable=True),
        sa.Column("high", sa.Float(), nullable=True),
        sa.Column("allowed_slowdown", sa.Float(), nullable=True),
        sa.Column("standings", sa.JSON(), nullable=False),
        _id("fixed_by", nullable=True),
        sa.Column("kept", sa.Boolean(), nullable=True),
        sa.ForeignKeyConstraint(["regression_id"], ["regression.id"]),
        sa.ForeignKeyConstraint(["kernel_id"], ["kernel.id"]),
        sa.ForeignKeyConstraint(["revision_id"], ["revision.id"]),
        sa.ForeignKeyConstraint(["base_id"], ["revision.id"]),
        sa.ForeignKeyConstraint(["evaluation_id"], ["evaluation.id"]),
        sa.ForeignKeyConstraint(["fixed_by"], ["revision.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("regression_id", "kernel_id", "device_class", "case", name="uq_regression_case"),
    )
    columns = ["kernel_id", "device_class", "case"]
    op.create_index("ix_regression_case_kernel", "regression_case", columns, unique=False)
    op.create_index(op.f("ix_regression_case_evaluation_id"), "regression_case", ["evaluation_id"], unique=False)
    op.create_table(
        "regression_event",
        _id("regression_id"),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("who", sa.String(length=200), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("at", _TIME, nullable=False),
        sa.ForeignKeyConstraint(["regression_id"], ["regression.id"]),
        sa.PrimaryKeyConstraint("regression_id", "number"),
    )


def drop() -> None:
    for table in ("series_change", "series_track", "regression_event", "regression_case", "regression"):
        op.drop_table(table)
