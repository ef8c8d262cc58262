"""The gate's tables. Ids of GitHub's own things (repositories, check runs, installations) are GitHub's numbers."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, Index, Text, UniqueConstraint
from sqlmodel import Field, SQLModel

from service.columns import id_field, optional_time_field, reference, time_field

Json = dict[str, Any]


class GithubDelivery(SQLModel, table=True):
    """The inbox: one webhook delivery, by GitHub's id, so that none is worked off twice.

    `state`: due, done, refused (said in `error`), failed (given up after its retries; a redelivery tries again).
    `payload` is the body as GitHub signed it, emptied once nothing needs it.
    """

    __tablename__ = "github_delivery"
    __table_args__ = (Index("ix_github_delivery_state_due", "state", "due_at"),)

    id: str = Field(primary_key=True, max_length=64)
    event: str = Field(max_length=64)
    action: str = Field(default="", max_length=64)
    payload: str = Field(sa_type=Text)
    state: str = Field(default="due", max_length=16)
    tries: int = 0
    error: str | None = Field(default=None, sa_type=Text)
    received_at: datetime = time_field()
    due_at: datetime = time_field()


class GithubRepository(SQLModel, table=True):
    """A repository that GitHub itself said is the installation's, and the project that it became. `active`: False
    after the App was taken off it."""

    __tablename__ = "github_repository"

    id: int = Field(primary_key=True, sa_type=BigInteger, sa_column_kwargs={"autoincrement": False})
    full_name: str = Field(index=True, max_length=200)
    installation_id: int = Field(sa_type=BigInteger)
    project_id: str = reference("project.id")
    active: bool = True
    seen_at: datetime = time_field()


class GithubGate(SQLModel, table=True):
    """The gate over one commit: of a pull request, a merge queue, or a push to the default branch (no check).

    `state`: due (to be planned), running, done (a button may wake it again). `plan` is service.github.plans.Plan.
    The row is the check's outbox: `sent` is the digest of what GitHub has of it, `publish_at` when to look again,
    `tries` how often GitHub refused since. `base_sha` is None until it is known (a pull request's merge base).
    `ended` says why it was cancelled; `current_since` is None after a newer head, or the end of the pull request, which
    was as it is here at `as_of` (GitHub's clock).
    `checks` counts the check runs before this one; `version` the times that something else than its evaluations changed
    it. `first_parent_index`: of a push, while the default branch contains it (service.github.line).
    """

    __tablename__ = "github_gate"
    __table_args__ = (
        UniqueConstraint("repository_id", "kind", "number", "head_sha", "base_ref", name="uq_github_gate_commit"),
        Index("ix_github_gate_state_due", "state", "due_at"),
        Index("ix_github_gate_publish", "publish_at"),
        Index("ix_github_gate_head", "repository_id", "head_sha"),
    )

    id: str = id_field("gat")
    repository_id: int = Field(foreign_key="github_repository.id", sa_type=BigInteger)
    kind: str = Field(max_length=16)
    number: int = 0
    head_sha: str = Field(max_length=64)
    base_ref: str = Field(default="", max_length=255)
    base_sha: str | None = Field(default=None, max_length=64)
    first_parent_index: int | None = None
    fork: bool = False
    state: str = Field(default="due", max_length=16)
    ended: str | None = Field(default=None, sa_type=Text)
    current_since: datetime | None = optional_time_field()
    as_of: datetime | None = optional_time_field()
    plan: Json | None = Field(default=None, sa_type=JSON)
    plan_tries: int = 0
    due_at: datetime = time_field()
    check_run_id: int | None = Field(default=None, sa_type=BigInteger)
    sent: str | None = Field(default=None, max_length=64)
    sent_at: datetime | None = optional_time_field()
    annotations_sent: int = 0
    checks: int = 0
    version: int = 0
    publish_at: datetime | None = optional_time_field()
    tries: int = 0
    error: str | None = Field(default=None, sa_type=Text)
    created_at: datetime = time_field()
    started_at: datetime | None = optional_time_field()
    finished_at: datetime | None = optional_time_field()


class GithubGateEvaluation(SQLModel, table=True):
    """An evaluation that a gate asked for, or found asked for. `target`: its place in the plan. `preview`: what an
    edited suite would say; it decides nothing."""

    __tablename__ = "github_gate_evaluation"

    gate_id: str = Field(foreign_key="github_gate.id", primary_key=True, max_length=40)
    evaluation_id: str = Field(foreign_key="evaluation.id", primary_key=True, index=True, max_length=40)
    target: int = 0
    preview: bool = False


class GithubAcceptance(SQLModel, table=True):
    """A person's yes to what the gate can't decide, for one kernel and one digest, wherever it comes up again.

    `subject`: slowdown (digest: the head's bundle; `base_digest`: what it was slower than; `cases`: where, as
    "class case"), suite, new_kernel, removed, revisions (digest: what is accepted).
    """

    __tablename__ = "github_acceptance"
    __table_args__ = (Index("ix_github_acceptance_digest", "project_id", "kernel", "digest"),)

    id: str = id_field("acc")
    project_id: str = reference("project.id", index=False)
    kernel: str = Field(max_length=63)
    subject: str = Field(max_length=16)
    digest: str = Field(max_length=64)
    base_digest: str = Field(default="", max_length=64)
    cases: list[str] = Field(default_factory=list, sa_type=JSON)
    who: str = Field(max_length=100)
    why: str = Field(default="", sa_type=Text)
    at: datetime = time_field()


class GithubApproval(SQLModel, table=True):
    """A fork's commit that someone with write permission lets run. The next push needs another."""

    __tablename__ = "github_approval"

    repository_id: int = Field(foreign_key="github_repository.id", primary_key=True, sa_type=BigInteger)
    head_sha: str = Field(primary_key=True, max_length=64)
    who: str = Field(max_length=100)
    at: datetime = time_field()
