"""Runs the judge over both sides and collects what it says."""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from contract.devices import DeviceClass
from contract.outcomes import Reason, Stage
from contract.report import CaseResult, Check, Environment, Failure, StageTime
from contract.suite import Suite
from worker.failure import Failed
from worker.process import Child, LineTooLong, TimedOut
from worker.protocol import (
    CpuArtifact,
    GpuArtifact,
    InterpretedArtifact,
    JudgeChecked,
    JudgeDone,
    JudgeJob,
    JudgeMeasured,
    JudgeProgress,
    JudgeSays,
    JudgeStage,
    Side,
)
from worker.room import Room
from worker.settings import WorkerSettings
from worker.spreads import stored

_CALLS_A_CASE_S = 60.0  # the least of all calls' limit for each case
_SAYS: TypeAdapter[JudgeSays] = TypeAdapter(JudgeSays)


@dataclass
class Judged:
    """What the judge has said so far: kept even where it ends early."""

    checks: list[Check] = field(default_factory=list)
    cases: list[CaseResult] = field(default_factory=list)
    stages: list[StageTime] = field(default_factory=list)
    failure: Failure | None = None
    environment: Environment | None = None
    log: str = ""


def judge(
    head: Side,
    base: Side | None,
    *,
    suite: Suite,
    device_class: DeviceClass,
    room: Room,
    settings: WorkerSettings,
    into: Judged,
    on_progress: Callable[[Stage, int, int, str], None],
    measure: bool = True,
    call_limit_s: float | None = None,
) -> None:
    """Raises Failed where the judge itself fails, process.Cancelled. `call_limit_s`: instead of the settings'."""
    gpu = device_class != DeviceClass.CPU
    readable = sorted({path for side in (head, base) if side for path in _needed(side)})
    job = JudgeJob(
        device_class=device_class,
        suite=suite,
        head=head,
        base=base,
        seed=secrets.randbits(63),
        measure=measure,
        max_processes=settings.max_processes,
        call_limit_s=call_limit_s or settings.call_limit_s,
        calls_limit_s=max(settings.calls_limit_s, _CALLS_A_CASE_S * len(suite.cases)),
        spreads=stored(settings).spreads,
        run_as=room.sandbox.prefix(readable=readable, writable=(), gpu=gpu),
    )
    message = job.model_dump_json().encode() + b"\n"
    stage, began = Stage.VERIFY, datetime.now(UTC)
    # The judge's own kernels take seconds to compile. What runs a submission's host code isn't told the folder.
    own = {"CUPY_CACHE_DIR": str(settings.cache_dir / "cupy")} if gpu else {}
    with room.start(
        [sys.executable, *settings.judge],
        cwd=room.folder("judge"),
        limit_s=settings.silence_limit_s,
        stdin=message,
        variables=own,
    ) as child:
        try:
            for line in child.lines():
                child.ends_at = time.monotonic() + settings.silence_limit_s
                says = _parse(line)
                match says:
                    case JudgeProgress():
                        on_progress(Stage(says.stage), says.done, says.total, says.detail)
                    case JudgeChecked():
                        into.checks.append(says.check)
                    case JudgeMeasured():
                        into.cases.append(says.result)
                    case JudgeStage(event="began"):
                        stage, began = Stage(says.stage), datetime.now(UTC)
                        on_progress(stage, 0, 0, "")
                    case JudgeStage():
                        into.stages.append(StageTime(stage=stage, started_at=began, ended_at=datetime.now(UTC)))
                    case JudgeDone():
                        into.failure, into.environment = says.failure, says.environment
                        break
            else:
                raise _crashed(child, stage)
        except TimedOut as error:
            message_text = f"the judge said nothing for {settings.silence_limit_s:g} s and was ended"
            raise Failed(Reason.INTERNAL_ERROR, stage, message_text) from error
        except LineTooLong as error:
            raise Failed(Reason.INTERNAL_ERROR, stage, "the judge sent a line without an end") from error
        finally:
            into.log = child.stderr.value().decode("utf-8", "replace")


def _needed(side: Side) -> set[Path]:
    """What its launchers load; where that is a library or cubins, neither sources nor records."""
    match side.artifact:
        case GpuArtifact(cubins=cubins):
            return {Path(file).parent for file in cubins.values()}
        case CpuArtifact(library=file) | InterpretedArtifact(source=file):
            return {Path(file).parent}


def _parse(line: bytes) -> JudgeSays | None:
    try:
        return _SAYS.validate_json(line)
    except ValidationError as error:
        problem = error.errors(include_input=False)[0]
        raise Failed(
            Reason.INTERNAL_ERROR, Stage.VERIFY, f"the judge's message can't be read: {problem['loc']} {problem['msg']}"
        ) from error


def _crashed(child: Child, stage: Stage) -> Failed:
    code = child.wait()
    ended = f"by signal {-code}" if code < 0 else f"with {code}"
    tail = child.stderr.value().decode("utf-8", "replace")[-3000:]
    return Failed(Reason.INTERNAL_ERROR, stage, f"the judge ended {ended} before it was done\n{tail}".strip())
