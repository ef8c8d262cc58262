"""What machine code says of itself, without running it and without a GPU."""

from __future__ import annotations

from collections.abc import Iterable

from contract.statics import FunctionStatics
from worker.inspect.cubin import MAX_FUNCTIONS, globals_bytes, statics_of_cubin
from worker.inspect.elf import Elf, ElfError
from worker.inspect.limits import excess
from worker.inspect.names import shortened
from worker.inspect.ptxas import excess_in_log, statics_of_log

__all__ = [
    "MAX_FUNCTIONS",
    "Elf",
    "ElfError",
    "combine",
    "excess",
    "excess_in_log",
    "globals_bytes",
    "shortened",
    "statics_of_cubin",
    "statics_of_log",
]

_LOGGED = {"spill_store_bytes", "spill_load_bytes"}


def combine(from_code: Iterable[FunctionStatics], from_log: Iterable[FunctionStatics]) -> tuple[FunctionStatics, ...]:
    """The code's account, with the compiler's own figures of spills where it gave any: it tells them from local
    arrays. The rest the code says itself."""
    logged = {statics.function: statics for statics in from_log}
    return tuple(
        statics.model_copy(update=logged[statics.function].model_dump(exclude_none=True, include=_LOGGED))
        if statics.function in logged
        else statics
        for statics in from_code
    )
