"""Text from outside, made fit for databases, terminals and pages."""

from __future__ import annotations

import re
import unicodedata

# CSI, OSC (ended by BEL or ST, and here by its line), DCS, PM, APC, and the two-character escapes.
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x9b[0-?]*[ -/]*[@-~]|\x1b[\]PX^_].*?(?:\x07|\x1b\\|\x9c|$)|\x1b[ -/]*[0-~]?",
    re.MULTILINE,
)
# Control and format characters (marks that turn the direction of text among them), surrogates, line separators.
_UNFIT = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_KEPT = {"\n", "\t"}


def clean(text: str) -> str:
    """`text` without what a terminal obeys or a database refuses: escapes, control characters, direction overrides.

    Whatever a submission wrote (labels, messages, compiler output) may try to repaint the screen of its reader.
    """
    text = text.replace("\r\n", "\n")
    if text.isprintable():
        return text
    stripped = _ESCAPES.sub("", text)
    return "".join(char for char in stripped if char in _KEPT or unicodedata.category(char) not in _UNFIT)


def one_line(text: str, limit: int = 200) -> str:
    """Cleaned, white space collapsed, at most `limit` characters."""
    line = " ".join(clean(text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
