"""`kernelgate ci`: inside a CI job, gate what the job's commit changed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cli.client import Client
    from contract.api import EvaluationOut
    from contract.gate import CommitGate


def register(app: typer.Typer) -> None:
    app.command()(ci)


def ci(
    *,
    base: Annotated[str | None, typer.Option(help="Commit to compare with; GitHub's event says it by itself.")] = None,
    project: Annotated[str | None, typer.Option(envvar="KERNELGATE_PROJECT", help="Job tokens bring it.")] = None,
    audience: Annotated[str | None, typer.Option(help="Of the job's own token; by default KERNELGATE_URL.")] = None,
    repository: Annotated[Path, typer.Option(help="The checkout.")] = Path(),
) -> None:
    """In a CI job: submit the kernels that its commit changed, follow them, and exit as the gate decides.

    In GitHub Actions the job needs no stored secret (`permissions: id-token: write`); elsewhere set KERNELGATE_TOKEN.
    A fork's pull request gets no token: forks are gated by the GitHub App.
    """
    import os  # noqa: PLC0415
    import tempfile  # noqa: PLC0415

    from cli.ci.changes import find_changes  # noqa: PLC0415
    from cli.ci.git import Checkout, base_of  # noqa: PLC0415
    from cli.ci.identity import identify  # noqa: PLC0415
    from cli.ci.submitting import Job, held, submit_changes  # noqa: PLC0415
    from cli.client import Client  # noqa: PLC0415
    from cli.errors import CliError, Exit  # noqa: PLC0415
    from contract.gate import CommitGate  # noqa: PLC0415

    url = os.environ.get("KERNELGATE_URL", "").rstrip("/")
    if not url:
        raise CliError("KERNELGATE_URL is not set", hint="it names the service that measures")
    checkout = Checkout(repository)
    head = checkout.commit("HEAD")
    base_sha = checkout.commit(base) if base else base_of(checkout, head, environ=os.environ)
    with tempfile.TemporaryDirectory(prefix="kernelgate-ci-") as scratch:
        changes = find_changes(checkout, base=base_sha, head=head, scratch=Path(scratch))
        typer.echo(f"{head[:12]} against {base_sha[:12]}")
        if not (changes.revisions or changes.suites or changes.removed):
            typer.echo("no kernel is touched: nothing to judge")
            return
        identity = identify(url, environ=os.environ, audience=audience)
        named = identity.project or project
        if named is None:
            raise CliError("which project?", hint="name it with --project or KERNELGATE_PROJECT")
        ref = os.environ.get("GITHUB_HEAD_REF") or os.environ.get("GITHUB_REF_NAME") or "ci"
        job = Job(project=named, head=head, base=base_sha, branch=f"ci/{ref}"[:255])
        with Client(url, identity.token) as client:
            notes = held(client, changes, job)
            evaluations = submit_changes(client, changes, job)

    def renewed() -> Client:
        fresh = identify(url, environ=os.environ, audience=audience) if identity.renewable else identity
        return Client(url, fresh.token)

    _follow(renewed, [each.id for each in evaluations])
    for note in notes:
        typer.echo(f"needs a maintainer: {note}")
    gate = None
    if evaluations:
        with renewed() as client:
            gate = client.get(f"/projects/{named}/commits/{head}/gate", CommitGate)
        typer.echo(gate.answer.sentence)
        _write_summary(gate, url=url, notes=notes)
    code = _exit_code(gate)
    if code is Exit.OK and notes:
        code = Exit.JUDGED_BAD
    if code:
        raise typer.Exit(code)


def _follow(connect: Callable[[], Client], ids: Sequence[str]) -> list[EvaluationOut]:
    """Until each has ended; a token that ends meanwhile is replaced."""
    from cli.errors import ProblemError  # noqa: PLC0415
    from cli.show.console import console  # noqa: PLC0415
    from cli.show.live import watch_all  # noqa: PLC0415

    finished: list[EvaluationOut] = []
    renewals = 0
    while len(finished) < len(ids):
        with connect() as client:
            try:
                finished += watch_all(client, ids[len(finished) : len(finished) + 1], console=console())
                renewals = 0
            except ProblemError as error:
                renewals += 1
                if error.status != 401 or renewals > 1:
                    raise
    return finished


def _write_summary(gate: CommitGate, *, url: str, notes: Sequence[str]) -> None:
    import os  # noqa: PLC0415

    from cli.ci.summary import summary_of  # noqa: PLC0415

    target = os.environ.get("GITHUB_STEP_SUMMARY")
    if target:
        with Path(target).open("a") as file:
            file.write(summary_of(gate, url=url, notes=notes))


def _exit_code(gate: CommitGate | None) -> int:
    from cli.errors import Exit  # noqa: PLC0415
    from contract.gate import GateConclusion  # noqa: PLC0415

    if gate is None or gate.answer.conclusion is GateConclusion.SUCCESS:
        return Exit.OK
    return Exit.JUDGED_BAD if gate.answer.conclusion is GateConclusion.FAILURE else Exit.NOT_MEASURED
