"""SASS since Volta, as far as it is counted: 128 bits an instruction, its opcode in the low 12.

The opcodes are those that nvdisasm decodes to the named mnemonics when it is given every opcode with other bits of
many kinds; `tests/worker/test_sass.py` asks it again. None of them means anything else on another of the
architectures.
"""

from __future__ import annotations

import struct
from collections import Counter
from dataclasses import dataclass

from contract.devices import COMPILED_FOR
from contract.statics import InstructionClass, InstructionCounts

_INSTRUCTION = struct.Struct("<QQ")
_ACCESS_BYTES = (1, 1, 2, 2, 4, 8, 16, 0)  # of a memory access, by bits 73 to 75

_OPCODES: dict[InstructionClass, tuple[int, ...]] = {
    # HMMA, IMMA, BMMA, DMMA, QMMA
    "mma": (0x23C, 0x237, 0x23D, 0x23F, 0x27A),
    # HGMMA, IGMMA, BGMMA, QGMMA, each from registers or shared memory
    "wgmma": (0x9F0, 0xDF0, 0x9F1, 0xDF1, 0x9F2, 0xDF2, 0x9F3, 0xDF3),
    # UTCHMMA, UTCOMMA and UTCQMMA share them
    "tcgen05_mma": (0x5EA, 0x9EA, 0xDEA, 0xFEA),
    # LDGSTS
    "async_copy": (0xDAE, 0xFAE),
    # UBLKCP, UBLKRED, UBLKPF; UTMALDG, UTMASTG, UTMAREDG, UTMAPF
    "bulk_copy": (0x3BA, 0x3BB, 0x3BC, 0x3B4, 0x5B4, 0x3B5, 0x3B6, 0x3B8, 0x5B8),
    # MUFU
    "special_function": (0x308, 0x908, 0xB08, 0xD08),
    # BAR of a block; UCGABAR of a cluster; SYNCS, ARRIVES and UTCBAR in shared memory
    "barrier": (
        *(0x31D, 0x51D, 0x91D, 0xB1D, 0x9C7, 0xDC7),
        *(0x3A7, 0x5A7, 0x9A7, 0x5B1, 0x9B1, 0x3B2, 0x5B2, 0x9B2, 0x9B0, 0x3E9, 0x9E9),
    ),
    # LDL
    "local_load": (0x983,),
    # STL
    "local_store": (0x387, 0x987),
}
CLASS_OF: dict[int, InstructionClass] = {code: name for name, codes in _OPCODES.items() for code in codes}


@dataclass(frozen=True, kw_only=True)
class CodeSummary:
    """`counts`: None for an architecture whose opcodes nobody has checked. Bytes are those of one run of each."""

    counts: InstructionCounts | None
    local_store_bytes: int
    local_load_bytes: int


def summarise(code: bytes, *, architecture: str) -> CodeSummary:
    """`code`: of one function; what is left over after its last whole instruction is ignored."""
    counts: Counter[str] = Counter()
    moved: Counter[str] = Counter()
    for low, high in _INSTRUCTION.iter_unpack(code[: len(code) - len(code) % _INSTRUCTION.size]):
        name = CLASS_OF.get(low & 0xFFF)
        if name is not None:
            counts[name] += 1
            moved[name] += _ACCESS_BYTES[(high >> 9) & 7]
    return CodeSummary(
        counts=InstructionCounts(**counts) if architecture in COMPILED_FOR else None,
        local_store_bytes=moved["local_store"],
        local_load_bytes=moved["local_load"],
    )
