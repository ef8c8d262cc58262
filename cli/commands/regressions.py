"""`kernelgate regressions` and `kernelgate gate`: what got slower, and what is to be done with a commit."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.commands.options import DEFAULT_PROJECT, AsJson, OneClass, Project

regressions_app = typer.Typer(help="What got slower on the mainline: list it, say what it is.")
_States = Annotated[
    list[str] | None,
    typer.Option("--state", "-s", help="new, acknowledged, expected, fixed, noise; or several."),
]
_Id = Annotated[str, typer.Argument(metavar="ID", help="reg_…")]
_Reason = Annotated[str, typer.Option("--reason", "-r", help="Why; kept with who said it.")]
_Who = Annotated[str, typer.Option("--who", envvar="USER", help="A name to show beside the token's.")]


def register(app: typer.Typer) -> None:
    app.add_typer(regressions_app, name="regressions")
    app.command()(gate)


@regressions_app.callback(invoke_without_command=True)
def list_regressions(
    context: typer.Context,
    *,
    project: Project = DEFAULT_PROJECT,
    state: _States = None,
    kernel: Annotated[str | None, typer.Option("--kernel", "-k", help="Only those that touch this kernel.")] = None,
    device_class: OneClass = None,
    faster: Annotated[bool, typer.Option("--faster", help="The improvements instead.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Those that are closed too.")] = False,
    as_json: AsJson = False,
) -> None:
    """List what got slower: by default what is open, one line a cause, newest first."""
    if context.invoked_subcommand is not None:
        return
    from cli.commands.connection import connect  # noqa: PLC0415
    from cli.regressions import find_regressions  # noqa: PLC0415
    from cli.show.console import console  # noqa: PLC0415
    from cli.show.output import print_json  # noqa: PLC0415
    from cli.show.regressions import regressions_view  # noqa: PLC0415

    with connect() as client:
        found = find_regressions(
            client,
            project=project,
            states=state or (),
            kernel=kernel,
            device_class=device_class,
            faster=faster,
            everything=everything,
        )
    if as_json:
        print_json(found)
    elif found:
        console().print(regressions_view(found))
    else:
        typer.echo("nothing got faster yet" if faster else "nothing is slower than it was (--all shows what is closed)")


@regressions_app.command("show")
def show(regression: _Id, *, as_json: AsJson = False) -> None:
    """Show one with all its cases, suspects and states."""
    from cli.commands.connection import connect  # noqa: PLC0415
    from cli.show.console import console  # noqa: PLC0415
    from cli.show.output import print_json  # noqa: PLC0415
    from cli.show.regressions import regression_view  # noqa: PLC0415
    from contract.regressions import RegressionOut  # noqa: PLC0415

    with connect() as client:
        found = client.get(f"/regressions/{regression}", RegressionOut)
    if as_json:
        print_json(found)
    else:
        console().print(regression_view(found))


@regressions_app.command("ack")
def acknowledge(regression: _Id, *, reason: _Reason, who: _Who = "") -> None:
    """Acknowledge it: it is known, and stays."""
    _move(regression, "acknowledged", reason, who)


@regressions_app.command("expected")
def expected(regression: _Id, *, reason: _Reason, who: _Who = "") -> None:
    """It was meant to be so."""
    _move(regression, "expected", reason, who)


@regressions_app.command("noise")
def noise(regression: _Id, *, reason: _Reason, who: _Who = "") -> None:
    """It never was one."""
    _move(regression, "noise", reason, who)


@regressions_app.command("fixed")
def fixed(regression: _Id, *, reason: _Reason, who: _Who = "") -> None:
    """It is fixed, in a way that no measurement showed."""
    _move(regression, "fixed", reason, who)


@regressions_app.command("reopen")
def reopen(regression: _Id, *, reason: _Reason, who: _Who = "") -> None:
    """It is new again."""
    _move(regression, "new", reason, who)


def _move(regression: str, state: str, reason: str, who: str) -> None:
    from cli.commands.connection import connect  # noqa: PLC0415
    from cli.errors import CliError  # noqa: PLC0415
    from contract.regressions import RegressionIn, RegressionOut, RegressionState  # noqa: PLC0415

    if not reason.strip():
        raise CliError("--reason is empty", hint="say why, for those who come after you")
    wanted = RegressionIn(state=RegressionState(state), reason=reason[:2000], who=who[:100])
    with connect() as client:
        found = client.patch(f"/regressions/{regression}", RegressionOut, wanted)
    typer.echo(f"{found.id} is {found.state.value}: {found.reason}")


def gate(
    commit: Annotated[str, typer.Argument(help="A commit; HEAD or a short id where this is its repository.")],
    *,
    project: Project = DEFAULT_PROJECT,
    as_json: AsJson = False,
) -> None:
    """Ask the gate about a commit: exit 0 success, 1 failure, 3 not measured, cancelled or not finished yet."""
    from cli.commands.connection import connect  # noqa: PLC0415
    from cli.regressions import GATE_EXITS, full_commit  # noqa: PLC0415
    from cli.show.console import console  # noqa: PLC0415
    from cli.show.gate import gate_view  # noqa: PLC0415
    from cli.show.output import print_json  # noqa: PLC0415
    from contract.gate import CommitGate  # noqa: PLC0415

    with connect() as client:
        found = client.get(f"/projects/{project}/commits/{full_commit(commit)}/gate", CommitGate)
    if as_json:
        print_json(found)
    else:
        console().print(gate_view(found))
    code = GATE_EXITS[found.answer.conclusion]
    if code:
        raise typer.Exit(code)
