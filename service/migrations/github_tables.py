"""The part of the first migration that makes the GitHub gate's tables."""

import sqlalchemy as sa
from alembic import op

_TIME = sa.DateTime(timezone=True)


def create() -> None:
    op.create_table(
        "github_delivery",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("event", sa.String(length=64), nullable=False),
        sa.Column("action", sa.String(length=64), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("received_at", _TIME, nullable=False),
        sa.Column("due_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_github_delivery_state_due", "github_delivery", ["state", "due_at"], unique=False)
    op.create_table(
        "github_repository",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("full_name", sa.String(length=200), nullable=False),
        sa.Column("installation_id", sa.BigInteger(), nullable=False),
        sa.Column("project_id", sa.String(length=40), nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("seen_at", _TIME, nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_github_repository_full_name"), "github_repository", ["full_name"], unique=False)
    op.create_index(op.f("ix_github_repository_project_id"), "github_repository", ["project_id"], unique=False)
    _create_gates()
    op.create_table(
        "github_acceptance",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("project_id", sa.String(length=40), nullable=False),
        sa.Column("kernel", sa.String(length=63), nullable=False),
        sa.Column("subject", sa.String(length=16), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("base_digest", sa.String(length=64), nullable=False),
        sa.Column("cases", sa.JSON(), nullable=False),
        sa.Column("who", sa.String(length=100), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("at", _TIME, nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    columns = ["project_id", "kernel", "digest"]
    op.create_index("ix_github_acceptance_digest", "github_acceptance", columns, unique=False)
    op.create_table(
        "github_approval",
        sa.Column("repository_id", sa.BigInteger(), nullable=False),
        sa.Column("head_sha", sa.String(length=64), nullable=False),
        sa.Column("who", sa.String(length=100), nullable=False),
        sa.Column("at", _TIME, nullable=False),
        sa.ForeignKeyConstraint(["repository_id"], ["github_repository.id"]),
        sa.PrimaryKeyConstraint("repository_id", "head_sha"),
    )


def _create_gates() -> None:
    op.create_table(
        "github_gate",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("repository_id", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("head_sha", sa.String(length=64), nullable=False),
        sa.Column("base_ref", sa.String(length=255), nullable=False),
        sa.Column("base_sha", sa.String(length=64), nullable=True),
        sa.Column("first_parent_index", sa.Integer(), nullable=True),
        sa.Column("fork", sa.Boolean(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("ended", sa.Text(), nullable=True),
        sa.Column("current_since", _TIME, nullable=True),
        sa.Column("as_of", _TIME, nullable=True),
        sa.Column("plan", sa.JSON(), nullable=True),
        sa.Column("plan_tries", sa.Integer(), nullable=False),
        sa.Column("due_at", _TIME, nullable=False),
        sa.Column("check_run_id", sa.BigInteger(), nullable=True),
        sa.Column("sent", sa.String(length=64), nullable=True),
        sa.Column("sent_at", _TIME, nullable=True),
        sa.Column("annotations_sent", sa.Integer(), nullable=False),
        sa.Column("checks", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("publish_at", _TIME, nullable=True),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("started_at", _TIME, nullable=True),
        sa.Column("finished_at", _TIME, nullable=True),
        sa.ForeignKeyConstraint(["repository_id"], ["github_repository.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("repository_id", "kind", "number", "head_sha", "base_ref", name="uq_github_gate_commit"),
    )
    op.create_index("ix_github_gate_head", "github_gate", ["repository_id", "head_sha"], unique=False)
    op.create_index("ix_github_gate_publish", "github_gate", ["publish_at"], unique=False)
    op.create_index("ix_github_gate_state_due", "github_gate", ["state", "due_at"], unique=False)
    op.create_table(
        "github_gate_evaluation",
        sa.Column("gate_id", sa.String(length=40), nullable=False),
        sa.Column("evaluation_id", sa.String(length=40), nullable=False),
        sa.Column("target", sa.Integer(), nullable=False),
        sa.Column("preview", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["evaluation_id"], ["evaluation.id"]),
        sa.ForeignKeyConstraint(["gate_id"], ["github_gate.id"]),
        sa.PrimaryKeyConstraint("gate_id", "evaluation_id"),
    )
    op.create_index(
        op.f("ix_github_gate_evaluation_evaluation_id"), "github_gate_evaluation", ["evaluation_id"], unique=False
    )


def drop() -> None:
    for table in ("approval", "acceptance", "gate_evaluation", "gate", "repository", "delivery"):
        op.drop_table(f"github_{table}")
