"""Comparisons as text -> judgements as text."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from cli.errors import CliError
from contract.samples import Comparison

EXAMPLE = '{"unit":"us","allowed_slowdown":0.005,"pairs":[{"rounds":[{"base":[9.1],"head":[9.2]}]}]}'


def read_text(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise CliError(f"{file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CliError(f"{file}: not UTF-8 text: {error}") from error


def judge_text(text: str, *, name: str) -> Iterator[str]:
    """One line of JSON for each comparison in `text`: one object, or one a line. Raises CliError naming the line."""
    from verdict import decide  # noqa: PLC0415

    for where, document in _documents(text, name):
        try:
            comparison = Comparison.model_validate(document)
        except ValidationError as error:
            problem = error.errors()[0]
            field = ".".join(map(str, problem["loc"]))
            raise CliError(
                f"{where}: {field or 'it'}: {problem['msg']}",
                hint=f"such as {EXAMPLE}",
            ) from error
        yield decide(comparison).model_dump_json()


def _documents(text: str, name: str) -> Iterator[tuple[str, object]]:
    try:
        yield name, json.loads(text)
    except json.JSONDecodeError as whole:
        lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
        if not lines:
            raise CliError(f"{name}: it is empty") from whole
        for number, line in lines:
            try:
                yield f"{name}:{number}", json.loads(line)
            except json.JSONDecodeError as error:
                raise CliError(f"{name}:{number}: not JSON: {error.msg} at column {error.colno}") from error
