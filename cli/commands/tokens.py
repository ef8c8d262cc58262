"""`kernelgate token`: make, list and revoke."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.commands.options import AsJson

token_app = typer.Typer(help="Tokens: who may read, submit, maintain, work.", no_args_is_help=True)
SCOPES = ("read", "submit", "maintain", "worker", "admin")


def register(app: typer.Typer) -> None:
    app.add_typer(token_app, name="token")


@token_app.command("create")
def create(
    *,
    scope: Annotated[str, typer.Option(help=", ".join(SCOPES))],
    project: Annotated[str | None, typer.Option("--project", "-p", help="Bind it to one project.")] = None,
    node: Annotated[str | None, typer.Option(help="Bind a worker's token to this node.")] = None,
    note: Annotated[str, typer.Option(help="What it is for.")] = "",
    database: Annotated[
        bool, typer.Option("--database", help="Write to DATABASE_URL itself: the first token of a new service.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make a token. Its secret is printed once, alone on stdout."""
    from pydantic import ValidationError  # noqa: PLC0415

    from cli.commands.connection import connect  # noqa: PLC0415
    from cli.errors import CliError  # noqa: PLC0415
    from cli.show.output import print_json  # noqa: PLC0415
    from contract.api import Scope, TokenIn, TokenOut  # noqa: PLC0415

    if scope not in SCOPES:
        raise CliError(f"--scope {scope}: not one of {', '.join(SCOPES)}")
    try:
        wanted = TokenIn(scope=Scope(scope), project=project, node=node, note=note)
    except ValidationError as error:
        raise CliError(f"--{error.errors()[0]['loc'][0]}: {error.errors()[0]['msg']}") from error
    if database:
        from cli.local.database import make_token  # noqa: PLC0415

        made = make_token(wanted)
    else:
        with connect() as client:
            made = client.post("/tokens", TokenOut, wanted)
    if as_json:
        print_json(made)
    else:
        typer.echo(f"{made.id}, scope {made.scope.value}; the secret is shown this once:", err=True)
        typer.echo(made.secret)


@token_app.command("list")
def list_tokens(*, as_json: AsJson = False) -> None:
    """List the tokens, without their secrets."""
    from cli.commands.connection import connect  # noqa: PLC0415
    from cli.show.console import console  # noqa: PLC0415
    from cli.show.lists import token_table  # noqa: PLC0415
    from cli.show.output import print_json  # noqa: PLC0415
    from contract.api import TokenPage  # noqa: PLC0415

    with connect() as client:
        found = list(client.items("/tokens", TokenPage))
    if as_json:
        print_json(found)
    else:
        console().print(token_table(found))


@token_app.command("revoke")
def revoke(token: Annotated[str, typer.Argument(help="tok_…")]) -> None:
    """Revoke a token at once; sessions that came from it end too."""
    from cli.commands.connection import connect  # noqa: PLC0415

    with connect() as client:
        client.delete(f"/tokens/{token}")
    typer.echo(f"{token} revoked")
