"""ELF files as nobody's compiler writes them."""

from __future__ import annotations

import struct
from dataclasses import astuple, dataclass

from worker.inspect.cubin import EM_CUDA

HEADER, SECTION, SYMBOL = 64, 64, 24
# Where a reader goes wrong: nothing, all, one too many, more than 32 bits, signs, sums that wrap around.
EXTREMES = (0, 1, 0xFFFF, 1 << 20, (1 << 31) - 1, (1 << 32) - 1, 1 << 63, (1 << 64) - 1)


@dataclass(frozen=True)
class Header:
    """Of a section, field by field."""

    name: int = 0
    type: int = 1
    flags: int = 0
    address: int = 0
    offset: int = HEADER
    size: int = 0
    link: int = 0
    info: int = 0
    align: int = 1
    entry: int = 0


def elf(content: bytes, headers: list[Header], *, names: int, machine: int = EM_CUDA) -> bytes:
    """`content` lies behind the file's header, the sections' headers behind that. `names`: which of them has names."""
    table = HEADER + len(content)
    identity = b"\x7fELF\x02\x01\x01" + bytes(9)
    first = struct.pack(
        "<16sHHIQQQIHHHHHH", identity, 2, machine, 1, 0, 0, table, 0, HEADER, 0, 0, SECTION, len(headers), names
    )
    return first + content + b"".join(struct.pack("<IIQQQQIIQQ", *astuple(header)) for header in headers)


def cubin(
    functions: list[tuple[int, int, int]], names: bytes, *, code: bytes = b"", info: bytes = b"", registers: int = 0
) -> bytes:
    """`functions`: (offset of its name in `names`, start, size) each, all in one section of `code`. `registers`: what
    the section's header says of them."""
    of_sections = b"\0.nv.info\0.symtab\0"
    symbols = b"".join(struct.pack("<IBBHQQ", name, 0x12, 0x10, 4, start, size) for name, start, size in functions)
    parts = (of_sections, names, symbols, info, code)
    places = [HEADER + sum(map(len, parts[:at])) for at in range(len(parts))]
    return elf(
        b"".join(parts),
        [
            Header(name=0, type=3, offset=places[0], size=len(of_sections)),
            Header(name=0, type=3, offset=places[1], size=len(names)),
            Header(name=of_sections.index(b".symtab"), type=2, offset=places[2], size=len(symbols), link=1),
            Header(name=of_sections.index(b".nv.info"), offset=places[3], size=len(info)),
            Header(name=0, offset=places[4], size=len(code), info=registers << 24),
        ],
        names=0,
    )


def attribute(number: int, symbol: int, value: int) -> bytes:
    """Of a function: 0x2f its registers, 0x11 its frame."""
    return struct.pack("<BBHII", 4, number, 8, symbol, value)


def with_field(data: bytes, at: int, form: str, value: int) -> bytes:
    """`form` as of struct; the value is cut to it."""
    changed = bytearray(data)
    struct.pack_into(f"<{form}", changed, at, value & ((1 << (8 * struct.calcsize(form))) - 1))
    return bytes(changed)
