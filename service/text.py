"""Text from outside, made fit for databases, terminals and pages."""

import math
import re
from typing import Any

# Control characters but tab and newline, line separators, marks that turn the direction of text, surrogates.
_UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def clean(text: str) -> str:
    """`text` with U+FFFD for what could steer a terminal or that a database refuses."""
    return _UNFIT.sub("\ufffd", text.replace("\r\n", "\n"))


def one_line(text: str, limit: int) -> str:
    """Cleaned, white space collapsed, at most `limit` characters."""
    line = " ".join(clean(text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def clean_json(value: Any) -> Any:
    """The same for every string inside; numbers that JSON can't say (NaN, infinities) become None."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {clean(str(key)): clean_json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [clean_json(each) for each in value]
    return value
