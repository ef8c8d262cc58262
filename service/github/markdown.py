"""Markdown of untrusted text, and text that must not grow past GitHub's limits."""

import re
from collections.abc import Iterable

from contract.text import clean

# GitHub's limit is in characters; in bytes it holds for every way of counting them.
MAX_TEXT_BYTES = 65_535
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~!@$])")


def escape(text: str) -> str:
    """One line that shows as it is: no links, no mentions, no HTML, no cell of a table broken."""
    line = " ".join(clean(text).split())
    return _SPECIAL.sub(r"\\\1", line)


def code(text: str) -> str:
    """A code span: what is in it can't end it."""
    line = " ".join(clean(text).split()).replace("|", "\\|")
    fence = "`" * (max((len(run) for run in re.findall("`+", line)), default=0) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def fits(text: str, *, limit: int = MAX_TEXT_BYTES) -> bool:
    return len(text.encode()) <= limit


def take_lines(lines: Iterable[str], *, limit: int) -> tuple[list[str], list[str]]:
    """(the first lines that take at most `limit` bytes with their ends, the others)."""
    taken: list[str] = []
    rest: list[str] = []
    used = 0
    for line in lines:
        size = len(line.encode()) + 1
        if rest or used + size > limit:
            rest.append(line)
        else:
            taken.append(line)
            used += size
    return taken, rest


def shorten(text: str, limit: int) -> str:
    """At most `limit` bytes of UTF-8."""
    raw = text.encode()
    return text if len(raw) <= limit else raw[: limit - 3].decode(errors="ignore") + "…"
