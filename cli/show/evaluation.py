"""One evaluation, running or finished, as its submitter sees it."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cli.show.cases import allowances, case_table
from cli.show.outcomes import JUDGED_BAD, NOT_MEASURED, outcome_text
from cli.show.profile import profile_table
from cli.show.stages import progress_words, stage_lines
from contract.api import EvaluationOut
from contract.job import Progress
from contract.outcomes import State
from contract.suite import Suite
from contract.text import clean, one_line

MESSAGE_LINES = 25


def evaluation_view(
    evaluation: EvaluationOut, *, progress: Sequence[Progress] = (), suite: Suite | None = None, link: str | None = None
) -> RenderableType:
    """Header, stages, table of cases, and, once finished, the outcome in one sentence.

    `progress`: the latest of each stage of an evaluation that runs, in order.
    """
    parts: list[RenderableType] = [header(evaluation)]
    if evaluation.state is State.QUEUED:
        parts.append(Text(f"  queued    waiting for a node of class {evaluation.device_class.value}", style="dim"))
    parts += stage_lines(evaluation, progress)
    if evaluation.cases:
        base = evaluation.base.label if evaluation.base else None
        allowed = allowances(
            suite, revision=evaluation.revision.label, base=base, device_class=evaluation.device_class.value
        )
        parts += [Text(), case_table(evaluation.cases, base=base, allowed=allowed), *profile_table(evaluation.cases)]
    if evaluation.state in {State.FINISHED, State.CANCELLED}:
        parts += [Text(), *conclusion(evaluation)]
        if link:
            parts.append(Text(link, style="underline"))
    return Group(*parts)


def header(evaluation: EvaluationOut) -> RenderableType:
    line = Table.grid(expand=True)
    line.add_column(ratio=1)
    line.add_column(justify="right")
    line.add_row(Text(title(evaluation), style="bold"), Text(place(evaluation), style="dim"))
    return line


def title(evaluation: EvaluationOut) -> str:
    """`hgemm v4 against v3 on h200`."""
    against = f" against {one_line(evaluation.base.label)}" if evaluation.base else ""
    again = f" (repeat {evaluation.repeat})" if evaluation.repeat > 1 else ""
    how = "built for" if evaluation.build_only else "on"
    name = f"{one_line(evaluation.kernel)} {one_line(evaluation.revision.label)}"
    return f"{name}{against} {how} {evaluation.device_class.value}{again}"


def place(evaluation: EvaluationOut) -> str:
    """`node gpu-07, driver 580.159, SM 1980 MHz not locked`, as far as it is known."""
    parts = [f"node {one_line(evaluation.attempts[-1].node)}"] if evaluation.attempts else []
    where = evaluation.environment
    if where is not None:
        parts.append(f"driver {one_line(where.driver)}" if where.driver else one_line(where.cpu or where.device))
        sm_mhz = where.clocks.get("sm_clock_mhz")
        if isinstance(sm_mhz, (int, float)) and sm_mhz:
            parts.append(f"SM {sm_mhz:.0f} MHz")
    return ", ".join(part for part in parts if part)


def conclusion(evaluation: EvaluationOut) -> list[Text]:
    """The outcome in one sentence; for a bad one, first what the compiler or the checks said."""
    outcome = evaluation.outcome
    said = outcome_text(outcome, otherwise=evaluation.state.value)
    sentence = one_line(evaluation.summary or "", limit=1000).removeprefix(said.plain).lstrip(": ")
    lines = []
    message = clean(evaluation.message or "").strip()
    if message and (outcome is None or outcome in JUDGED_BAD | NOT_MEASURED):
        repeated = one_line(message, limit=60).removesuffix("…").rstrip()
        if "\n" in message or repeated not in sentence:
            lines = _excerpt(message.splitlines())
            # What stands in full above isn't repeated, cut short, below.
            sentence = sentence.partition(repeated)[0].rstrip(": ")
    if sentence:
        said.append(f" {sentence}" if sentence.startswith("(") else f": {sentence}", style="default not bold")
    return [*lines, said]


def _excerpt(message: list[str]) -> list[Text]:
    lines = [Text(f"  {line}") for line in message[:MESSAGE_LINES]]
    if len(message) > MESSAGE_LINES:
        lines.append(Text(f"  … {len(message) - MESSAGE_LINES} more lines (--json shows all)", style="dim"))
    return lines


def one_liner(evaluation: EvaluationOut, progress: Progress | None = None) -> str:
    """For a log: what it is doing now."""
    if progress is not None:
        return f"{title(evaluation)}: {progress.stage.value}  {progress_words(progress)}"
    stage = evaluation.stage.value if evaluation.stage else evaluation.state.value
    return f"{title(evaluation)}: {stage}"
