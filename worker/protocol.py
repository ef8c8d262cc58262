"""What the worker's own processes say to each other: pipeline -> recorder, pipeline -> judge, judge -> launchers,
pipeline -> launchers that a tool looks at.

Every message is one line of JSON. The judge and the launchers are started with pipes on stdin and stdout; whatever a
child prints for people goes to stderr. The arena is an inherited file descriptor.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from contract.base import Model
from contract.devices import DeviceClass
from contract.layout import SlotLayout, TensorSpec
from contract.names import CaseId, Digest
from contract.outcomes import Reason
from contract.record import LaunchRecord
from contract.report import CaseResult, Check, Environment, Failure
from contract.spreads import Spread
from contract.suite import Suite

# ---------------------------------------------------------------- pipeline -> recorder (one process per build)


class RecordCase(Model):
    """`tensors`: of the operator, in its order; the recorder knows no more of it."""

    case: CaseId
    dims: dict[str, int]
    tensors: tuple[TensorSpec, ...]


class RecordJob(Model):
    """`source` is the shared library (cuda) or the Python file (triton); records and cubins land in `out_dir`."""

    language: Literal["cuda", "triton"]
    source: str
    entry: str
    cases: tuple[RecordCase, ...]
    cubins: dict[Digest, str] = Field(default={}, description="built ones by digest (cuda); triton adds its own")
    out_dir: str


class Recorded(Model):
    """Recorder -> pipeline, one a case. `record`: a LaunchRecord as JSON in out_dir."""

    kind: Literal["recorded"] = "recorded"
    case: CaseId
    record: str
    cubins: dict[Digest, str]


class RecordFailed(Model):
    kind: Literal["failed"] = "failed"
    case: CaseId
    reason: Reason
    message: str


class Recording(Model):
    """Sent before a case is called, so that a crash can be laid at its door."""

    kind: Literal["recording"] = "recording"
    case: CaseId


RecorderSays = Annotated[Recording | Recorded | RecordFailed, Field(discriminator="kind")]

# ---------------------------------------------------------------- pipeline -> judge (one process per evaluation)


class GpuArtifact(Model):
    kind: Literal["gpu"] = "gpu"
    records: dict[CaseId, str] = Field(description="path of each case's launch record")
    cubins: dict[Digest, str]


class CpuArtifact(Model):
    """On a CPU host code is the kernel: the sandboxed launcher calls the library itself."""

    kind: Literal["cpu"] = "cpu"
    library: str
    entry: str


class InterpretedArtifact(Model):
    """A Triton launcher where there is no card: Triton's interpreter runs it, to be verified and never measured."""

    kind: Literal["interpreted"] = "interpreted"
    source: str
    entry: str


Artifact = Annotated[GpuArtifact | CpuArtifact | InterpretedArtifact, Field(discriminator="kind")]


class Side(Model):
    """`refused` maps the cases that the revision's constraints exclude to the reason."""

    label: str
    artifact_digest: Digest
    artifact: Artifact
    refused: dict[CaseId, str] = {}


class JudgeJob(Model):
    device_class: DeviceClass
    suite: Suite
    head: Side
    base: Side | None
    seed: int = Field(description="secret; never leaves the judge but to the inputs it draws")
    verify: bool = True
    measure: bool = True
    max_processes: int = Field(default=16, ge=1, description="processes a side at the last look")
    call_limit_s: float = Field(default=20.0, description="a launcher that answers later than this is killed")
    calls_limit_s: float = Field(default=900.0, description="what all calls of a side together may take")
    spreads: tuple[Spread, ...] = Field(default=(), description="what identical code is apart on this node")
    run_as: tuple[str, ...] = Field(default=(), description="command prefix for launchers: the sandbox's")


class JudgeProgress(Model):
    kind: Literal["progress"] = "progress"
    stage: Literal["verify", "measure"]
    done: int
    total: int
    detail: str = ""


class JudgeChecked(Model):
    kind: Literal["checked"] = "checked"
    check: Check


class JudgeMeasured(Model):
    """Sent once a case is decided."""

    kind: Literal["measured"] = "measured"
    result: CaseResult


class JudgeStage(Model):
    """A stage began or ended."""

    kind: Literal["stage"] = "stage"
    stage: Literal["verify", "measure"]
    event: Literal["began", "ended"]


class JudgeDone(Model):
    """The last message, whatever happened; without it the judge has crashed (an infrastructure error)."""

    kind: Literal["done"] = "done"
    failure: Failure | None
    environment: Environment


JudgeSays = Annotated[
    JudgeProgress | JudgeChecked | JudgeMeasured | JudgeStage | JudgeDone, Field(discriminator="kind")
]

# ---------------------------------------------------------------- judge -> launcher


class Load(Model):
    """Prepare a case. Replayed launchers get the record, the CPU launcher the library, the interpreter the source, the
    baseline the operator and which of its backends. The CPU launcher and the interpreter answer the workspace that the
    revision asks for; they get the layout with that workspace by a second Load.
    """

    op: Literal["load"] = "load"
    case: CaseId
    dims: dict[str, int]
    layout: SlotLayout
    record: LaunchRecord | None = None
    cubins: dict[Digest, str] = {}
    library: str | None = None
    source: str | None = None
    entry: str | None = None
    operator: str | None = None
    operator_source: str | None = None
    backend: str | None = None


class Attach(Model):
    """Map the arena: this launcher's turn begins."""

    op: Literal["attach"] = "attach"


class Detach(Model):
    op: Literal["detach"] = "detach"


class Prepare(Model):
    """Load modules anew and make ready the calls on these slots, in this order; nothing runs yet.

    `watched`: the place of a call that is timed by itself as well, where launchers have events.
    """

    op: Literal["prepare"] = "prepare"
    slots: tuple[int, ...]
    watched: int | None = None


class Go(Model):
    """Run what was prepared."""

    op: Literal["go"] = "go"


LauncherCommand = Annotated[Load | Attach | Detach | Prepare | Go, Field(discriminator="op")]


class LauncherReply(Model):
    """`elapsed_us`: of the whole burst, by events in the launcher; None on a CPU, where only the judge's clock counts.
    `watched_us`: of the watched call.

    `workspace_bytes`: what the revision asks for (`load` of the CPU launcher and the interpreter, whose reason
    case_refused says that the interpreter can't run it). `baseline`: library, backend and version, and
    `libraries`: their versions (baseline's `load`; ok=False with reason case_refused where a backend lacks the case).
    """

    ok: bool
    reason: Reason | None = None
    message: str = ""
    elapsed_us: float | None = None
    watched_us: float | None = None
    workspace_bytes: int | None = None
    baseline: str | None = None
    libraries: dict[str, str] = {}


# ---------------------------------------------------------------- pipeline -> launcher under a tool of NVIDIA's


class ExamineCase(Model):
    case: CaseId
    record: str
    cubins: dict[Digest, str]


class ExamineJob(Model):
    """A file that the process is given. `seed`: of the inputs."""

    cases: tuple[ExamineCase, ...]
    seed: int


class Examining(Model):
    """Sent before a case is called."""

    kind: Literal["examining"] = "examining"
    case: CaseId


class Examined(Model):
    """Every case has been called to its end."""

    kind: Literal["examined"] = "examined"


ExamineSays = Annotated[Examining | Examined, Field(discriminator="kind")]
