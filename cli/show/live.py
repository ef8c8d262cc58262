"""Following evaluations on a terminal, redrawn in place, or as plain lines where there is none."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.live import Live

from cli.client import Client
from cli.errors import CliError, Exit
from cli.follow import follow
from cli.show.evaluation import evaluation_view, one_liner
from contract.api import EvaluationOut
from contract.job import Progress
from contract.outcomes import Stage, State
from contract.suite import Suite


def watch_all(
    client: Client, evaluations: Iterable[str], *, console: Console, suites: dict[str, Suite] | None = None
) -> list[EvaluationOut]:
    """Follow each until it ends, one after the other, and print how it ended. Returns the final evaluations."""
    finished = []
    for number, evaluation in enumerate(evaluations):
        if number:
            console.print()
        watch = _watch_live if console.is_terminal else _watch_plainly
        try:
            final = watch(client, evaluation, console)
        except KeyboardInterrupt:
            raise CliError(
                "stopped watching; the evaluation goes on",
                hint=f"`kernelgate watch {evaluation}` follows it again, `kernelgate cancel {evaluation}` ends it",
                code=Exit.INTERRUPTED,
            ) from None
        suite = (suites or {}).get(final.kernel)
        link = f"{client.url}/revisions/{final.revision.id}"
        console.print(evaluation_view(with_pairs(client, final), suite=suite, link=link))
        finished.append(final)
    return finished


def with_pairs(client: Client, evaluation: EvaluationOut) -> EvaluationOut:
    """The evaluation with its samples, which say how many processes each case took; a megabyte at most."""
    return client.get(f"/evaluations/{evaluation.id}", EvaluationOut, samples=True) if evaluation.cases else evaluation


def _watch_live(client: Client, evaluation: str, console: Console) -> EvaluationOut:
    current: EvaluationOut | None = None
    progress: dict[Stage, Progress] = {}
    with Live(console=console, transient=True, refresh_per_second=8, vertical_overflow="crop") as live:
        for update in follow(client, evaluation):
            if isinstance(update, EvaluationOut):
                current = update
                if update.state is State.QUEUED:
                    progress.clear()  # a new attempt begins anew
            else:
                progress[update.stage] = update
            if current is not None:
                live.update(evaluation_view(current, progress=tuple(progress.values())))
    return _final(current)


def _watch_plainly(client: Client, evaluation: str, console: Console) -> EvaluationOut:
    """One line a stage: logs of a CI job stay short."""
    current, said = None, ""
    for update in follow(client, evaluation):
        if isinstance(update, Progress):
            if current is not None and update.stage.value != said:
                said = update.stage.value
                console.print(one_liner(current, update))
            continue
        current = update
        doing = update.stage.value if update.stage else update.state.value
        if doing != said and update.state in {State.QUEUED, State.LEASED}:
            said = doing
            console.print(one_liner(update))
    return _final(current)


def _final(evaluation: EvaluationOut | None) -> EvaluationOut:
    # follow() ends with the final evaluation or raises.
    assert evaluation is not None  # noqa: S101
    return evaluation
