"""Records pairs of fresh processes on this machine's GPU, through the worker's whole pipeline: build, record, verify,
judge. Identical code (the kernel against itself), then heads that do more work by a known share.

    python -m scripts.study.record --out data/h200_study1_samples.json.gz --identical 3 --slowdowns 0.007 0.02

One evaluation of identical code has 16 pairs of every workload and takes about 3 minutes on an H200, one of a slowdown
8 pairs. The file is written after each evaluation, so that what is there counts even where the run is ended. Several
runs give several files; `make study` reads all of data/*_samples.json.gz.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from contract.bundle import MANIFEST, Files, digest
from contract.devices import DeviceClass, device_class_of
from contract.job import PROTOCOL_VERSION, Job, RevisionRef
from contract.manifest import parse_suite
from contract.own_operator import FILE as OWN_OPERATOR
from contract.report import CaseResult, Report
from contract.suite import Policy, Suite
from worker import pipeline
from worker.node import probe_gpu
from worker.settings import WorkerSettings

ROOT = Path(__file__).parents[2]
SUBJECT = Path(__file__).parent / "subject"
SOURCE = "handed_on.cu"
IDENTICAL_PROCESSES, SLOWED_PROCESSES = 16, 8
# So small that no look decides: every workload has all its processes.
UNDECIDABLE = 1e-9
_LIMIT = timedelta(minutes=40)


def suite_of(device_class: DeviceClass, titles: Sequence[str]) -> Suite:
    """Of these workloads; of all of them where none is named."""
    operator = (SUBJECT / OWN_OPERATOR).read_text(encoding="utf-8")
    whole = parse_suite((SUBJECT / "suite.toml").read_text(encoding="utf-8"), operator=operator)
    cases = tuple(case for case in whole.cases if not titles or case.title in titles)
    if len(cases) < len(titles) or not cases:
        known = ", ".join(case.title or case.id for case in whole.cases)
        raise SystemExit(f"the workloads are {known}")
    policy = Policy(allowed_slowdown=UNDECIDABLE)
    return whole.model_copy(update={"cases": cases, "device_classes": (device_class,), "policy": policy})


def bundle(slowdown: float) -> Files:
    """The kernel, with so much more work (0.01: one per cent)."""
    folder = SUBJECT / "v1"
    extra = f"#define EXTRA_PPM {round(1e6 * slowdown)}\n"
    return {
        MANIFEST: (folder / MANIFEST).read_bytes(),
        SOURCE: extra.encode() + (folder / SOURCE).read_bytes(),
    }


def evaluate(slowdown: float, *, suite: Suite, settings: WorkerSettings) -> Report:
    head, base = bundle(slowdown), bundle(0.0)

    def ref(files: Files) -> RevisionRef:
        return RevisionRef(id=digest(files)[:12], label="v1", digest=digest(files))

    identical = slowdown == 0.0
    return pipeline.evaluate(
        Job(
            evaluation_id="study",
            lease_token="",
            deadline=datetime.now(UTC) + _LIMIT,
            heartbeat_s=30.0,
            project="local",
            kernel=suite.kernel,
            device_class=suite.device_classes[0],
            revision=ref(head),
            base=ref(base),
            suite=suite,
            protocol_version=PROTOCOL_VERSION,
            repeat=1,
        ),
        {digest(files): files for files in (head, base)},
        settings=settings.model_copy(
            update={
                "judge": (*settings.judge, "--against-itself"),
                "max_processes": IDENTICAL_PROCESSES if identical else SLOWED_PROCESSES,
                "own_operators": ("local",),
                # Where no sandbox works: this is the project's own code.
                "trusted_bundles": (*settings.trusted_bundles, digest(head), digest(base)),
            }
        ),
        on_progress=lambda _: None,
        cancelled=lambda: False,
    )


def rows_of(report: Report, *, suite: Suite, slowdown: float) -> Iterator[dict[str, Any]]:
    titles = {case.id: case.title for case in suite.cases}
    for case in report.cases:
        for place, pair in enumerate(case.pairs, start=1):
            yield {
                "workload": titles[case.case],
                "kind": "copy" if "kind=2" in case.case else "compute",
                "true_work_ratio": 1.0 + slowdown,
                "pair": place,
                "capped": case.power_capped,
                "held_s": round((case.held_s or 0.0) / len(case.pairs), 4),
                "rounds": [{"base": list(each.base), "head": list(each.head)} for each in pair.rounds],
            }


def said_of(case: CaseResult, title: str) -> str:
    time_us = next((metric.value for metric in case.metrics if metric.name == "time"), 0.0)
    ratio = case.judgement.ratio if case.judgement else None
    capped = ", power capped" if case.power_capped else ""
    held = f"{len(case.pairs)} pairs, {case.held_s or 0.0:.1f} s{capped}"
    return f"  {title:16} {time_us:9.2f} us, ratio {ratio or 0.0:.5f}, {held}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--identical", type=int, default=1, help="evaluations of identical code")
    parser.add_argument("--slowdowns", type=float, nargs="*", default=[], help="one evaluation each, such as 0.007")
    parser.add_argument("--workloads", nargs="*", default=[], help="titles of subject/suite.toml; all by default")
    arguments = parser.parse_args()
    gpu, problem = probe_gpu()
    device_class = device_class_of(gpu.name) if gpu else None
    if gpu is None or device_class is None:
        raise SystemExit(problem or "this GPU is of no class that is known")
    suite = suite_of(device_class, arguments.workloads)
    settings = WorkerSettings(device_class=device_class)
    rows: list[dict[str, Any]] = []
    for slowdown in (*[0.0] * arguments.identical, *arguments.slowdowns):
        began = time.monotonic()
        report = evaluate(slowdown, suite=suite, settings=settings)
        print(f"{slowdown:.3%} more work: {time.monotonic() - began:.0f} s")
        titles = {case.id: case.title or case.id for case in suite.cases}
        for case in report.cases:
            print(said_of(case, titles[case.case]))
        if report.failure is not None:
            print(report.failure.message, report.log[-2000:], file=sys.stderr)
        rows += rows_of(report, suite=suite, slowdown=slowdown)
        note = (
            f"Recorded by scripts/study/record.py on {datetime.now(UTC).date()}, driver {gpu.driver}: pairs of fresh "
            "launcher processes through the worker's pipeline, T(n)/n in microseconds by the launcher's events; "
            "true_work_ratio is the head's amount of work over the base's, to which the time's ratio comes near."
        )
        content = {"device": gpu.name, "unit": "us", "note": note, "comparisons": rows}
        arguments.out.write_bytes(gzip.compress(json.dumps(content).encode(), mtime=0))
        if report.failure is not None:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
