"""Runs NVIDIA's tools over the head's calls: the last two stages, which measure nothing that is judged.

Each looks at a process of its own that replays launch records in the sandbox, as launchers do.
"""

from __future__ import annotations

import contextlib
import secrets
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from contract.devices import ARCHITECTURES, DeviceClass
from contract.outcomes import Reason, Stage
from contract.record import Launch, LaunchRecord
from contract.report import Metric
from contract.suite import Suite
from worker.examine import ncu, programs, sanitizer
from worker.examine.programs import NotHereError, Program
from worker.failure import Failed
from worker.process import DiskFull, TimedOut
from worker.protocol import ExamineCase, Examined, ExamineJob, ExamineSays, Examining, GpuArtifact, Side
from worker.room import Room
from worker.settings import WorkerSettings

_LOG_BYTES = 16 << 20
_TAIL = 500
_SAYS: TypeAdapter[ExamineSays] = TypeAdapter(ExamineSays)


class NotExaminedError(Exception):
    """The stage is left out, for this reason."""


@dataclass(frozen=True, kw_only=True)
class Looked:
    """`ended`: whether every case was called to its end. `late`: when and where it was ended, if it took too long.
    `tail`: the last that it printed."""

    log: str
    ended: bool
    late: str
    tail: str


@dataclass(frozen=True, kw_only=True)
class Examiner:
    """The head, and where it runs. `left_s`: seconds until the evaluation's own limit."""

    side: Side
    suite: Suite
    device_class: DeviceClass
    room: Room
    settings: WorkerSettings
    on_progress: Callable[[Stage, int, int, str], None]
    left_s: Callable[[], float]

    def sanitize(self) -> str:
        """What was found, in a line. Raises Failed (sanitizer_finding), NotExaminedError, process.Cancelled."""
        program = self._program(programs.compute_sanitizer, self.settings.compute_sanitizer)
        cases = self._checked_cases()
        clean: list[str] = []
        blind: list[str] = []
        for done, tool in enumerate(self.suite.sanitize):
            self.on_progress(Stage.SANITIZE, done, len(self.suite.sanitize), tool)
            try:
                log = self._sanitized(program, tool, cases)
            except NotExaminedError as error:
                blind.append(f"{tool}: {error}")
                continue
            if log.finding is not None:
                # Where it didn't get through all of them, it won't through each alone.
                case = self._blamed(program, tool, cases) if log.errors is not None else None
                raise Failed(Reason.SANITIZER_FINDING, Stage.SANITIZE, f"{tool}: {log.finding}", case=case)
            clean.append(tool)
        found = f"{', '.join(clean)}: no errors in {len(cases)} cases" if clean else ""
        if blind:
            raise NotExaminedError("; ".join(filter(None, (found, *blind))))
        return found

    def profile(self, into: dict[str, tuple[Metric, ...]]) -> None:
        """Of each timed case. Raises NotExaminedError, with what was found so far kept; process.Cancelled."""
        program = self._program(programs.ncu, self.settings.ncu)
        architecture = ARCHITECTURES[self.device_class]
        cases = [self._case(case.id) for case in self.suite.cases if case.id not in self.side.refused]
        for done, case in enumerate(cases):
            self.on_progress(Stage.PROFILE, done, len(cases), case.case)
            functions = [node.function for node in _record(case).nodes if isinstance(node, Launch)]
            if not functions:
                continue
            looked = self._look(
                program,
                [case],
                command=lambda log: ncu.command(program.path, log=log, architecture=architecture),
                limit_s=self.settings.profile_limit_s,
            )
            if looked.late:
                raise NotExaminedError(looked.late)
            try:
                into[case.case] = ncu.metrics_of(looked.log, functions, architecture=architecture)
            except ncu.CountersError as error:
                raise NotExaminedError(f"{case.case}: {error}\n{looked.tail}".strip()) from error

    # ------------------------------------------------------------ what both need

    def _program(self, find: Callable[[str | None], Program], given: str | None) -> Program:
        if not isinstance(self.side.artifact, GpuArtifact):
            raise NotExaminedError("it needs code that runs on a GPU")
        try:
            return find(given)
        except NotHereError as error:
            raise NotExaminedError(str(error)) from error

    def _checked_cases(self) -> list[ExamineCase]:
        """All verify cases, and the smallest that is timed: addresses go wrong at the edges of shapes, and what is
        watched at every access takes many times as long."""
        timed = [self._case(case.id) for case in self.suite.cases if case.id not in self.side.refused]
        least = min(timed, key=lambda case: _record(case).layout.slot_bytes)
        checked = [self._case(case.id) for case in self.suite.verify_cases if case.id not in self.side.refused]
        return [*(case for case in checked if case.case != least.case), least]

    def _case(self, case: str) -> ExamineCase:
        artifact = self.side.artifact
        assert isinstance(artifact, GpuArtifact)  # noqa: S101 - `_program` has seen to it
        record = _read(artifact.records[case])
        used = {node.cubin for node in record.nodes if isinstance(node, Launch)}
        cubins = {digest: file for digest, file in artifact.cubins.items() if digest in used}
        return ExamineCase(case=case, record=artifact.records[case], cubins=cubins)

    def _sanitized(self, program: Program, tool: str, cases: Sequence[ExamineCase]) -> sanitizer.Log:
        looked = self._look(
            program,
            cases,
            command=lambda log: sanitizer.command(program.path, tool, log=log),
            limit_s=self.settings.sanitize_limit_s,
        )
        log = sanitizer.read(looked.log)
        # What it had found by then, it has found.
        if log.finding is None and looked.late:
            raise NotExaminedError(f"{looked.late}; nothing is known of the rest")
        if log.finding is None and (log.errors != 0 or not looked.ended):
            placeless = f"{log.errors} errors, and none has a place in a kernel"
            said = log.complaint or (placeless if log.errors else "it did not get to the end of the calls")
            raise NotExaminedError(f"it could not look: {said}\n{looked.tail}".strip())
        return log

    def _blamed(self, program: Program, tool: str, cases: Sequence[ExamineCase]) -> str | None:
        """The first case of which, alone, the same is said."""
        if len(cases) == 1:
            return cases[0].case
        with contextlib.suppress(NotExaminedError):
            return next((case.case for case in cases if self._sanitized(program, tool, [case]).finding), None)
        return None

    def _look(
        self,
        program: Program,
        cases: Sequence[ExamineCase],
        *,
        command: Callable[[Path], tuple[str, ...]],
        limit_s: float,
    ) -> Looked:
        """One process under the tool, in the sandbox."""
        folder = self.room.folder("examined", secrets.token_hex(4))
        job = folder / "job.json"
        job.write_text(ExamineJob(cases=tuple(cases), seed=secrets.randbits(63)).model_dump_json())
        out = self.room.folder("examined", folder.name, "out")
        log = out / "log"
        inputs = {Path(file).parent for case in cases for file in (case.record, *case.cubins.values())}
        prefix = self.room.sandbox.prefix(readable=(folder, *sorted(inputs), *program.needs), writable=(out,), gpu=True)
        limit_s = min(limit_s, self.left_s())
        if limit_s <= 0:
            raise NotExaminedError("the evaluation has no time left for it")
        ended, late, begun = False, "", [cases[0].case]
        with self.room.start(
            [*prefix, *command(log), sys.executable, *self.settings.examined, str(job)],
            cwd=out,
            limit_s=limit_s,
            stdin=b"",
            writable=(out,),
        ) as child:
            try:
                for line in child.lines():
                    says = _parse(line)
                    ended |= isinstance(says, Examined)
                    if isinstance(says, Examining) and says.case not in begun:
                        begun.append(says.case)
            except TimedOut:
                where = f"{begun[-1]}, case {len(begun)} of {len(cases)}"
                late = f"too slow under the tool: it was ended after {limit_s:.0f} s, in {where}"
            except DiskFull as error:
                raise NotExaminedError(str(error)) from error
            tail = child.stderr.value().decode("utf-8", "replace").strip()[-_TAIL:]
        return Looked(log=_text(log), ended=ended, late=late, tail=tail)


def _record(case: ExamineCase) -> LaunchRecord:
    return _read(case.record)


def _read(file: str) -> LaunchRecord:
    return LaunchRecord.model_validate_json(Path(file).read_bytes())


def _parse(line: bytes) -> ExamineSays | None:
    """None for what a tool says in between."""
    try:
        return _SAYS.validate_json(line)
    except ValidationError:
        return None


def _text(log: Path) -> str:
    """What there is of it: the sandbox let the process write it."""
    try:
        if log.is_symlink():
            return ""
        with log.open("rb") as file:
            return file.read(_LOG_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
