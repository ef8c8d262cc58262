"""A side's statics, with what only its launches say: dynamic shared memory, and Triton's code."""

from __future__ import annotations

from pathlib import Path

from contract.outcomes import Reason, Stage
from contract.record import Launch
from contract.statics import FunctionStatics
from worker.building import BuiltSide
from worker.failure import Failed
from worker.inspect import ElfError, statics_of_cubin
from worker.recording import RecordedSide


def statics_of(side: BuiltSide, recorded: RecordedSide | None) -> tuple[FunctionStatics, ...]:
    """One entry a launched function and cubin; on a CPU what the builder found."""
    if recorded is None:
        return side.built.statics
    found: dict[tuple[str, str], FunctionStatics] = {}
    for digest, file in recorded.artifact.cubins.items():
        known = side.built.statics if digest in side.built.cubins else _read(Path(file), side.architecture or "")
        found |= {(digest, statics.function): statics for statics in known}
    dynamic: dict[tuple[str, str], int] = {}
    for record in recorded.records.values():
        for launch in record.nodes:
            if isinstance(launch, Launch):
                key = (launch.cubin, launch.function[:1000])
                dynamic[key] = max(dynamic.get(key, 0), launch.shared_bytes)
    return tuple(
        found[key].model_copy(update={"shared_bytes": (found[key].shared_bytes or 0) + shared})
        for key, shared in dynamic.items()
        if key in found
    )


def _read(file: Path, architecture: str) -> tuple[FunctionStatics, ...]:
    try:
        return statics_of_cubin(file.read_bytes(), architecture=architecture)
    except ElfError as error:
        raise Failed(Reason.NOT_RECORDABLE, Stage.INSPECT, f"a launched cubin can't be read: {error}") from error
