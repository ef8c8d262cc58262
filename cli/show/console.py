"""The terminal, or what stands for it."""

from __future__ import annotations

import os

from rich.console import Console

from cli.errors import CliError


def console(*, stderr: bool = False) -> Console:
    """Rich's console without guesses at emphasis: what is coloured is coloured on purpose.

    A pipe is 160 columns wide so that tables stay tables in logs; COLUMNS overrides it.
    """
    made = Console(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=False)
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = 160
    return made


def show_error(error: CliError) -> None:
    err = console(stderr=True)
    err.print(f"error: {error.message}", style="red", soft_wrap=True)
    if error.hint:
        err.print(f"  {error.hint}", soft_wrap=True)
