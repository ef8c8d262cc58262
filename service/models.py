"""The tables. Each docstring says what a row is.

Enumerations are kept as their spelling (`State`, `Outcome`, `Verdict`, `DeviceClass`, `Scope`), so that a new member
needs no migration. Names of columns are the API's. No table keeps a secret: tokens and leases are SHA-256 digests of
256 random bits.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Index, Text, UniqueConstraint
from sqlmodel import Field, SQLModel

from service.columns import id_field, optional_reference, optional_time_field, reference, time_field

Json = dict[str, Any]


class Project(SQLModel, table=True):
    """A repository, or `local`: owns kernels, suites and tokens. Addressed by its slug."""

    id: str = id_field("prj")
    slug: str = Field(unique=True, max_length=100)
    name: str = Field(default="", max_length=200)
    created_at: datetime = time_field()


class Kernel(SQLModel, table=True):
    """One named line of implementations of an operator. `suite_id` is its current suite; `listed` is the suite's list
    of revisions (folder names in order), which may grow without the suite's digest changing. An imported kernel has
    an operator and no suite."""

    __table_args__ = (UniqueConstraint("project_id", "name", name="uq_kernel_project_name"),)

    id: str = id_field("krn")
    project_id: str = reference("project.id", index=False)
    name: str = Field(max_length=63)
    operator: str = Field(default="", max_length=63)
    summary: str = Field(default="", sa_type=Text)
    suite_id: str | None = Field(default=None, max_length=40)  # no foreign key: the two tables would form a cycle
    listed: list[str] = Field(default_factory=list, sa_type=JSON)
    created_at: datetime = time_field()


class Suite(SQLModel, table=True):
    """One version of a kernel's suite, by its digest; `content` is contract.suite.Suite as JSON with an empty list of
    revisions. Rows never change: an evaluation keeps the version that it was queued with."""

    __table_args__ = (UniqueConstraint("kernel_id", "digest", name="uq_suite_kernel_digest"),)

    id: str = id_field("sui")
    kernel_id: str = reference("kernel.id", index=False)
    digest: str = Field(max_length=64)
    content: Json = Field(sa_type=JSON)
    created_at: datetime = time_field()


class Bundle(SQLModel, table=True):
    """The files of revisions, stored once per digest in the store under `bundles/`; `bytes` is the archive's size."""

    digest: str = Field(primary_key=True, max_length=64)
    bytes: int
    created_at: datetime = time_field()


class Revision(SQLModel, table=True):
    """One immutable version of a kernel.

    `identity` makes it unique within its kernel: bundle digest and commit for a submitted revision, whatever the
    importer chooses for an imported one. `position`: the place of its label in the suite's list, None where it isn't
    listed. A series orders mainline revisions by (first_parent_index, position, created_at), None last.
    `digest` and `manifest` are None for imported revisions; `provenance` is None for submitted ones.
    `base_label` is what an imported history names as the base. `pushed_away`: it was on the mainline, and the branch
    was rewritten without it.
    """

    __table_args__ = (
        UniqueConstraint("kernel_id", "identity", name="uq_revision_kernel_identity"),
        Index("ix_revision_kernel_label", "kernel_id", "label"),
        # What puts a kernel's revisions in order, read without the rows.
        Index("ix_revision_order", "kernel_id", "mainline", "first_parent_index", "position", "created_at", "id"),
    )

    id: str = id_field("rev")
    kernel_id: str = reference("kernel.id", index=False)
    identity: str = Field(max_length=200)
    label: str = Field(max_length=63)
    summary: str = Field(default="", sa_type=Text)
    digest: str | None = Field(default=None, foreign_key="bundle.digest", index=True, max_length=64)
    commit: str | None = Field(default=None, index=True, max_length=64)
    branch: str | None = Field(default=None, max_length=255)
    mainline: bool = False
    pushed_away: bool = False
    first_parent_index: int | None = None
    position: int | None = None
    origin: str = Field(default="submitted", max_length=16)
    provenance: str | None = Field(default=None, sa_type=Text)
    base_label: str | None = Field(default=None, max_length=63)
    manifest: Json | None = Field(default=None, sa_type=JSON)
    created_at: datetime = time_field()


class IdempotencyKey(SQLModel, table=True):
    """A client's `Idempotency-Key` within a project: what it asked (`fingerprint`) and what it was answered."""

    __tablename__ = "idempotency_key"

    project_id: str = Field(foreign_key="project.id", primary_key=True, max_length=40)
    key: str = Field(primary_key=True, max_length=200)
    fingerprint: str = Field(max_length=64)
    resource_id: str = Field(max_length=40)
    created_at: datetime = time_field()


class Evaluation(SQLModel, table=True):
    """(revision, device class, base, suite, protocol version, repeat, build_only). A row in state `queued` is the
    outbox: `publish_due_at` is when its message is to be published (again).

    `base_key` is `base_id` or "" (a unique constraint takes NULLs for different). An imported comparison is an
    evaluation in state `finished` too, with `origin` imported and no suite, so that histories read one shape.
    `outcome` is NULL until it ends. `attempt_id` is the attempt that holds the lease, `attempts` how many there were.
    JSON columns keep what is shown and never searched: `stages` [StageTime], `left_out` [LeftOut], `statics` and
    `base_statics` [FunctionStatics], `environment` (Environment).
    """

    __table_args__ = (
        UniqueConstraint(
            "revision_id",
            "device_class",
            "base_key",
            "suite_digest",
            "protocol_version",
            "repeat",
            "build_only",
            name="uq_evaluation_question",
        ),
        Index("ix_evaluation_state_publish", "state", "publish_due_at"),
        # Which revisions of a kernel have a result on a class, read without the rows.
        Index("ix_evaluation_results", "kernel_id", "device_class", "state", "outcome", "revision_id", "id"),
        Index("ix_evaluation_state_id", "state", "id"),
        Index("ix_evaluation_kernel_id", "kernel_id", "id"),
    )

    id: str = id_field("ev")
    kernel_id: str = reference("kernel.id", index=False)
    revision_id: str = reference("revision.id", index=False)
    base_id: str | None = optional_reference("revision.id")
    base_key: str = Field(default="", max_length=40)
    device_class: str = Field(max_length=16)
    suite_id: str | None = optional_reference("suite.id", index=False)
    suite_digest: str = Field(default="", max_length=64)
    protocol_version: int
    repeat: int = 1
    build_only: bool = False
    profile: bool = False
    priority: str = Field(default="normal", max_length=16)
    origin: str = Field(default="submitted", max_length=16)

    state: str = Field(default="queued", max_length=16)
    outcome: str | None = Field(default=None, max_length=32)
    reason: str | None = Field(default=None, max_length=64)
    message: str | None = Field(default=None, sa_type=Text)
    summary: str | None = Field(default=None, sa_type=Text)
    stage: str | None = Field(default=None, max_length=16)
    progress: str | None = Field(default=None, max_length=400)
    cancel_requested: bool = False
    cancel_reason: str | None = Field(default=None, max_length=64)

    attempt_id: str | None = Field(default=None, max_length=40)
    attempts: int = 0
    publish_due_at: datetime | None = optional_time_field()
    publishes: int = 0
    events: int = 0
    created_at: datetime = time_field()
    leased_at: datetime | None = optional_time_field()
    finished_at: datetime | None = optional_time_field()

    artifact_digest: str | None = Field(default=None, max_length=64)
    log_digest: str | None = Field(default=None, max_length=64)
    stages: list[Json] = Field(default_factory=list, sa_type=JSON)
    left_out: list[Json] = Field(default_factory=list, sa_type=JSON)
    statics: list[Json] = Field(default_factory=list, sa_type=JSON)
    base_statics: list[Json] = Field(default_factory=list, sa_type=JSON)
    environment: Json | None = Field(default=None, sa_type=JSON)


class Attempt(SQLModel, table=True):
    """One try at an evaluation by one node, under a lease. `lease_hash`: the digest of the lease token, hex.
    `end`: reported, expired, cancelled; None while the lease lives."""

    __table_args__ = (Index("ix_attempt_node", "node", "end", "id", "evaluation_id"),)

    id: str = id_field("att")
    evaluation_id: str = reference("evaluation.id")
    node: str = Field(max_length=63)
    lease_hash: str = Field(max_length=64)
    started_at: datetime = time_field()
    heartbeat_at: datetime = time_field()
    deadline: datetime = time_field()
    ended_at: datetime | None = optional_time_field()
    end: str | None = Field(default=None, max_length=16)


class Series(SQLModel, table=True):
    """(kernel, device class, case, metric): one line of a history. `better`: lower, higher, or None (not judged)."""

    __table_args__ = (
        UniqueConstraint("kernel_id", "device_class", "case", "metric", name="uq_series_kernel_class_case_metric"),
    )

    id: str = id_field("ser")
    kernel_id: str = reference("kernel.id", index=False)
    device_class: str = Field(max_length=16)
    case: str = Field(max_length=200)
    metric: str = Field(max_length=63)
    unit: str = Field(max_length=32)
    better: str | None = Field(default=None, max_length=8)


class Measurement(SQLModel, table=True):
    """One value of a series, of one evaluation of one revision, with its interval and the samples where kept.
    `trusted` is False where the evaluation ended so that no history may draw it (incorrect, untrusted, …)."""

    __table_args__ = (
        UniqueConstraint("series_id", "evaluation_id", name="uq_measurement_series_evaluation"),
        # A line of a chart, read without the rows.
        Index("ix_measurement_line", "series_id", "trusted", "evaluation_id", "value", "low", "high"),
        Index("ix_measurement_evaluation", "evaluation_id"),
    )

    id: str = id_field("mea")
    series_id: str = reference("series.id", index=False)
    revision_id: str = reference("revision.id")
    evaluation_id: str = reference("evaluation.id", index=False)
    value: float
    low: float | None = None
    high: float | None = None
    samples: list[float] = Field(default_factory=list, sa_type=JSON)
    trusted: bool = True


class Comparison(SQLModel, table=True):
    """One case of one evaluation: its verdict against the base (None without a base), and the evidence.

    `ratio` = time_head / time_base, with `low` and `high` as its interval. `pairs` ([contract.samples.Pair]) are this
    evaluation's own; the verdict may rest on `pooled_pairs` more, from earlier repeats. `processes` is what a chart
    shows of them: [median of the base's calls, median of the head's], a pair each. `allowance` is the suite's
    reason where a slowdown is forgiven; `allowed_slowdown` what the policy allowed. `baseline` names library,
    backend and version of what the case's baseline metrics were measured with.
    """

    __table_args__ = (
        UniqueConstraint("evaluation_id", "case", name="uq_comparison_evaluation_case"),
        Index("ix_comparison_verdict", "evaluation_id", "case", "verdict"),
    )

    id: str = id_field("cmp")
    evaluation_id: str = reference("evaluation.id", index=False)
    position: int = 0
    case: str = Field(max_length=200)
    skipped: str | None = Field(default=None, sa_type=Text)
    base_skipped: str | None = Field(default=None, sa_type=Text)
    baseline: str | None = Field(default=None, max_length=300)
    same_artifact: bool = False
    spread_floor: float | None = None
    held_s: float | None = None
    verdict: str | None = Field(default=None, max_length=16)
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    smallest_detectable: float | None = None
    reason: str | None = Field(default=None, sa_type=Text)
    allowed_slowdown: float | None = None
    allowance: str | None = Field(default=None, sa_type=Text)
    measured: str = Field(default="none", max_length=16)
    pairs: list[Json] = Field(default_factory=list, sa_type=JSON)
    pooled_pairs: int = 0
    processes: list[list[float]] = Field(default_factory=list, sa_type=JSON)


class CheckResult(SQLModel, table=True):
    """One verification of one evaluation: (case, input family), its worst error as a share of its bound."""

    __tablename__ = "check_result"
    __table_args__ = (Index("ix_check_result_evaluation", "evaluation_id", "position"),)

    id: str = id_field("chk")
    evaluation_id: str = reference("evaluation.id", index=False)
    position: int
    case: str = Field(max_length=200)
    family: str = Field(max_length=64)
    passed: bool
    error: float | None = None
    bound: float | None = None
    of_bound: float | None = None
    reason: str | None = Field(default=None, max_length=64)
    message: str = Field(default="", sa_type=Text)


class Node(SQLModel, table=True):
    """One GPU (or one CPU host), as it last described itself. Whether it is busy follows from the attempts.
    `outage_id`: the outage that is open, if one is."""

    name: str = Field(primary_key=True, max_length=63)
    device_class: str = Field(max_length=16)
    device: str = Field(max_length=200)
    driver: str | None = Field(default=None, max_length=100)
    host: str = Field(max_length=255)
    healthy: bool = True
    problem: str | None = Field(default=None, sa_type=Text)
    sandbox: bool = False
    build_only_classes: list[str] = Field(default_factory=list, sa_type=JSON)
    spreads: list[Json] = Field(default_factory=list, sa_type=JSON)
    last_seen_at: datetime = time_field()
    outage_id: str | None = Field(default=None, max_length=40)  # no foreign key: the two tables would form a cycle


class Outage(SQLModel, table=True):
    """A stretch in which a node could not be used. `why`: what the node said, or that it was not heard of."""

    __table_args__ = (Index("ix_outage_node", "node", "id"),)

    id: str = id_field("out")
    node: str = Field(foreign_key="node.name", max_length=63)
    began_at: datetime = time_field()
    ended_at: datetime | None = optional_time_field()
    why: str = Field(sa_type=Text)


class Token(SQLModel, table=True):
    """A bearer token: its digest, its scope, and what it is bound to (a project, a node). `expires_at`: only where it
    was given out for a CI job."""

    id: str = id_field("tok")
    secret_hash: str = Field(max_length=64)
    scope: str = Field(max_length=16)
    project_id: str | None = optional_reference("project.id", index=False)
    node: str | None = Field(default=None, max_length=63)
    note: str = Field(default="", max_length=200)
    created_at: datetime = time_field()
    expires_at: datetime | None = optional_time_field()


class BrowserSession(SQLModel, table=True):
    """A cookie that stands for a token; it ends with it."""

    __tablename__ = "browser_session"

    id: str = id_field("ses")
    secret_hash: str = Field(max_length=64)
    token_id: str = reference("token.id")
    expires_at: datetime = time_field()


class SignInCode(SQLModel, table=True):
    """What a one-time link carries: signs one browser in as `token_id`, once. Its row is deleted by that."""

    __tablename__ = "sign_in_code"

    id: str = id_field("cod")
    secret_hash: str = Field(max_length=64)
    token_id: str = reference("token.id")
    expires_at: datetime = time_field()


class Standing(SQLModel, table=True):
    """Where a kernel stands on a class: contract.views.Standing as JSON, written anew in every transaction that adds to
    or reorders its history, so that the overview reads one row a line. `version` is new whenever that is: an answer
    that was made of this history before is out of date."""

    kernel_id: str = Field(foreign_key="kernel.id", primary_key=True, max_length=40)
    device_class: str = Field(primary_key=True, max_length=16)
    version: str = Field(max_length=40)
    content: Json = Field(sa_type=JSON)


class Event(SQLModel, table=True):
    """One step of an evaluation's progress stream. `number` counts from 1 and is the SSE id.
    `kind`: state, progress, finished."""

    evaluation_id: str = Field(foreign_key="evaluation.id", primary_key=True, max_length=40)
    number: int = Field(primary_key=True)
    kind: str = Field(max_length=16)
    data: Json = Field(sa_type=JSON)
    at: datetime = time_field()
