"""Writes what a service has measured on one device class as data that the project can carry.

    python scripts/export_measured.py h200 --out data

`<class>_ladders.csv`: a history as `kernelgate import` reads it, under a comment that says where and when.
`<class>_ladders.json.gz`: the evaluations themselves, with every sample, check, stage and version.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from cli.client import Client
from cli.local.home import find_home, service_address
from contract.api import EvaluationOut, EvaluationPage, RevisionOut
from contract.devices import DeviceClass
from contract.outcomes import State

COLUMNS = ("kernel", "device_class", "label", "base", "case", "metric", "value", "unit", "note")
# What a history needs; the rest is in the JSON beside it.
KEPT = ("time", "throughput", "throughput_over_baseline", "cudnn_time", "workspace_bytes")


def evaluations_of(client: Client, device_class: DeviceClass) -> list[EvaluationOut]:
    """The measured ones, oldest first, with their samples; only the newest repeat of each."""
    found: dict[tuple[str, str | None], EvaluationOut] = {}
    asked = {"state": State.FINISHED.value, "device_class": device_class.value}
    for one in client.items("/evaluations", EvaluationPage, **asked):
        if not one.build_only:
            found.setdefault((one.revision.id, one.base.id if one.base else None), one)
    wanted = sorted(found.values(), key=lambda one: one.created_at)
    return [client.get(f"/evaluations/{one.id}", EvaluationOut, samples=True) for one in wanted]


def to_csv(evaluations: Sequence[EvaluationOut], summaries: Mapping[str, str]) -> str:
    """`summaries`: of each revision, by its id."""
    text = io.StringIO()
    for line in provenance(evaluations):
        text.write(f"# {line}\n")
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    for one in evaluations:
        rows.writerows(_rows(one, summaries[one.revision.id]))
    rows.writerows(_baselines(evaluations))
    return text.getvalue()


def provenance(evaluations: Sequence[EvaluationOut]) -> Iterator[str]:
    """Device, driver, versions, clocks and date, as the evaluations report them."""
    where = next(one.environment for one in evaluations if one.environment)
    days = sorted({one.finished_at.date().isoformat() for one in evaluations if one.finished_at})
    libraries = dict(item for one in evaluations if one.environment for item in one.environment.libraries.items())
    protocol = evaluations[0].protocol_version
    cards = len({one.environment.device_uuid for one in evaluations if one.environment})
    yield f"Measured by Kernelgate (protocol {protocol}) on {_cards(cards, where.device)}, {' to '.join(days)}."
    yield f"Driver {where.driver or 'none'}, CUDA {where.cuda or 'none'}; " + ", ".join(
        f"{name} {libraries[name]}" for name in sorted(libraries)
    )
    yield "Clocks not locked; " + (
        ", ".join(f"{name} {value}" for name, value in sorted(where.clocks.items())) or "none reported"
    )
    yield "Time of a call in a burst: median over fresh processes; samples, intervals and checks: the JSON beside this."


def _cards(count: int, name: str) -> str:
    return f"one {name}" if count == 1 else f"{count} cards, each one {name}"


def _rows(one: EvaluationOut, summary: str) -> Iterator[tuple[object, ...]]:
    base = one.base.label if one.base else ""
    for result in one.cases:
        for metric in result.metrics:
            if metric.name in KEPT:
                yield (
                    one.kernel,
                    one.device_class.value,
                    one.revision.label,
                    base,
                    result.case,
                    metric.name,
                    f"{metric.value:.6g}",
                    metric.unit,
                    summary,
                )


def _baselines(evaluations: Sequence[EvaluationOut]) -> Iterator[tuple[object, ...]]:
    """Of each case, the baseline in the newest evaluation that has one: its time, and its throughput at that."""
    newest = {
        (one.kernel, result.case): result
        for one in evaluations
        for result in one.cases
        if any(metric.name == "baseline_time" for metric in result.metrics)
    }
    device_class = evaluations[0].device_class.value
    for (kernel, case), result in newest.items():
        found = {metric.name: metric for metric in result.metrics}
        name = (result.baseline or "baseline").split(" (")[0].replace(" ", "_")
        time_us, throughput = found["baseline_time"].value, found["throughput"]
        as_baseline = throughput.value * found["time"].value / time_us
        for metric, value, unit in (("time", time_us, "us"), ("throughput", as_baseline, throughput.unit)):
            yield kernel, device_class, name, "", case, metric, f"{value:.6g}", unit, f"baseline {result.baseline}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("device_class", type=DeviceClass)
    parser.add_argument("--out", type=Path, default=Path("data"))
    arguments = parser.parse_args()
    url, token = service_address(find_home())
    with Client(url, token) as client:
        evaluations = evaluations_of(client, arguments.device_class)
        summaries = {
            one.revision.id: client.get(f"/revisions/{one.revision.id}", RevisionOut).summary for one in evaluations
        }
    if not evaluations:
        raise SystemExit(f"nothing was measured on {arguments.device_class.value}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    name = arguments.out / f"{arguments.device_class.value}_ladders"
    name.with_suffix(".csv").write_text(to_csv(evaluations, summaries))
    content = json.dumps([one.model_dump(mode="json", exclude_none=True) for one in evaluations])
    name.with_suffix(".json.gz").write_bytes(gzip.compress(content.encode(), mtime=0))
    print(f"{len(evaluations)} evaluations -> {name}.csv, {name}.json.gz")


if __name__ == "__main__":
    main()
