"""`kernelgate doctor`: what this machine can do and what is missing, by trying it."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cli.doctor import card, compilers, confinement, host, tools
from cli.doctor.findings import MEANING, Finding, Purpose
from contract.base import Model


class Diagnosis(Model):
    """`able` says of each purpose whether nothing that it needs is missing."""

    able: dict[Purpose, bool]
    findings: tuple[Finding, ...]


def doctor(*, json_output: bool) -> int:
    """The exit status: 0 if this machine can measure on its CPU, else 1."""
    from cli.show.console import console  # noqa: PLC0415
    from cli.show.output import print_json  # noqa: PLC0415

    diagnosis = diagnose()
    if json_output:
        print_json(diagnosis)
    else:
        _show(diagnosis, console())
    return 0 if diagnosis.able[Purpose.CPU] else 1


def diagnose() -> Diagnosis:
    findings = tuple(_findings())
    return Diagnosis(
        able={purpose: all(f.state == "ok" for f in findings if purpose in f.needed_for) for purpose in Purpose},
        findings=findings,
    )


def _findings() -> Iterator[Finding]:
    yield host.python()
    yield host.packages()
    yield host.gxx()
    yield host.make()
    yield host.redis()
    yield compilers.nvcc()
    yield compilers.triton()
    yield from card.card()
    yield host.sandbox()
    yield from confinement.confinement()
    yield from tools.tools()
    yield host.cgroup()
    yield host.postgresql()
    yield host.node()


def _show(diagnosis: Diagnosis, console: Console) -> None:
    can = [MEANING[purpose] for purpose, able in diagnosis.able.items() if able]
    cannot = [MEANING[purpose] for purpose, able in diagnosis.able.items() if not able]
    console.print(f"This machine can {'; '.join(can) or 'do nothing of this yet'}.")
    if cannot:
        console.print(f"It can't {'; '.join(cannot)}.")
    table = Table(box=None, pad_edge=False)
    for header in ("", "", "found", "what to do"):
        table.add_column(header, justify="left", overflow="fold")
    for finding in diagnosis.findings:
        style = "green" if finding.state == "ok" else "yellow"
        table.add_row(finding.name, Text(finding.state, style=style), finding.detail, finding.advice)
    console.print()
    console.print(table)
