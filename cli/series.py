"""Which series or comparison is meant, where the command line leaves something open."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from cli.client import Client
from cli.errors import CliError, ProblemError
from cli.text import case_name
from contract.api import CompareOut, KernelOut, KernelPage, RevisionOut, Series
from contract.devices import DeviceClass
from contract.regressions import ChangeOut, ChangesOut
from contract.statics import STATIC_METRICS
from contract.views import KernelDetail, NodeDetail, NodePage

# What the machine code says is of no case.
NO_CASE = ""
PREFERRED_METRICS = ("throughput", "throughput_over_baseline", "time")


@dataclass(frozen=True)
class Chosen:
    """A series, and the kernel whose other series could be asked for. `changes`: of machine code, where another
    toolchain built it."""

    series: Series
    kernel: KernelOut
    changes: tuple[ChangeOut, ...] = ()


def kernels_of(client: Client, project: str) -> list[KernelOut]:
    return list(client.items(f"/projects/{project}/kernels", KernelPage))


def nodes_of(client: Client) -> list[NodeDetail]:
    return list(client.items("/nodes", NodePage))


def choose_series(
    client: Client, *, project: str, kernel: str, device_class: DeviceClass | None, case: str | None, metric: str | None
) -> Chosen:
    """The series asked for; of what is left open, the first in the kernel's order that has values."""
    found = _kernel(client, project, kernel)
    if not found.device_classes or not found.cases or not found.metrics:
        raise CliError(f"{kernel} has no measurements yet", hint="`kernelgate submit PATH --wait` brings some")
    if metric is not None and metric not in found.metrics:
        raise CliError(f"{kernel} has no metric {metric} (it has {', '.join(found.metrics)})")
    preferred = [name for name in PREFERRED_METRICS if name in found.metrics]
    metrics = [metric] if metric else preferred or found.metrics[:1]
    of_machine_code = metrics[0].partition(".")[0] in STATIC_METRICS
    wanted = product(
        [device_class] if device_class else found.device_classes,
        [NO_CASE] if of_machine_code else [_case(found, case)] if case else found.cases,
        metrics,
    )
    first: Series | None = None
    for klass, case_id, name in wanted:
        query = {"device_class": klass.value, "case": case_id, "metric": name}
        series = client.get(f"/projects/{project}/kernels/{kernel}/history", Series, **query)
        if any(point.value is not None for point in series.points):
            changes = f"/projects/{project}/kernels/{kernel}/changes"
            told = client.get(changes, ChangesOut, **query).changes if of_machine_code else ()
            return Chosen(series=series, kernel=found, changes=told)
        first = first or series
    assert first is not None  # noqa: S101 - there is a class, a case and a metric
    return Chosen(series=first, kernel=found)


def choose_comparison(
    client: Client, *, project: str, kernel: str | None, base: str, head: str, device_class: DeviceClass | None
) -> CompareOut:
    """The comparison of two revisions; the kernel follows from an id, the class from the kernel."""
    for name in (head, base):
        if kernel is None and name.startswith("rev_"):
            revision = client.get(f"/revisions/{name}", RevisionOut)
            project, kernel = revision.project, revision.kernel
    if kernel is None:
        raise CliError(f"{base} and {head} are labels: of which kernel?", hint="name it with --kernel")
    if device_class is None:
        classes = _kernel(client, project, kernel).device_classes
        if not classes:
            raise CliError(f"{kernel} has no measurements yet", hint="`kernelgate submit PATH --wait` brings some")
        device_class = classes[0]
    return client.get(
        f"/projects/{project}/kernels/{kernel}/compare",
        CompareOut,
        base=base,
        head=head,
        device_class=device_class.value,
    )


def _kernel(client: Client, project: str, name: str) -> KernelOut:
    try:
        return client.get(f"/projects/{project}/kernels/{name}", KernelDetail)
    except ProblemError as error:
        if error.kind != "unknown-kernel":
            raise
    names = ", ".join(kernel.name for kernel in kernels_of(client, project)) or "none"
    raise CliError(f"{project} has no kernel {name} (it has {names})", hint="--project names another project")


def _case(kernel: KernelOut, asked: str) -> str:
    for case in kernel.cases:
        if asked in {case, case_name(case)}:
            return case
    raise CliError(f"{kernel.name} has no case {asked} (it has {'; '.join(map(case_name, kernel.cases))})")
