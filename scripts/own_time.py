"""Measures the time that the service and the worker take for themselves, beside recording, verifying and measuring.

    python scripts/own_time.py kernels/sgemm_cpu/v1_blocked --repeats 5

Submits the folder once, so that its builds (and on a GPU its launch records) are cached, then evaluates it again so
many times and reads the stages' time stamps. Uses the service that runs here; without one, an own one for as long.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from cli.bundles import read_folder
from cli.client import LONG_POLL_S, Client
from cli.demo.play import running_service
from cli.local.home import find_home
from cli.submission import Wanted, submit_folder
from contract.api import EvaluationIn, EvaluationOut
from contract.devices import DeviceClass
from contract.names import LOCAL_PROJECT
from contract.outcomes import Stage, State

MEASURED = (Stage.RECORD, Stage.VERIFY, Stage.MEASURE)


def ended(client: Client, evaluation: str) -> EvaluationOut:
    while True:
        found = client.get(f"/evaluations/{evaluation}", EvaluationOut, wait=LONG_POLL_S)
        if found.state in {State.FINISHED, State.CANCELLED}:
            return found


def parts_of(asked_at: datetime, evaluation: EvaluationOut) -> Iterator[tuple[str, float]]:
    """Seconds from POST to finished, one part after the other; those of MEASURED stages among them."""
    assert evaluation.leased_at is not None  # noqa: S101
    assert evaluation.finished_at is not None  # noqa: S101
    yield "POST, to its commit", _seconds(asked_at, evaluation.created_at)
    yield "to the claim", _seconds(evaluation.created_at, evaluation.leased_at)
    before, name = evaluation.leased_at, "the claim"
    for stage in sorted(evaluation.stages, key=lambda each: each.started_at):
        yield f"{name} to {stage.stage.value}", _seconds(before, stage.started_at)
        cached = ", cached" if stage.cached else ""
        yield f"{stage.stage.value}{cached}", _seconds(stage.started_at, stage.ended_at)
        before, name = stage.ended_at, stage.stage.value
    yield f"{name} to finished", _seconds(before, evaluation.finished_at)


def is_own(part: str) -> bool:
    return part not in {stage.value for stage in MEASURED}


def _seconds(start: datetime, end: datetime) -> float:
    return (end - start).total_seconds()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("kernels/sgemm_cpu/v1_blocked"))
    parser.add_argument("--device-class", type=DeviceClass, default=DeviceClass.CPU)
    parser.add_argument("--repeats", type=int, default=5)
    asked = parser.parse_args()
    out = Console()
    home = find_home()
    runs: list[dict[str, float]] = []
    with running_service(home, asked.device_class, out) as url, Client(url, home.token()) as client:
        wanted = Wanted(project=LOCAL_PROJECT, device_classes=(asked.device_class,))
        submitted = submit_folder(client, read_folder(asked.folder), wanted)
        first = ended(client, submitted.evaluations[0].id)
        out.print(f"{submitted.revision.label}: {first.outcome}; measuring {asked.repeats} repeats")
        for _ in range(asked.repeats):
            again = EvaluationIn(revision=submitted.revision.id, device_class=asked.device_class)
            asked_at = datetime.now(UTC)
            repeat = ended(client, client.post("/evaluations", EvaluationOut, again).id)
            runs.append(dict(parts_of(asked_at, repeat)))
    print_table(runs, out)


def print_table(runs: list[dict[str, float]], out: Console) -> None:
    table = Table("part", "median s", "most s")
    for part in dict.fromkeys(name for run in runs for name in run):
        values = [run.get(part, 0.0) for run in runs]
        style = "" if is_own(part) else "dim"
        table.add_row(part, f"{statistics.median(values):.3f}", f"{max(values):.3f}", style=style)
    own = [sum(value for part, value in run.items() if is_own(part)) for run in runs]
    table.add_section()
    table.add_row("own time, all but record, verify, measure", f"{statistics.median(own):.3f}", f"{max(own):.3f}")
    out.print(table)


if __name__ == "__main__":
    main()
