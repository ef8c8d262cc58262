"""Commands that work on this machine, without asking a service: up, demo, run, worker, db, doctor."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.commands.options import AsJson, Folder, OneClass, Profile
from contract.devices import DeviceClass

NodeClass = Annotated[DeviceClass, typer.Option("--device-class", help="The class of this machine's worker.")]
NoSandbox = Annotated[
    bool,
    typer.Option("--no-sandbox", help="Run code with your rights, for code of your own: every result says so."),
]
db_app = typer.Typer(help="The database: DATABASE_URL, else the one in the home folder.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.command()(up)
    app.command()(demo)
    app.command()(run)
    app.command(
        context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False}
    )(worker)
    app.add_typer(db_app, name="db")
    app.command()(doctor)


def up(
    *,
    port: Annotated[int | None, typer.Option(help="By default 8000, or any where that is taken.", min=0)] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    device_class: NodeClass = DeviceClass.CPU,
    worker: Annotated[bool, typer.Option("--worker/--no-worker", help="With one worker of that class.")] = True,
    no_sandbox: NoSandbox = False,
) -> None:
    """Run everything here: database, Redis, service and a worker, until stopped."""
    from functools import partial  # noqa: PLC0415

    from cli.local.home import find_home  # noqa: PLC0415
    from cli.local.up import run_up  # noqa: PLC0415

    _switch(no_sandbox)
    node = device_class if worker else None
    run_up(find_home(), host=host, port=port, node=node, say=partial(print, flush=True))


def demo(
    *,
    root: Annotated[Path | None, typer.Option(help="Folder with kernels/ and data/; by default the project's.")] = None,
    device_class: NodeClass = DeviceClass.CPU,
    as_json: AsJson = False,
) -> None:
    """Submit the shipped kernels revision by revision and print what became of each.

    With a GPU's class, on a machine that has one: its kernels are measured, and nothing else is done.
    """
    from cli.demo.play import play  # noqa: PLC0415
    from cli.local.home import find_home  # noqa: PLC0415
    from cli.show.console import console  # noqa: PLC0415
    from cli.show.output import print_json  # noqa: PLC0415

    result = play(root, find_home(), node=device_class, out=console(stderr=as_json))
    if as_json:
        print_json(result.rows)
    if result.code:
        raise typer.Exit(result.code)


def run(
    path: Folder,
    *,
    case: Annotated[
        list[str] | None, typer.Option("--case", "-c", help="m=4096,n=4096,k=4096; repeatable; default: the suite's.")
    ] = None,
    base: Annotated[Path | None, typer.Option(help="Folder of the revision to compare with.")] = None,
    verify: Annotated[bool, typer.Option("--verify", help="On the suite's verify cases too.")] = False,
    profile: Profile = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print the measurements as CSV.")] = False,
    device_class: OneClass = None,
    no_sandbox: NoSandbox = False,
    as_json: AsJson = False,
) -> None:
    """Build, verify and measure a revision here and now, without a service."""
    from cli.bundles import read_folder  # noqa: PLC0415
    from cli.errors import CliError  # noqa: PLC0415
    from cli.local.run import run_here, to_csv  # noqa: PLC0415
    from cli.show.console import console  # noqa: PLC0415
    from cli.show.evaluation import evaluation_view  # noqa: PLC0415
    from cli.show.outcomes import exit_code  # noqa: PLC0415
    from cli.show.output import print_json  # noqa: PLC0415

    _switch(no_sandbox)
    if csv and as_json:
        raise CliError("--csv and --json: choose one")
    head = read_folder(path)
    out = console(stderr=csv or as_json)
    done, suite = run_here(
        head,
        base=read_folder(base) if base else None,
        cases=tuple(case or ()),
        verify=verify,
        profile=profile,
        device_class=device_class,
        out=out,
    )
    out.print(evaluation_view(done, suite=suite))
    if csv:
        typer.echo(to_csv(done), nl=False)
    if as_json:
        print_json(done)
    code = exit_code([done.outcome], inconclusive_fails=suite.policy.inconclusive == "fail")
    if code:
        raise typer.Exit(code)


def worker(context: typer.Context, *, no_sandbox: NoSandbox = False) -> None:
    """Take evaluations from the queues of this node's class (settings: KERNELGATE_…); what follows goes to Celery."""
    from cli.local.worker import become_worker  # noqa: PLC0415

    _switch(no_sandbox)
    become_worker(tuple(context.args))


def _switch(no_sandbox: bool) -> None:
    """For this process and those that it starts."""
    import os  # noqa: PLC0415

    if no_sandbox:
        os.environ["KERNELGATE_SANDBOX"] = "off"


@db_app.command("upgrade")
def db_upgrade() -> None:
    """Bring the schema up to date."""
    from cli.local.database import upgrade_schema  # noqa: PLC0415

    upgrade_schema()
    typer.echo("the schema is up to date")


def doctor(*, as_json: AsJson = False) -> None:
    """Say what this machine can do and what is missing."""
    from cli.doctor import doctor as examine  # noqa: PLC0415

    raise typer.Exit(examine(json_output=as_json))
