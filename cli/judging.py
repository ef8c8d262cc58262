"""Comparisons as text -> judgements as text, line by line."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from cli.errors import CliError
from contract.samples import Comparison

EXAMPLE = '{"unit":"us","allowed_slowdown":0.005,"pairs":[{"rounds":[{"base":[9.1],"head":[9.2]}]}]}'
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_bytes(file: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise CliError(f"{file}: {error.strerror}") from error


def judge_text(text: bytes, *, name: str) -> Iterator[str | CliError]:
    """One line of JSON for each comparison in `text`, one object or one a line; or what is wrong with it, naming the
    line. A line that is no comparison takes nothing from the others."""
    from verdict import decide  # noqa: PLC0415

    for number, document in _documents(text.removeprefix(_BYTE_ORDER_MARK), name):
        try:
            yield decide(_comparison(document, name, number)).model_dump_json()
        except CliError as error:
            yield error


def _documents(text: bytes, name: str) -> Iterator[tuple[int, bytes]]:
    """The comparisons with the number of the line on which each begins."""
    lines = [(number, line) for number, line in enumerate(text.split(b"\n"), 1) if line.strip()]
    if not lines:
        raise CliError(f"{name}: it is empty")
    if _over_several_lines([line for _, line in lines]):
        yield lines[0][0], text.split(b"\n", lines[0][0] - 1)[-1].rstrip()
    else:
        yield from lines


def _over_several_lines(lines: list[bytes]) -> bool:
    """Whether it is one object, so that neither its first nor its last line is one."""
    return not (lines[0].rstrip().endswith(b"}") or _is_json(lines[0]) or _is_json(lines[-1]))


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line, parse_int=float)
    except (ValueError, RecursionError):
        return False
    return True


def _comparison(document: bytes, name: str, line: int) -> Comparison:
    try:
        json.loads(document, object_pairs_hook=_without_repeats, parse_int=float)
        return Comparison.model_validate_json(document, strict=True)
    except json.JSONDecodeError as error:
        raise CliError(f"{name}:{line + error.lineno - 1}: not JSON: {error.msg} at column {error.colno}") from error
    except UnicodeDecodeError as error:
        raise CliError(f"{name}:{line}: not UTF-8 text: {error.reason} at byte {error.start + 1}") from error
    except RecursionError as error:
        raise CliError(f"{name}:{line}: not a comparison: nested too deeply") from error
    except _RepeatedError as error:
        raise CliError(f"{name}:{line}: {error} is given twice") from error
    except ValidationError as error:
        problem = error.errors()[0]
        field = ".".join(map(str, problem["loc"]))
        raise CliError(f"{name}:{line}: {field or 'it'}: {problem['msg']}", hint=f"such as {EXAMPLE}") from error


class _RepeatedError(ValueError):
    """A key that an object has more than once: one of its values would be lost."""


def _without_repeats(pairs: list[tuple[str, Any]]) -> None:
    seen = Counter(key for key, _ in pairs)
    repeated = next((key for key, times in seen.items() if times > 1), None)
    if repeated is not None:
        raise _RepeatedError(repeated)
