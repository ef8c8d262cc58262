"""The functions of a cubin, read from its ELF symbol table with every offset checked: the file is not trusted."""

from __future__ import annotations

import struct

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SHT_SYMTAB, _STT_FUNC, _SHN_UNDEF = 2, 2, 0


class ElfError(ValueError):
    """Bytes that are no 64-bit little-endian ELF file with a symbol table, or one that contradicts itself."""


def functions(image: bytes) -> frozenset[str]:
    """Names of the functions that the cubin defines: kernels, and device functions that were not inlined."""
    try:
        ident, *_, table, _flags, _, _, _, entry_bytes, count, _ = _HEADER.unpack_from(image)
        if ident[:6] != b"\x7fELF\x02\x01" or entry_bytes != _SECTION.size:
            raise ElfError("no 64-bit little-endian ELF file")
        for place in range(count):
            kind, offset, size, link = _section(image, table, place)
            if kind == _SHT_SYMTAB:
                _, names, names_size, _ = _section(image, table, link)
                return _defined(image[offset : offset + size], image[names : names + names_size])
    except (struct.error, ValueError) as error:
        raise ElfError(f"not a readable cubin: {error}") from error
    raise ElfError("not a readable cubin: it has no symbol table")


def _section(image: bytes, table: int, place: int) -> tuple[int, int, int, int]:
    """(kind, offset, bytes, link) of a section."""
    _, kind, _, _, offset, size, link, *_ = _SECTION.unpack_from(image, table + place * _SECTION.size)
    return kind, offset, size, link


def _defined(symbols: bytes, strings: bytes) -> frozenset[str]:
    whole = len(symbols) - len(symbols) % _SYMBOL.size
    return frozenset(
        strings[name : strings.index(b"\0", name)].decode()
        for name, info, _, section, _, _ in _SYMBOL.iter_unpack(symbols[:whole])
        if info & 0xF == _STT_FUNC and section != _SHN_UNDEF
    )
