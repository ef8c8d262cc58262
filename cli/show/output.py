"""JSON for programs: what `--json` prints."""

from __future__ import annotations

import json
from collections.abc import Sequence

import typer
from pydantic import BaseModel


def print_json(value: BaseModel | Sequence[BaseModel]) -> None:
    """One document on stdout, as the API would answer it."""
    content = (
        value.model_dump(mode="json")
        if isinstance(value, BaseModel)
        else [one.model_dump(mode="json") for one in value]
    )
    typer.echo(json.dumps(content, indent=2))
