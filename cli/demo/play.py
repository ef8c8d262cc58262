"""Plays the demo: a service, the suites, the revisions one by one, the histories; then one table."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

import cli
from cli.client import Client
from cli.demo.plan import Plan, Step, plan
from cli.demo.rows import NARROW, Row, row_of, table_of
from cli.errors import CliError, Exit
from cli.follow import follow
from cli.local.child import Child, wait_until
from cli.local.home import Home
from cli.local.toolchains import compiles_cuda, compiles_triton
from cli.show.evaluation import one_liner, title
from cli.show.outcomes import NOT_MEASURED, outcome_text
from cli.submission import Wanted, import_csv, push_suite, submit_folder
from cli.text import many
from contract.api import EvaluationIn, EvaluationOut
from contract.devices import DeviceClass
from contract.job import Progress
from contract.names import LOCAL_PROJECT
from contract.text import one_line

START_LIMIT_S = 90.0
MARGIN = 0.01
# What the demo shows is plain after 8 processes a side; 16 would double its time on a busy machine.
MAX_PROCESSES = "8"


@dataclass(frozen=True)
class Played:
    rows: tuple[Row, ...]

    @property
    def code(self) -> Exit:
        """1 where what should be caught was not, or what is right was; 3 where something could not be measured."""
        if not all(row.as_expected for row in self.rows):
            return Exit.JUDGED_BAD
        return Exit.NOT_MEASURED if any(row.unmeasured for row in self.rows) else Exit.OK


def play(root: Path | None, home: Home, *, node: DeviceClass, out: Console) -> Played:
    folder = root or (Path.cwd() if (Path.cwd() / "kernels").is_dir() else Path(cli.__file__).parents[1])
    compiles = {"cpp": True, "cuda": compiles_cuda(), "triton": compiles_triton()}
    planned = plan(folder, compiles=compiles, node=node)
    with running_service(home, node, out) as url, Client(url, home.token()) as client:
        for suite in planned.suites:
            push_suite(client, LOCAL_PROJECT, suite)
        for line in planned.left_out:
            out.print(f"left out: {line}", style="yellow")
        played = Played(tuple(_evaluate(client, planned, out)))
        imported = _import(client, planned, out)
    out.print()
    # Narrower than this the terminal breaks the lines itself: better than columns without their numbers.
    width = max(out.width, NARROW)
    out.print(table_of(played.rows, width=width), width=width, crop=False)
    _conclude(played, imported, out)
    return played


@contextmanager
def running_service(home: Home, node: DeviceClass, out: Console) -> Iterator[str]:
    """The service of this home: the one that runs, else one for as long as the demo takes."""
    running = home.running()
    if running is not None:
        out.print(f"using the service at {running.url}")
        yield running.url
        return
    home.make()
    child = Child(
        name="kernelgate up",
        argv=(sys.executable, "-m", "cli.main", "up", "--port", "0", "--device-class", node.value),
        environment={"KERNELGATE_MAX_PROCESSES": MAX_PROCESSES, **os.environ, "KERNELGATE_HOME": str(home.path)},
        log=home.logs / "up.log",
        stop_signals=((signal.SIGTERM, 30.0),),
    )
    out.print(f"starting the service, Redis and a worker of class {node.value}; data in {home.path}")
    child.start()
    try:
        if not wait_until(lambda: home.running() is not None, limit_s=START_LIMIT_S, child=child):
            raise CliError(
                f"the service did not start:\n{child.last_words()}",
                hint=f"logs: {home.logs}",
                code=Exit.NOT_MEASURED,
            )
        running = home.running()
        assert running is not None  # noqa: S101
        yield running.url
    finally:
        child.stop()


def _evaluate(client: Client, planned: Plan, out: Console) -> list[Row]:
    """Submit everything, then follow it in that order: the worker takes one after the other."""
    waiting: list[tuple[Step, EvaluationOut]] = []
    for step in planned.steps:
        wanted = Wanted(
            project=LOCAL_PROJECT,
            device_classes=step.device_classes,
            base=step.base,
        )
        submitted = submit_folder(client, step.folder, wanted)
        waiting += [(step, _again(client, evaluation)) for evaluation in submitted.evaluations]
    out.print(f"submitted {many(len(planned.steps), 'revision')}, {many(len(waiting), 'evaluation')}")
    rows = []
    with _status(out) as say:
        for number, (step, evaluation) in enumerate(waiting, 1):
            place = f"{number:>{len(str(len(waiting)))}}/{len(waiting)}"
            final = _follow(client, evaluation, place, say)
            rows.append(row_of(final, must_fail=step.must_fail))
            line = Text.assemble(f"  {place}  {title(final)}: ", outcome_text(final.outcome, final.state.value))
            out.print(line)
    return rows


def _again(client: Client, evaluation: EvaluationOut) -> EvaluationOut:
    """The evaluation; a repeat of it where an earlier demo could not measure it."""
    if evaluation.outcome is None or evaluation.outcome not in NOT_MEASURED:
        return evaluation
    body = EvaluationIn(
        revision=evaluation.revision.id,
        device_class=evaluation.device_class,
        base=evaluation.base.id if evaluation.base else None,
        build_only=evaluation.build_only,
    )
    return client.post("/evaluations", EvaluationOut, body)


def _follow(client: Client, evaluation: EvaluationOut, place: str, say: Callable[[str], None]) -> EvaluationOut:
    current = evaluation
    for update in follow(client, evaluation.id):
        if isinstance(update, Progress):
            say(f"{place}  {one_liner(current, update)}")
        else:
            current = update
            say(f"{place}  {one_liner(current)}")
    return current


@contextmanager
def _status(out: Console) -> Iterator[Callable[[str], None]]:
    """One line that is redrawn; nothing where there is no terminal."""
    status = out.status("") if out.is_terminal else None
    with status or nullcontext():
        yield (lambda text: status.update(Text(text))) if status else (lambda _: None)


def _import(client: Client, planned: Plan, out: Console) -> list[str]:
    """Import the histories; the kernels that they are of."""
    kernels: list[str] = []
    for history in planned.histories:
        done = import_csv(client, history.file, project=LOCAL_PROJECT, provenance=history.provenance, margin=MARGIN)
        new = f"{done.added} new" if done.added else "all there already"
        out.print(
            f"imported {history.file.name}: {', '.join(done.kernels)}, {many(done.revisions, 'revision')} ({new})"
        )
        kernels += done.kernels
    return kernels


def _conclude(played: Played, imported: Sequence[str], out: Console) -> None:
    out.print()
    bad: Sequence[Row] = [row for row in played.rows if row.must_fail]
    for row in bad:
        caught = "caught" if row.as_expected and not row.unmeasured else "NOT CAUGHT"
        out.print(f"{caught}: {row.kernel} {one_line(row.revision)}: {one_line(row.summary, limit=400)}")
    for row in played.rows:
        if row.unmeasured or not (row.as_expected or row.must_fail):
            out.print(f"unexpected: {row.kernel} {one_line(row.revision)}: {one_line(row.summary, limit=400)}")
    out.print("the history: `kernelgate up` (or `make up`) serves it; then, in another terminal:")
    for kernel in dict.fromkeys([*(row.kernel for row in played.rows), *imported]):
        out.print(f"  kernelgate history {kernel}")
