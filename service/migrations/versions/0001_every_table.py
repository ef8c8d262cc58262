"""Every table."""

import sqlalchemy as sa
from alembic import op

from service.migrations import github_tables, history_tables

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "bundle",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("bytes", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("digest"),
    )
    op.create_table(
        "node",
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("device_class", sa.String(length=16), nullable=False),
        sa.Column("device", sa.String(length=200), nullable=False),
        sa.Column("driver", sa.String(length=100), nullable=True),
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("healthy", sa.Boolean(), nullable=False),
        sa.Column("problem", sa.Text(), nullable=True),
        sa.Column("sandbox", sa.Boolean(), nullable=False),
        sa.Column("build_only_classes", sa.JSON(), nullable=False),
        sa.Column("spreads", sa.JSON(), nullable=False),
        sa.Column("last_seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("outage_id", sa.String(length=40), nullable=True),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "outage",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("node", sa.String(length=63), nullable=False),
        sa.Column("began_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("why", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["node"], ["node.name"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_outage_node", "outage", ["node", "id"], unique=False)
    op.create_table(
        "project",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("slug", sa.String(length=100), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("slug"),
    )
    op.create_table(
        "idempotency_key",
        sa.Column("project_id", sa.String(length=40), nullable=False),
        sa.Column("key", sa.String(length=200), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("resource_id", sa.String(length=40), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"]),
        sa.PrimaryKeyConstraint("project_id", "key"),
    )
    op.create_table(
        "kernel",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("project_id", sa.String(length=40), nullable=False),
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("operator", sa.String(length=63), nullable=False),
        sa.Column("summary", sa.Text(), nullable=False),
        sa.Column("suite_id", sa.String(length=40), nullable=True),
        sa.Column("listed", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("project_id", "name", name="uq_kernel_project_name"),
    )
    op.create_table(
        "token",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("secret_hash", sa.String(length=64), nullable=False),
        sa.Column("scope", sa.String(length=16), nullable=False),
        sa.Column("project_id", sa.String(length=40), nullable=True),
        sa.Column("node", sa.String(length=63), nullable=True),
        sa.Column("note", sa.String(length=200), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "browser_session",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("secret_hash", sa.String(length=64), nullable=False),
        sa.Column("token_id", sa.String(length=40), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["token_id"], ["token.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_browser_session_token_id"), "browser_session", ["token_id"], unique=False)
    op.create_table(
        "sign_in_code",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("secret_hash", sa.String(length=64), nullable=False),
        sa.Column("token_id", sa.String(length=40), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["token_id"], ["token.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_sign_in_code_token_id"), "sign_in_code", ["token_id"], unique=False)
    op.create_table(
        "standing",
        sa.Column("kernel_id", sa.String(length=40), nullable=False),
        sa.Column("device_class", sa.String(length=16), nullable=False),
        sa.Column("version", sa.String(length=40), nullable=False),
        sa.Column("content", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["kernel_id"], ["kernel.id"]),
        sa.PrimaryKeyConstraint("kernel_id", "device_class"),
    )
    op.create_table(
        "revision",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("kernel_id", sa.String(length=40), nullable=False),
        sa.Column("identity", sa.String(length=200), nullable=False),
        sa.Column("label", sa.String(length=63), nullable=False),
        sa.Column("summary", sa.Text(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=True),
        sa.Column("commit", sa.String(length=64), nullable=True),
        sa.Column("branch", sa.String(length=255), nullable=True),
        sa.Column("mainline", sa.Boolean(), nullable=False),
        sa.Column("pushed_away", sa.Boolean(), nullable=False),
        sa.Column("first_parent_index", sa.Integer(), nullable=True),
        sa.Column("position", sa.Integer(), nullable=True),
        sa.Column("origin", sa.String(length=16), nullable=False),
        sa.Column("provenance", sa.Text(), nullable=True),
        sa.Column("base_label", sa.String(length=63), nullable=True),
        sa.Column("manifest", sa.JSON(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["digest"], ["bundle.digest"]),
        sa.ForeignKeyConstraint(["kernel_id"], ["kernel.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("kernel_id", "identity", name="uq_revision_kernel_identity"),
    )
    op.create_index(op.f("ix_revision_commit"), "revision", ["commit"], unique=False)
    op.create_index(op.f("ix_revision_digest"), "revision", ["digest"], unique=False)
    op.create_index("ix_revision_kernel_label", "revision", ["kernel_id", "label"], unique=False)
    op.create_index(
        "ix_revision_order",
        "revision",
        ["kernel_id", "mainline", "first_parent_index", "position", "created_at", "id"],
        unique=False,
    )
    op.create_table(
        "series",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("kernel_id", sa.String(length=40), nullable=False),
        sa.Column("device_class", sa.String(length=16), nullable=False),
        sa.Column("case", sa.String(length=200), nullable=False),
        sa.Column("metric", sa.String(length=63), nullable=False),
        sa.Column("unit", sa.String(length=32), nullable=False),
        sa.Column("better", sa.String(length=8), nullable=True),
        sa.ForeignKeyConstraint(["kernel_id"], ["kernel.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("kernel_id", "device_class", "case", "metric", name="uq_series_kernel_class_case_metric"),
    )
    op.create_table(
        "suite",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("kernel_id", sa.String(length=40), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("content", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["kernel_id"], ["kernel.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("kernel_id", "digest", name="uq_suite_kernel_digest"),
    )
    op.create_table(
        "evaluation",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("kernel_id", sa.String(length=40), nullable=False),
        sa.Column("revision_id", sa.String(length=40), nullable=False),
        sa.Column("base_id", sa.String(length=40), nullable=True),
        sa.Column("base_key", sa.String(length=40), nullable=False),
        sa.Column("device_class", sa.String(length=16), nullable=False),
        sa.Column("suite_id", sa.String(length=40), nullable=True),
        sa.Column("suite_digest", sa.String(length=64), nullable=False),
        sa.Column("protocol_version", sa.Integer(), nullable=False),
        sa.Column("repeat", sa.Integer(), nullable=False),
        sa.Column("build_only", sa.Boolean(), nullable=False),
        sa.Column("profile", sa.Boolean(), nullable=False),
        sa.Column("priority", sa.String(length=16), nullable=False),
        sa.Column("origin", sa.String(length=16), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("outcome", sa.String(length=32), nullable=True),
        sa.Column("reason", sa.String(length=64), nullable=True),
        sa.Column("message", sa.Text(), nullable=True),
        sa.Column("summary", sa.Text(), nullable=True),
        sa.Column("stage", sa.String(length=16), nullable=True),
        sa.Column("progress", sa.String(length=400), nullable=True),
        sa.Column("cancel_requested", sa.Boolean(), nullable=False),
        sa.Column("cancel_reason", sa.String(length=64), nullable=True),
        sa.Column("attempt_id", sa.String(length=40), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("publish_due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("publishes", sa.Integer(), nullable=False),
        sa.Column("events", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("leased_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("artifact_digest", sa.String(length=64), nullable=True),
        sa.Column("log_digest", sa.String(length=64), nullable=True),
        sa.Column("stages", sa.JSON(), nullable=False),
        sa.Column("left_out", sa.JSON(), nullable=False),
        sa.Column("statics", sa.JSON(), nullable=False),
        sa.Column("base_statics", sa.JSON(), nullable=False),
        sa.Column("environment", sa.JSON(), nullable=True),
        sa.ForeignKeyConstraint(["base_id"], ["revision.id"]),
        sa.ForeignKeyConstraint(["kernel_id"], ["kernel.id"]),
        sa.ForeignKeyConstraint(["revision_id"], ["revision.id"]),
        sa.ForeignKeyConstraint(["suite_id"], ["suite.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint(
            "revision_id",
            "device_class",
            "base_key",
            "suite_digest",
            "protocol_version",
            "repeat",
            "build_only",
            name="uq_evaluation_question",
        ),
    )
    op.create_index(op.f("ix_evaluation_base_id"), "evaluation", ["base_id"], unique=False)
    op.create_index(
        "ix_evaluation_results",
        "evaluation",
        ["kernel_id", "device_class", "state", "outcome", "revision_id", "id"],
        unique=False,
    )
    op.create_index("ix_evaluation_state_id", "evaluation", ["state", "id"], unique=False)
    op.create_index("ix_evaluation_kernel_id", "evaluation", ["kernel_id", "id"], unique=False)
    op.create_index("ix_evaluation_state_publish", "evaluation", ["state", "publish_due_at"], unique=False)
    op.create_table(
        "attempt",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("evaluation_id", sa.String(length=40), nullable=False),
        sa.Column("node", sa.String(length=63), nullable=False),
        sa.Column("lease_hash", sa.String(length=64), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("heartbeat_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("deadline", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("end", sa.String(length=16), nullable=True),
        sa.ForeignKeyConstraint(["evaluation_id"], ["evaluation.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_attempt_evaluation_id"), "attempt", ["evaluation_id"], unique=False)
    op.create_index("ix_attempt_node", "attempt", ["node", "end", "id", "evaluation_id"], unique=False)
    op.create_table(
        "check_result",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("evaluation_id", sa.String(length=40), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("case", sa.String(length=200), nullable=False),
        sa.Column("family", sa.String(length=64), nullable=False),
        sa.Column("passed", sa.Boolean(), nullable=False),
        sa.Column("error", sa.Float(), nullable=True),
        sa.Column("bound", sa.Float(), nullable=True),
        sa.Column("of_bound", sa.Float(), nullable=True),
        sa.Column("reason", sa.String(length=64), nullable=True),
        sa.Column("message", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["evaluation_id"], ["evaluation.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_check_result_evaluation", "check_result", ["evaluation_id", "position"], unique=False)
    op.create_table(
        "comparison",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("evaluation_id", sa.String(length=40), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("case", sa.String(length=200), nullable=False),
        sa.Column("skipped", sa.Text(), nullable=True),
        sa.Column("base_skipped", sa.Text(), nullable=True),
        sa.Column("baseline", sa.String(length=300), nullable=True),
        sa.Column("same_artifact", sa.Boolean(), nullable=False),
        sa.Column("spread_floor", sa.Float(), nullable=True),
        sa.Column("held_s", sa.Float(), nullable=True),
        sa.Column("verdict", sa.String(length=16), nullable=True),
        sa.Column("ratio", sa.Float(), nullable=True),
        sa.Column("low", sa.Float(), nullable=True),
        sa.Column("high", sa.Float(), nullable=True),
        sa.Column("smallest_detectable", sa.Float(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("allowed_slowdown", sa.Float(), nullable=True),
        sa.Column("allowance", sa.Text(), nullable=True),
        sa.Column("measured", sa.String(length=16), nullable=False),
        sa.Column("pairs", sa.JSON(), nullable=False),
        sa.Column("pooled_pairs", sa.Integer(), nullable=False),
        sa.Column("processes", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["evaluation_id"], ["evaluation.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("evaluation_id", "case", name="uq_comparison_evaluation_case"),
    )
    op.create_index("ix_comparison_verdict", "comparison", ["evaluation_id", "case", "verdict"], unique=False)
    op.create_table(
        "event",
        sa.Column("evaluation_id", sa.String(length=40), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["evaluation_id"], ["evaluation.id"]),
        sa.PrimaryKeyConstraint("evaluation_id", "number"),
    )
    op.create_table(
        "measurement",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("series_id", sa.String(length=40), nullable=False),
        sa.Column("revision_id", sa.String(length=40), nullable=False),
        sa.Column("evaluation_id", sa.String(length=40), nullable=False),
        sa.Column("value", sa.Float(), nullable=False),
        sa.Column("low", sa.Float(), nullable=True),
        sa.Column("high", sa.Float(), nullable=True),
        sa.Column("samples", sa.JSON(), nullable=False),
        sa.Column("trusted", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["evaluation_id"], ["evaluation.id"]),
        sa.ForeignKeyConstraint(["revision_id"], ["revision.id"]),
        sa.ForeignKeyConstraint(["series_id"], ["series.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("series_id", "evaluation_id", name="uq_measurement_series_evaluation"),
    )
    op.create_index("ix_measurement_evaluation", "measurement", ["evaluation_id"], unique=False)
    op.create_index(op.f("ix_measurement_revision_id"), "measurement", ["revision_id"], unique=False)
    op.create_index(
        "ix_measurement_line",
        "measurement",
        ["series_id", "trusted", "evaluation_id", "value", "low", "high"],
        unique=False,
    )
    github_tables.create()
    history_tables.create()


def downgrade() -> None:
    history_tables.drop()
    github_tables.drop()
    op.drop_index("ix_measurement_line", table_name="measurement")
    op.drop_index(op.f("ix_measurement_revision_id"), table_name="measurement")
    op.drop_index("ix_measurement_evaluation", table_name="measurement")
    op.drop_table("measurement")
    op.drop_table("event")
    op.drop_index("ix_comparison_verdict", table_name="comparison")
    op.drop_table("comparison")
    op.drop_index("ix_check_result_evaluation", table_name="check_result")
    op.drop_table("check_result")
    op.drop_index("ix_attempt_node", table_name="attempt")
    op.drop_index(op.f("ix_attempt_evaluation_id"), table_name="attempt")
    op.drop_table("attempt")
    op.drop_index("ix_evaluation_state_publish", table_name="evaluation")
    op.drop_index("ix_evaluation_kernel_id", table_name="evaluation")
    op.drop_index("ix_evaluation_state_id", table_name="evaluation")
    op.drop_index("ix_evaluation_results", table_name="evaluation")
    op.drop_index(op.f("ix_evaluation_base_id"), table_name="evaluation")
    op.drop_table("evaluation")
    op.drop_table("suite")
    op.drop_table("series")
    op.drop_index("ix_revision_order", table_name="revision")
    op.drop_index("ix_revision_kernel_label", table_name="revision")
    op.drop_index(op.f("ix_revision_digest"), table_name="revision")
    op.drop_index(op.f("ix_revision_commit"), table_name="revision")
    op.drop_table("revision")
    op.drop_index(op.f("ix_browser_session_token_id"), table_name="browser_session")
    op.drop_table("browser_session")
    op.drop_table("standing")
    op.drop_index(op.f("ix_sign_in_code_token_id"), table_name="sign_in_code")
    op.drop_table("sign_in_code")
    op.drop_table("token")
    op.drop_table("kernel")
    op.drop_table("idempotency_key")
    op.drop_table("project")
    op.drop_index("ix_outage_node", table_name="outage")
    op.drop_table("outage")
    op.drop_table("node")
    op.drop_table("bundle")
