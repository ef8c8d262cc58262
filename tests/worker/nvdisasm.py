"""What NVIDIA's own disassembler says, and the classes that its mnemonics fall into."""

from __future__ import annotations

import importlib.util
import re
import struct
import subprocess
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

Instruction = tuple[int, int]

FAMILIES = {
    "mma": r"[HIBDQ]MMA",
    "wgmma": r"[HIBQ]GMMA",
    "tcgen05_mma": r"UTC\w*MMA",
    "async_copy": r"LDGSTS",
    "bulk_copy": r"UBLK\w+|UTMA(LDG|STG|REDG|PF)",
    "special_function": r"MUFU",
    "barrier": r"BAR|UCGABAR_\w+|SYNCS|ARRIVES|UTCBAR",
    "local_load": r"LDL",
    "local_store": r"STL",
}
_LINE = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)")
_SECTION = re.compile(r"^\.text\.(\S+):$")
_RAW = struct.Struct("<QQ")


def class_of(mnemonic: str) -> str | None:
    return next((name for name, pattern in FAMILIES.items() if re.fullmatch(pattern, mnemonic)), None)


def counts_by_function(cubin: Path) -> dict[str, dict[str, int]]:
    """Function -> class -> how many; classes without any are left out."""
    done = subprocess.run([_program(), "-c", "-novliw", cubin], capture_output=True, text=True, check=True)
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    function = ""
    for line in done.stdout.splitlines():
        if section := _SECTION.match(line):
            function = section[1]
            found[function] = Counter()
        elif (instruction := _LINE.search(line)) and (name := class_of(instruction[2])):
            found[function][name] += 1
    return {name: dict(counts) for name, counts in found.items()}


def mnemonics(instructions: list[Instruction], *, architecture: str, folder: Path) -> list[tuple[Instruction, str]]:
    """Those of the instructions that the architecture has, each with its mnemonic."""
    file = folder / "raw.bin"
    left = instructions
    while left:
        file.write_bytes(b"".join(_RAW.pack(*each) for each in left))
        argv = [_program(), "-b", architecture.replace("sm_", "SM"), "-ndf", "-novliw", file]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        wrong = {int(at, 16) // _RAW.size for at in re.findall(r"at address 0x([0-9a-f]+)", done.stderr)}
        if not wrong:
            break
        left = [each for place, each in enumerate(left) if place not in wrong]
    return [(left[int(at, 16) // _RAW.size], mnemonic) for at, mnemonic in _LINE.findall(done.stdout)] if left else []


@cache
def _program() -> Path:
    """The one that Triton brings along."""
    triton = importlib.util.find_spec("triton")
    assert triton is not None
    assert triton.origin is not None
    return Path(triton.origin).parent / "backends/nvidia/bin/nvdisasm"
