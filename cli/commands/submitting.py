"""Commands that send something to the service: submit, suite, watch, cancel, import."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.commands.options import DEFAULT_PROJECT, AsJson, Classes, EvaluationId, Folders, Profile, Project

if TYPE_CHECKING:
    from cli.client import Client
    from cli.submission import Submitted
    from contract.api import EvaluationOut

suite_app = typer.Typer(help="Suites: what a kernel is measured on.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.command()(submit)
    app.command()(watch)
    app.command()(cancel)
    app.command("import")(import_history)
    app.add_typer(suite_app, name="suite")


def submit(
    paths: Folders,
    *,
    project: Project = DEFAULT_PROJECT,
    kernel: Annotated[str | None, typer.Option(help="By default from the suite.toml above the folder.")] = None,
    device_class: Classes = None,
    base: Annotated[str | None, typer.Option(help="Label, digest or id of the revision to compare with.")] = None,
    commit: Annotated[str | None, typer.Option(help="Full id of the commit that the folder is at.")] = None,
    branch: Annotated[str | None, typer.Option(help="Branch of that commit.")] = None,
    build_only: Annotated[bool, typer.Option("--build-only", help="Compile, for cards not at hand.")] = False,
    profile: Profile = False,
    wait: Annotated[bool, typer.Option("--wait", "-w", help="Follow until it is judged; the exit code says how.")] = (
        False
    ),
    as_json: AsJson = False,
) -> None:
    """Submit revisions: build, verify, measure, compare with their base."""
    from cli.bundles import read_folder  # noqa: PLC0415
    from cli.commands.connection import connect  # noqa: PLC0415
    from cli.submission import Wanted, submit_folder  # noqa: PLC0415

    folders = [read_folder(path) for path in paths]
    wanted = Wanted(
        project=project,
        kernel=kernel,
        device_classes=tuple(device_class or ()),
        base=base,
        commit=commit,
        branch=branch,
        build_only=build_only,
        profile=profile,
    )
    with connect() as client:
        _conclude(client, [submit_folder(client, folder, wanted) for folder in folders], wait=wait, as_json=as_json)


def watch(evaluation: EvaluationId, *, as_json: AsJson = False) -> None:
    """Follow an evaluation, or a revision's, until it ends."""
    from cli.commands.connection import connect, evaluation_ids  # noqa: PLC0415
    from cli.show.console import console  # noqa: PLC0415
    from cli.show.live import watch_all  # noqa: PLC0415

    with connect() as client:
        out = console(stderr=as_json)
        _end(client, watch_all(client, evaluation_ids(client, evaluation), console=out), as_json=as_json)


def cancel(evaluation: EvaluationId) -> None:
    """Cancel an evaluation, or what is unfinished of a revision's; what runs is killed."""
    from cli.commands.connection import connect, evaluation_ids  # noqa: PLC0415
    from contract.api import EvaluationOut  # noqa: PLC0415
    from contract.outcomes import State  # noqa: PLC0415

    with connect() as client:
        cancelled = 0
        for one in evaluation_ids(client, evaluation):
            state = client.get(f"/evaluations/{one}", EvaluationOut).state
            if state in {State.QUEUED, State.LEASED}:
                client.delete(f"/evaluations/{one}")
                cancelled += 1
                typer.echo(f"{one} cancelled")
        if not cancelled:
            typer.echo(f"{evaluation}: nothing is running or waiting")


@suite_app.command("push")
def suite_push(
    path: Annotated[Path, typer.Argument(help="Folder of a kernel, or its suite.toml.")],
    *,
    project: Project = DEFAULT_PROJECT,
) -> None:
    """Bring a suite; needs a token of scope maintain."""
    from cli.bundles import read_suite  # noqa: PLC0415
    from cli.commands.connection import connect  # noqa: PLC0415
    from cli.submission import push_suite  # noqa: PLC0415
    from cli.text import many  # noqa: PLC0415

    suite = read_suite(path)
    with connect() as client:
        stored = push_suite(client, project, suite)
    typer.echo(
        f"{suite.kernel}: {many(len(suite.cases), 'case')}, {many(len(suite.verify_cases), 'verify case')}, "
        f"{many(len(suite.revisions), 'revision')} listed; suite {stored.digest[:12]}"
    )


def import_history(
    file: Annotated[
        Path,
        typer.Argument(help="CSV, a value a line: kernel, device_class, label, base, case, metric, value, unit, note."),
    ],
    *,
    provenance: Annotated[str, typer.Option(help="Where and how these values were measured, and by whom.")],
    margin: Annotated[float, typer.Option(help="Differences under this share are inconclusive.", min=0, max=1)] = 0.01,
    project: Project = DEFAULT_PROJECT,
) -> None:
    """Bring a history that was measured elsewhere."""
    from cli.commands.connection import connect  # noqa: PLC0415
    from cli.submission import import_csv  # noqa: PLC0415
    from cli.text import many  # noqa: PLC0415

    with connect() as client:
        done = import_csv(client, file, project=project, provenance=provenance, margin=margin)
    typer.echo(
        f"{', '.join(done.kernels)}: {many(done.revisions, 'revision')}, {many(done.metrics, 'value')}; "
        f"{done.added} of the revisions are new"
    )


def _conclude(client: Client, submitted: list[Submitted], *, wait: bool, as_json: bool) -> None:
    from cli.show.console import console  # noqa: PLC0415
    from cli.show.evaluation import title  # noqa: PLC0415
    from cli.show.live import watch_all  # noqa: PLC0415
    from cli.show.output import print_json  # noqa: PLC0415
    from cli.submission import unserved  # noqa: PLC0415

    out = console(stderr=as_json)
    for one in submitted:
        for note in one.notes:
            out.print(note, style="yellow")
    evaluations = [evaluation for one in submitted for evaluation in one.evaluations]
    for note in unserved(client, evaluations):
        out.print(note, style="yellow")
    if not wait:
        for evaluation in evaluations:
            out.print(f"{evaluation.id}  {title(evaluation)}: {evaluation.state.value}")
        for one in submitted:
            out.print(f"{client.url}/revisions/{one.revision.id}")
        if as_json:
            print_json([one.revision for one in submitted])
        return
    suites = {one.suite.kernel: one.suite for one in submitted if one.suite}
    finished = watch_all(client, [evaluation.id for evaluation in evaluations], console=out, suites=suites)
    _end(client, finished, as_json=as_json)


def _end(client: Client, finished: list[EvaluationOut], *, as_json: bool) -> None:
    """Exit as the outcomes say; whether inconclusive fails is the suite's policy."""
    from cli.show.outcomes import exit_code  # noqa: PLC0415
    from cli.show.output import print_json  # noqa: PLC0415
    from cli.submission import find_suite  # noqa: PLC0415
    from contract.outcomes import Outcome  # noqa: PLC0415

    if as_json:
        print_json(finished)
    fails = False
    for evaluation in finished:
        if evaluation.outcome is Outcome.INCONCLUSIVE:
            suite = find_suite(client, evaluation.project, evaluation.kernel)
            fails |= suite is not None and suite.policy.inconclusive == "fail"
            said = "fails, by the suite's policy" if fails else "does not fail (the suite's policy)"
            typer.echo(f"note: inconclusive {said}; a repeat pools its evidence with this one's", err=True)
    code = exit_code([evaluation.outcome for evaluation in finished], inconclusive_fails=fails)
    if code:
        raise typer.Exit(code)
