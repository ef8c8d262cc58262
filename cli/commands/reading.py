"""Commands that read: show, history, compare, kernels, nodes."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.commands.options import DEFAULT_PROJECT, AsJson, EvaluationId, OneClass, Project


def register(app: typer.Typer) -> None:
    app.command()(show)
    app.command()(history)
    app.command()(compare)
    app.command()(kernels)
    app.command()(nodes)


def show(evaluation: EvaluationId, *, as_json: AsJson = False) -> None:
    """Show an evaluation, or a revision's, as it stands."""
    from cli.commands.connection import connect, evaluation_ids  # noqa: PLC0415
    from cli.show.console import console  # noqa: PLC0415
    from cli.show.evaluation import evaluation_view  # noqa: PLC0415
    from cli.show.live import with_pairs  # noqa: PLC0415
    from cli.show.output import print_json  # noqa: PLC0415
    from cli.submission import suite_of  # noqa: PLC0415
    from contract.api import EvaluationOut  # noqa: PLC0415

    with connect() as client:
        found = [client.get(f"/evaluations/{one}", EvaluationOut) for one in evaluation_ids(client, evaluation)]
        if as_json:
            print_json(found)
            return
        out = console()
        for number, one in enumerate(found):
            if number:
                out.print()
            link = f"{client.url}/revisions/{one.revision.id}"
            out.print(evaluation_view(with_pairs(client, one), suite=suite_of(client, one), link=link))


def history(
    kernel: Annotated[str, typer.Argument(help="Name of a kernel.")],
    *,
    project: Project = DEFAULT_PROJECT,
    device_class: OneClass = None,
    case: Annotated[str | None, typer.Option(help="Such as m=4096,n=4096,k=4096, or 4096^3.")] = None,
    metric: Annotated[str | None, typer.Option(help="Such as time, throughput, throughput_over_baseline.")] = None,
    as_json: AsJson = False,
) -> None:
    """List a kernel's revisions in order: value, verdict against the base, outcome."""
    from cli.commands.connection import connect  # noqa: PLC0415
    from cli.series import choose_series  # noqa: PLC0415
    from cli.show.console import console  # noqa: PLC0415
    from cli.show.output import print_json  # noqa: PLC0415
    from cli.show.series import series_view  # noqa: PLC0415

    with connect() as client:
        chosen = choose_series(
            client, project=project, kernel=kernel, device_class=device_class, case=case, metric=metric
        )
        if as_json:
            print_json(chosen.series)
        else:
            console().print(series_view(chosen))


def compare(
    base: Annotated[str, typer.Argument(help="Label or id of the revision to compare with.")],
    head: Annotated[str, typer.Argument(help="Label or id of the revision that is judged.")],
    *,
    kernel: Annotated[str | None, typer.Option("--kernel", "-k", help="Needed where HEAD is a label.")] = None,
    project: Project = DEFAULT_PROJECT,
    device_class: OneClass = None,
    as_json: AsJson = False,
) -> None:
    """Compare two revisions case by case."""
    from cli.commands.connection import connect  # noqa: PLC0415
    from cli.series import choose_comparison  # noqa: PLC0415
    from cli.show.comparison import comparison_view  # noqa: PLC0415
    from cli.show.console import console  # noqa: PLC0415
    from cli.show.output import print_json  # noqa: PLC0415
    from cli.show.profile import profile_comparison  # noqa: PLC0415

    with connect() as client:
        found = choose_comparison(
            client, project=project, kernel=kernel, base=base, head=head, device_class=device_class
        )
        if as_json:
            print_json(found)
        else:
            console().print(comparison_view(found), *profile_comparison(found), sep="\n")


def kernels(*, project: Project = DEFAULT_PROJECT, as_json: AsJson = False) -> None:
    """List a project's kernels."""
    from cli.commands.connection import connect  # noqa: PLC0415
    from cli.series import kernels_of  # noqa: PLC0415
    from cli.show.console import console  # noqa: PLC0415
    from cli.show.lists import kernel_table  # noqa: PLC0415
    from cli.show.output import print_json  # noqa: PLC0415

    with connect() as client:
        found = kernels_of(client, project)
    if as_json:
        print_json(found)
    elif found:
        console().print(kernel_table(found))
    else:
        typer.echo(f"{project} has no kernels yet; `kernelgate suite push PATH` brings the first")


def nodes(*, as_json: AsJson = False) -> None:
    """List the nodes: class, device, what each is doing."""
    from cli.commands.connection import connect  # noqa: PLC0415
    from cli.series import nodes_of  # noqa: PLC0415
    from cli.show.console import console  # noqa: PLC0415
    from cli.show.lists import node_table  # noqa: PLC0415
    from cli.show.output import print_json  # noqa: PLC0415

    with connect() as client:
        found = nodes_of(client)
    if as_json:
        print_json(found)
    elif found:
        console().print(node_table(found))
    else:
        typer.echo("no node has reported yet; `kernelgate worker` starts one")
