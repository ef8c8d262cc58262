"""`kernelgate verdict`: the decision alone, on samples from anywhere."""

from __future__ import annotations

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    app.command()(verdict)


def verdict(
    file: Annotated[str, typer.Argument(help="JSON, one comparison or one a line; - is standard input.")],
) -> None:
    """Judge timed samples: prints one JSON object with verdict, ratio, interval and reason for each comparison."""
    from cli.judging import judge_text, read_text  # noqa: PLC0415

    for judged in judge_text(read_text(file), name=file):
        typer.echo(judged)
