"""The `kernelgate` command. Starts fast: what a command needs is imported when it runs."""

from __future__ import annotations

import errno
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from cli.commands import ci, local, offline, reading, regressions, submitting, tokens


class _Group(TyperGroup):
    """Errors become one sentence and an exit code, never a traceback."""

    def invoke(self, ctx: Any) -> Any:
        from cli.errors import CliError, Exit  # noqa: PLC0415

        try:
            return super().invoke(ctx)
        except CliError as error:
            from cli.show.console import show_error  # noqa: PLC0415

            show_error(error)
            raise typer.Exit(error.code) from error
        except OSError as error:
            # A closed pipe (`| head`) is click's to end in silence.
            if error.errno == errno.EPIPE:
                raise
            from cli.show.console import show_error  # noqa: PLC0415

            show_error(CliError(f"{error.filename or 'standard output'}: {error.strerror}"))
            raise typer.Exit(Exit.NOT_MEASURED) from error
        except KeyboardInterrupt:
            sys.stderr.write("\nstopped\n")
            raise typer.Exit(Exit.INTERRUPTED) from None


app = typer.Typer(
    cls=_Group,
    name="kernelgate",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Remote GPU regression CI: is the kernel still right, how fast is it, and did this change make it slower?",
    epilog="Exit codes: 0 passed, 1 judged bad, 2 usage, 3 could not be measured.",
)


def _say_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415

        typer.echo(f"kernelgate {version('kernelgate')}")
        raise typer.Exit


@app.callback()
def root(
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Say which version this is.", callback=_say_version, is_eager=True)
    ] = False,
) -> None:
    del version


for module in (local, submitting, reading, regressions, ci, offline, tokens):
    module.register(app)

if __name__ == "__main__":
    app()
