"""What `ptxas -v` says of each entry function.

It comes in one text with what the other compilers say, and they repeat much of a source: a forged line stands beside
ptxas's own, so that of two accounts of one function neither counts.
"""

from __future__ import annotations

import re

from contract.statics import FunctionStatics
from worker.inspect.names import shortened

_ENTRY = re.compile(r"Compiling entry function '([^']+)' for '(sm_\w+)'")
_FRAME = re.compile(r"^\s+(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads$")
_USED = re.compile(r"^ptxas info\s+: Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
_TOO_MUCH = re.compile(r"Entry function '([^']+)' uses too much shared data \((0x[0-9a-f]+) bytes, (0x[0-9a-f]+) max\)")


def statics_of_log(text: str) -> tuple[FunctionStatics, ...]:
    """Registers, spills, stack and static shared memory by function; code size isn't in the log."""
    found: dict[str, FunctionStatics] = {}
    twice: set[str] = set()
    current: str | None = None
    for line in text.splitlines():
        if entry := _ENTRY.search(line):
            current = shortened(entry[1])
            twice |= {current} & set(found)
            found[current] = FunctionStatics(function=current, architecture=entry[2])
            continue
        if current is None:
            continue
        if frame := _FRAME.search(line):
            stack, stores, loads = map(int, frame.groups())
            update = {"stack_bytes": stack, "spill_store_bytes": stores, "spill_load_bytes": loads}
            found[current] = found[current].model_copy(update=update)
        if used := _USED.search(line):
            shared = _SHARED.search(line)
            update = {"registers": int(used[1]), "static_shared_bytes": int(shared[1]) if shared else 0}
            found[current] = found[current].model_copy(update=update)
            current = None
    return tuple(statics for name, statics in found.items() if name not in twice)


def excess_in_log(text: str, *, architecture: str) -> str | None:
    """What ptxas refuses for its size, in words; None where it is something else."""
    found = _TOO_MUCH.search(text)
    if found is None:
        return None
    needed, limit = int(found[2], 16), int(found[3], 16)
    return f"{found[1]} needs {needed} bytes of static shared memory; {architecture} has {limit} a block"
