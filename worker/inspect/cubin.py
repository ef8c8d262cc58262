"""Registers, spills, stack, static shared memory, code size and instructions of each function, read from a cubin.

The layout of `.nv.info` (attributes as format, number, size, value) is what `cuobjdump -elf` prints. Spills are the
bytes that the local loads and stores move: the sum over all STL and LDL equals ptxas's own "spill stores" and "spill
loads" wherever a function keeps no array in local memory (compared on sm_80 to sm_103a), and Triton's never do.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from contract.statics import FunctionStatics
from worker.inspect.elf import NO_BITS, Elf, ElfError, Symbol
from worker.inspect.names import is_plain, shortened
from worker.inspect.sass import summarise

EM_CUDA = 190
MAX_FUNCTIONS = 512
_MAX_INFO_BYTES = 4 << 20
_MAX_VALUE = (1 << 31) - 1  # of anything that is told of a function

_REGISTERS = 0x2F  # EIATTR_REGCOUNT: (symbol, count)
_FRAME_BYTES = 0x11  # EIATTR_FRAME_SIZE: (symbol, bytes)
_RESERVED_SHARED_BYTES = 1024  # the system's own in each block, CUDA programming guide, "shared memory" from 9.0 on
_SIZED = 4  # EIFMT_SVAL: the only format that carries bytes behind its header


def statics_of_cubin(data: bytes, *, architecture: str) -> tuple[FunctionStatics, ...]:
    """One entry a function, in the order of the symbol table; raises ElfError."""
    elf = Elf(data)
    if elf.machine != EM_CUDA:
        raise ElfError("not a cubin")
    symbols = elf.symbols(".symtab")
    registers, frames = _attributes(elf)
    reserved = _RESERVED_SHARED_BYTES if elf.section(".nv.shared.reserved.0") else 0
    found: list[FunctionStatics] = []
    unread = len(data)
    for index, symbol in enumerate(symbols):
        if symbol.is_defined_function and index in registers:
            if len(found) == MAX_FUNCTIONS:
                raise ElfError(f"over {MAX_FUNCTIONS} functions: nothing is told of some and not of others")
            unread -= symbol.size
            if unread < 0:
                raise ElfError("its functions are larger than the file")
            if not is_plain(symbol.name):
                raise ElfError("a function has a name that no compiler gives")
            code = summarise(_code(elf, symbol), architecture=architecture)
            found.append(
                FunctionStatics(
                    function=shortened(symbol.name),
                    architecture=architecture,
                    registers=_counted(max(registers[index], _registers_of_section(elf, symbol))),
                    spill_store_bytes=code.local_store_bytes,
                    spill_load_bytes=code.local_load_bytes,
                    stack_bytes=_counted(frames[index]) if index in frames else None,
                    static_shared_bytes=_counted(_static_shared_bytes(elf, symbol, reserved=reserved)),
                    code_bytes=symbol.size,
                    instructions=code.counts,
                )
            )
    return tuple(found)


def globals_bytes(data: bytes) -> int:
    """Of the device memory that the cubin has loaded beside what stands in it; raises ElfError."""
    return sum(
        each.size for each in Elf(data).sections if each.type == NO_BITS and not each.name.startswith(".nv.shared")
    )


def _counted(value: int) -> int:
    if value > _MAX_VALUE:
        raise ElfError(f"{value} is told of a function, which nothing has")
    return value


def _attributes(elf: Elf) -> tuple[dict[int, int], dict[int, int]]:
    """(registers, frame bytes) by index in the symbol table."""
    section = elf.section(".nv.info")
    if section is not None and section.size > _MAX_INFO_BYTES:
        raise ElfError(f"{section.size} bytes of attributes")
    registers: dict[int, int] = {}
    frames: dict[int, int] = {}
    for number, value in _walk(elf.content(section)) if section else ():
        if len(value) >= 8:
            symbol, amount = struct.unpack_from("<II", value)
            if number == _REGISTERS:
                registers[symbol] = amount
            elif number == _FRAME_BYTES:
                frames[symbol] = amount
    return registers, frames


def _walk(info: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(info):
        form, number, size = struct.unpack_from("<BBH", info, at)
        at += 4
        if form == _SIZED:
            yield number, info[at : at + size]
            at += size


def _static_shared_bytes(elf: Elf, function: Symbol, *, reserved: int) -> int:
    """The section counts what the system reserves in each block from sm_90 on."""
    section = elf.section(f".nv.shared.{function.name}")
    return max(0, section.size - reserved) if section else 0


def _registers_of_section(elf: Elf, function: Symbol) -> int:
    """Up to sm_89 they are in the section's header as well; which of the two a driver takes, nobody says."""
    return elf.sections[function.section].info >> 24


def _code(elf: Elf, function: Symbol) -> bytes:
    if function.section >= len(elf.sections):
        raise ElfError("a function lies in no section")
    return elf.part(elf.sections[function.section], function.value, function.size)
