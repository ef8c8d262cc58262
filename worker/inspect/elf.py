"""A reader of ELF files that nobody has to trust: 64-bit little-endian, every offset checked, nothing executed."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cached_property

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SYMBOL_TABLES = {2: ".symtab", 11: ".dynsym"}
NO_BITS = 8
_EXECUTABLE = 4
MAX_SECTIONS = 20_000
MAX_SYMBOLS = 500_000
_MAX_NAME = 65_536


class ElfError(ValueError):
    """Not a file that this reader can make sense of."""


@dataclass(frozen=True)
class Section:
    name: str
    type: int
    offset: int
    size: int
    link: int
    info: int
    flags: int


@dataclass(frozen=True)
class Symbol:
    name: str
    type: int  # 2 is a function
    binding: int  # 1 is global, 2 weak
    section: int  # 0 where it is not defined here
    value: int
    size: int

    @property
    def is_defined_function(self) -> bool:
        return self.type == 2 and self.section != 0


class Elf:
    def __init__(self, data: bytes) -> None:
        self._data = data
        if data[:6] != b"\x7fELF\x02\x01":
            raise ElfError("not a 64-bit little-endian ELF file")
        try:
            header = _HEADER.unpack_from(data)
        except struct.error as error:
            raise ElfError("cut short in its header") from error
        self.machine: int = header[2]
        self._table, entry_size, self._count, self._names_index = header[6], header[11], header[12], header[13]
        if self._count and entry_size != _SECTION.size:
            raise ElfError(f"section headers of {entry_size} bytes")
        if self._count > MAX_SECTIONS or self._table + self._count * _SECTION.size > len(data):
            raise ElfError("its section table lies outside the file")

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        raw = [_SECTION.unpack_from(self._data, self._table + i * _SECTION.size) for i in range(self._count)]
        if self._names_index >= len(raw):
            raise ElfError("no table of section names")
        names = _Names(self._slice(raw[self._names_index][4], raw[self._names_index][5]), most=2 * len(self._data))
        return tuple(Section(names.at(r[0]), r[1], r[4], r[5], r[6], r[7], r[2]) for r in raw)

    @cached_property
    def _by_name(self) -> dict[str, Section]:
        return {section.name: section for section in reversed(self.sections)}

    @property
    def code_bytes(self) -> int:
        """Of everything that can be run."""
        return sum(section.size for section in self.sections if section.flags & _EXECUTABLE)

    def section(self, name: str) -> Section | None:
        """The first of this name."""
        return self._by_name.get(name)

    def content(self, section: Section) -> bytes:
        return b"" if section.type == NO_BITS else self._slice(section.offset, section.size)

    def part(self, section: Section, at: int, size: int) -> bytes:
        """These bytes of its content, as far as it goes."""
        if section.type == NO_BITS or at >= section.size:
            return b""
        return self._slice(section.offset + at, min(size, section.size - at))

    def symbols(self, table: str) -> tuple[Symbol, ...]:
        """The entries of `.symtab` or `.dynsym`; none where the file lacks it."""
        found = next((s for s in self.sections if _SYMBOL_TABLES.get(s.type) == table), None)
        if found is None:
            return ()
        if found.link >= len(self.sections) or found.size > MAX_SYMBOLS * _SYMBOL.size:
            raise ElfError(f"{table} is not in order")
        names = _Names(self.content(self.sections[found.link]), most=2 * len(self._data))
        content = self.content(found)
        usable = content[: len(content) - len(content) % _SYMBOL.size]
        return tuple(
            Symbol(names.at(name), info & 15, info >> 4, index, value, size)
            for name, info, _, index, value, size in _SYMBOL.iter_unpack(usable)
        )

    def _slice(self, offset: int, size: int) -> bytes:
        if offset + size > len(self._data):
            raise ElfError("a section lies outside the file")
        return self._data[offset : offset + size]


class _Names:
    """A table of names. Those of a file don't lie one in another, but for some that end alike: all that are read have
    at most `most` bytes together, or a small file would fill the memory."""

    def __init__(self, table: bytes, *, most: int) -> None:
        self._table, self._left = table, most

    def at(self, offset: int) -> str:
        """Empty where it is too long, or has no end."""
        end = self._table.find(b"\0", offset, offset + _MAX_NAME)
        if end < 0:
            return ""
        self._left -= end - offset
        if self._left < 0:
            raise ElfError("its names are longer than the file")
        return self._table[offset:end].decode("utf-8", "replace")
