"""Records what each case of one side launches: one recorder process a build, results kept by case, class and driver.

The recorder runs the submission's host code, so that everything it says or writes is checked here as a stranger's.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from contract.devices import DeviceClass
from contract.layout import lay_out
from contract.outcomes import Reason, Stage
from contract.record import Launch, LaunchRecord
from contract.suite import Case, Suite
from worker.building import BuiltSide, call_of, supported_cases
from worker.cache import Cache, key_of
from worker.failure import Failed
from worker.inspect import ElfError, globals_bytes
from worker.operators import tensors_of
from worker.process import Child, DiskFull, LineTooLong, TimedOut
from worker.protocol import GpuArtifact, RecordCase, Recorded, RecorderSays, RecordFailed, Recording, RecordJob
from worker.room import Room
from worker.settings import WorkerSettings
from worker.toolchains.base import COMPILER_FILE_BYTES

_KIND = "record"
_RECORD = "record.json"
MAX_FILE_BYTES = 64 << 20
MAX_GLOBALS_BYTES = 64 << 20  # of a case's cubins, on the device
# What is wrong with a text is told in a hundred times as many bytes.
MAX_RECORD_BYTES, _MAX_LINE_BYTES = 4 << 20, 256 << 10
_SAYS: TypeAdapter[RecorderSays] = TypeAdapter(RecorderSays)
# Reasons that a recorder may give. It is the submission's process: others would be excuses.
_BELIEVED = {
    Reason.COMPILE_ERROR,
    Reason.ENTRY_MISSING,
    Reason.NOT_RECORDABLE,
    Reason.NOT_RELOCATABLE,
    Reason.ARCHITECTURE_UNSUPPORTED,
    Reason.CRASHED,
    Reason.RETURNED_ERROR,
}


@dataclass(frozen=True, kw_only=True)
class RecordedSide:
    artifact: GpuArtifact
    records: dict[str, LaunchRecord]
    digest: str
    cached: bool


def record_side(
    side: BuiltSide,
    *,
    suite: Suite,
    device_class: DeviceClass,
    driver: str,
    room: Room,
    cache: Cache,
    settings: WorkerSettings,
    on_case: Callable[[int, int, str], None],
) -> RecordedSide:
    """Raises Failed, process.Cancelled. `on_case`: cases done, cases in all, the case at hand."""
    cases = supported_cases(side.manifest, suite)
    folder = room.folder(side.ref.label, side.ref.digest[:16], "records")
    keys = {
        case.id: key_of(build=side.key, case=call_of(suite, case), device_class=device_class, driver=driver)
        for case in cases
    }
    found: dict[str, LaunchRecord] = {}
    missing = []
    for index, case in enumerate(cases):
        record = _cached(cache, keys[case.id], folder / str(index), case=case.id)
        if record is None:
            missing.append(case)
        else:
            found[case.id] = record
    if missing:
        fresh = _record(
            side, missing, suite=suite, room=room, settings=settings, on_case=on_case, done=len(found), total=len(cases)
        )
        for case_id, (record, source) in fresh.items():
            place = folder / str([case.id for case in cases].index(case_id))
            _gather(record, source, place)
            cache.put(_KIND, keys[case_id], place)
            found[case_id] = record
    places = {case.id: folder / str(index) for index, case in enumerate(cases)}
    artifact = GpuArtifact(
        records={case_id: str(place / _RECORD) for case_id, place in places.items()},
        cubins={
            digest: str(places[case_id] / f"{digest}.cubin")
            for case_id, record in found.items()
            for digest in cubins_of(record)
        },
    )
    return RecordedSide(
        artifact=artifact, records=found, digest=_digest(side, found, artifact.cubins), cached=not missing
    )


def cubins_of(record: LaunchRecord) -> set[str]:
    return {node.cubin for node in record.nodes if isinstance(node, Launch)}


def _record(
    side: BuiltSide,
    cases: list[Case],
    *,
    suite: Suite,
    room: Room,
    settings: WorkerSettings,
    on_case: Callable[[int, int, str], None],
    done: int,
    total: int,
) -> dict[str, tuple[LaunchRecord, dict[str, Path]]]:
    """Case id -> its record, and the files of the cubins that it launches."""
    out = room.folder(side.ref.label, side.ref.digest[:16], "recorded")
    built = side.built
    job = RecordJob(
        language="cuda" if built.language == "cuda" else "triton",
        source=str(side.file(built.library)) if built.library else str(side.bundle / (built.source or "")),
        entry=built.entry,
        cases=tuple(RecordCase(case=case.id, dims=case.dims, tensors=tensors_of(suite, case)) for case in cases),
        cubins={digest: str(side.file(name)) for digest, name in built.cubins.items()},
        out_dir=str(out),
    )
    program = tuple(Path(word) for word in settings.recorder if word.startswith("/"))
    prefix = room.sandbox.prefix(readable=(side.folder, side.bundle, *program), writable=(out,), gpu=True)
    argv = [*prefix, sys.executable, *settings.recorder]
    wanted = {case.id: case for case in cases}
    begun: list[str] = []
    said: dict[str, Recorded] = {}
    with room.start(
        argv,
        cwd=out,
        limit_s=settings.record_limit_s,
        stdin=job.model_dump_json().encode() + b"\n",
        writable=(out,),
        file_bytes=COMPILER_FILE_BYTES,
    ) as child:
        try:
            for line in child.lines():
                says = _parse(line)
                if isinstance(says, Recording) and says.case in wanted and says.case not in begun:
                    begun.append(says.case)
                    child.ends_at = time.monotonic() + settings.record_limit_s
                    on_case(done + len(said), total, says.case)
                elif isinstance(says, RecordFailed):
                    reason = says.reason if says.reason in _BELIEVED else Reason.CRASHED
                    raise Failed(reason, Stage.RECORD, says.message, case=says.case)
                elif isinstance(says, Recorded) and says.case in wanted:
                    said[says.case] = says
                    if len(said) == len(wanted):
                        break
            else:
                raise _ended_early(child, at=begun[-1] if begun else None)
        except TimedOut as error:
            message = f"the host code had not returned after {settings.record_limit_s:g} s and was ended"
            raise Failed(Reason.TIMED_OUT, Stage.RECORD, message, case=begun[-1] if begun else None) from error
        except DiskFull as error:
            raise Failed(Reason.CRASHED, Stage.RECORD, str(error), case=begun[-1] if begun else None) from error
        except LineTooLong as error:
            raise Failed(Reason.NOT_RECORDABLE, Stage.RECORD, "the recorder's output can't be read") from error
    # Only now: nothing of the submission is alive to change what is checked.
    return {
        case_id: _accept(says, case=wanted[case_id], suite=suite, side=side, out=out) for case_id, says in said.items()
    }


def _parse(line: bytes) -> Recording | Recorded | RecordFailed | None:
    """None for what the submission printed in between."""
    if len(line) > _MAX_LINE_BYTES:
        return None
    try:
        return _SAYS.validate_json(line)
    except ValidationError:
        return None


def _ended_early(child: Child, *, at: str | None) -> Failed:
    code = child.wait()
    tail = child.stderr.value().decode("utf-8", "replace")[-2000:]
    if code >= 0 and at is None:  # before any of the submission's code ran
        return Failed(Reason.INTERNAL_ERROR, Stage.RECORD, f"the recorder ended with {code}: {tail}")
    ended = f"by signal {-code}" if code < 0 else f"with {code}"
    return Failed(Reason.CRASHED, Stage.RECORD, f"the host code ended its process {ended}\n{tail}".strip(), case=at)


def _accept(
    says: Recorded, *, case: Case, suite: Suite, side: BuiltSide, out: Path
) -> tuple[LaunchRecord, dict[str, Path]]:
    try:
        record = LaunchRecord.model_validate_json(_content(Path(says.record), out, most=MAX_RECORD_BYTES))
    except ValidationError as error:
        raise _unreadable(str(error.errors(include_url=False, include_input=False)[0]["msg"]), case) from error
    except (OSError, ValueError) as error:
        raise _unreadable(str(error), case) from error
    layout = lay_out(tensors_of(suite, case), workspace_bytes=record.layout.workspace_bytes)
    if record.case != case.id or record.layout != layout:
        raise Failed(Reason.NOT_RECORDABLE, Stage.RECORD, "the launch record is of another case", case=case.id)
    files: dict[str, Path] = {}
    for digest in cubins_of(record):
        if digest in side.built.cubins:
            files[digest] = side.file(side.built.cubins[digest])
            continue
        file = Path(says.cubins.get(digest, ""))
        # A .cu may launch what nvcc built from it and nothing else; Triton's code is made while recording.
        if side.built.language == "cuda" or not _is_cubin(file, digest=digest, out=out):
            raise Failed(
                Reason.NOT_RECORDABLE, Stage.RECORD, "a launched function isn't in the built code", case=case.id
            )
        files[digest] = file
    _check_globals(files, case)
    return record, files


def _check_globals(files: dict[str, Path], case: Case) -> None:
    """Globals are there as long as the code is loaded: beside the judge and its rivals, who need memory as well."""
    try:
        held = sum(globals_bytes(file.read_bytes()) for file in files.values())
    except (OSError, ElfError) as error:
        message = f"a launched cubin can't be read: {error}"
        raise Failed(Reason.NOT_RECORDABLE, Stage.RECORD, message, case=case.id) from error
    if held > MAX_GLOBALS_BYTES:
        raise Failed(
            Reason.NOT_RECORDABLE,
            Stage.RECORD,
            f"its code has {held} bytes of global variables; at most {MAX_GLOBALS_BYTES} are allowed",
            case=case.id,
        )


def _unreadable(why: str, case: Case) -> Failed:
    return Failed(Reason.NOT_RECORDABLE, Stage.RECORD, f"the launch record can't be read: {why}", case=case.id)


def _content(file: Path, out: Path, *, most: int = MAX_FILE_BYTES) -> bytes:
    if file.is_symlink() or file.parent.resolve() != out.resolve() or not file.is_file() or file.stat().st_size > most:
        raise ValueError("it is not a plain file of the recorder's folder, or too large")
    return file.read_bytes()


def _is_cubin(file: Path, *, digest: str, out: Path) -> bool:
    try:
        return hashlib.sha256(_content(file, out)).hexdigest() == digest
    except (OSError, ValueError):
        return False


def _gather(record: LaunchRecord, cubins: dict[str, Path], place: Path) -> None:
    place.mkdir(parents=True, exist_ok=True)
    (place / _RECORD).write_text(record.model_dump_json())
    for digest, file in cubins.items():
        shutil.copyfile(file, place / f"{digest}.cubin")


def _cached(cache: Cache, key: str, into: Path, *, case: str) -> LaunchRecord | None:
    if not cache.get(_KIND, key, into):
        return None
    try:
        record = LaunchRecord.model_validate_json((into / _RECORD).read_bytes())
    except (OSError, ValidationError):
        record = None
    if record is None or record.case != case or not all((into / f"{d}.cubin").exists() for d in cubins_of(record)):
        shutil.rmtree(into, ignore_errors=True)
        return None
    return record


def _digest(side: BuiltSide, records: dict[str, LaunchRecord], cubins: dict[str, str]) -> str:
    """Of what runs on a GPU: cubins, launch records, toolchain; without the names that a compiler makes up."""
    parts = {f"case {case_id}": record.model_dump_json() for case_id, record in sorted(records.items())}
    for digest, file in cubins.items():
        code = Path(file).read_bytes()
        for name in side.built.made_up_names:
            code = code.replace(name.encode(), b"0" * len(name))
        plain = hashlib.sha256(code).hexdigest()
        parts = {case: text.replace(digest, plain) for case, text in parts.items()}
    for name in side.built.made_up_names:
        parts = {case: text.replace(name, "0" * len(name)) for case, text in parts.items()}
    return key_of(**parts, **side.built.toolchain)
