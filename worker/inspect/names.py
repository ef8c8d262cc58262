"""Functions' names: those of templates can have thousands of characters."""

from __future__ import annotations

import hashlib
import re

_MOST = 1000
# What compilers make of any source: mangled names, and Triton's.
_PLAIN = re.compile(r"[!#-~]+")


def is_plain(name: str) -> bool:
    return _PLAIN.fullmatch(name) is not None


def shortened(name: str) -> str:
    """A name to be shown and compared by: the end of a long one is a digest of the whole, as templates differ late."""
    if len(name) <= _MOST:
        return name
    return f"{name[: _MOST - 17]}~{hashlib.sha256(name.encode()).hexdigest()[:16]}"
