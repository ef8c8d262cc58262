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
    from cli.errors import CliError, Exit  # noqa: PLC0415
    from cli.judging import judge_text, read_bytes  # noqa: PLC0415
    from cli.show.console import show_error  # noqa: PLC0415

    refused = False
    for judged in judge_text(read_bytes(file), name=file):
        if isinstance(judged, CliError):
            show_error(judged)
            refused = True
        else:
            typer.echo(judged)
    if refused:
        raise typer.Exit(Exit.USAGE)
