"""A side's statics, with what only its launches say: dynamic shared memory, and Triton's code."""

from __future__ import annotations

from pathlib import Path

from contract.outcomes import Reason, Stage
from contract.record import Launch
from contract.statics import FunctionStatics
from worker.building import BuiltSide
from worker.failure import Failed
from worker.inspect import MAX_FUNCTIONS, ElfError, shortened, statics_of_cubin
from worker.recording import RecordedSide


def statics_of(side: BuiltSide, recorded: RecordedSide | None) -> tuple[FunctionStatics, ...]:
    """One entry a launched function and cubin; where nothing was launched, what the builder found.

    Functions go by the same name in every build: the parts that the compiler made up are left out.
    """
    found = side.built.statics if recorded is None else _launched(side, recorded)
    if len(found) > MAX_FUNCTIONS:  # of several cubins
        message = f"{len(found)} functions; at most {MAX_FUNCTIONS} are looked at"
        raise Failed(Reason.COMPILE_ERROR, Stage.INSPECT, message)
    return tuple(
        statics.model_copy(update={"function": _stable(statics.function, side.built.made_up_names)})
        for statics in found
    )


def _launched(side: BuiltSide, recorded: RecordedSide) -> tuple[FunctionStatics, ...]:
    found: dict[tuple[str, str], FunctionStatics] = {}
    for digest, file in recorded.artifact.cubins.items():
        known = side.built.statics if digest in side.built.cubins else _read(Path(file), side.architecture or "")
        found |= {(digest, statics.function): statics for statics in known}
    dynamic: dict[tuple[str, str], int] = {}
    for record in recorded.records.values():
        for launch in record.nodes:
            if isinstance(launch, Launch):
                key = (launch.cubin, shortened(launch.function))
                dynamic[key] = max(dynamic.get(key, 0), launch.shared_bytes)
    return tuple(
        found[key].model_copy(update={"dynamic_shared_bytes": shared})
        for key, shared in dynamic.items()
        if key in found
    )


def _stable(function: str, made_up: tuple[str, ...]) -> str:
    for name in made_up:
        function = function.replace(name, "")
    return function


def _read(file: Path, architecture: str) -> tuple[FunctionStatics, ...]:
    try:
        return statics_of_cubin(file.read_bytes(), architecture=architecture)
    except ElfError as error:
        raise Failed(Reason.NOT_RECORDABLE, Stage.INSPECT, f"a launched cubin can't be read: {error}") from error
