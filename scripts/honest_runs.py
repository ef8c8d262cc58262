"""Judges every shipped revision again and again on this machine, and keeps what came of each run.

    python scripts/honest_runs.py --runs 20 --seconds 540

A run is a whole evaluation through the worker's pipeline, in the sandbox where the machine has one: all checks of all
cases, then one process a side of each timed case, against the revision before. Compilers and the recorder work once a
machine, launchers and judge in each run. Each GPU that is visible works by itself.

Adds a line a run to data/honest_runs_<class>.jsonl (or --out) and goes on where it ends, until each revision has
`--runs` of them: what several machines have done one after the other counts together. Ends with 1 where a run of the
file was incorrect or untrusted. `--page` writes the tables of docs/measurement.md from the files and runs nothing.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from pydantic import AwareDatetime  # noqa: E402 - after the path is set

from cli.bundles import Folder, read_folder, read_suite  # noqa: E402
from cli.local.judged import evaluation_of  # noqa: E402
from cli.local.run import chosen_suite, job_here, local_device_class  # noqa: E402
from contract.base import Model  # noqa: E402
from contract.devices import DeviceClass  # noqa: E402
from contract.outcomes import Outcome, Reason, Stage  # noqa: E402
from contract.suite import Suite  # noqa: E402
from worker.operators import tensors_of  # noqa: E402
from worker.pipeline import Cancelled, evaluate  # noqa: E402
from worker.sandbox import NoSandbox, choose  # noqa: E402
from worker.settings import WorkerSettings  # noqa: E402

RUNS = 20
PAGE = ROOT / "docs" / "measurement.md"
BEGIN, END = "<!-- from data/honest_runs_*.jsonl -->", "<!-- end of the runs -->"
BLAMED = (Outcome.INCORRECT, Outcome.UNTRUSTED)
# With one process a side no difference is told: these say no more than that nothing was wrong.
HONEST = (Outcome.PASSED, Outcome.INCONCLUSIVE, Outcome.SLOWER)


class Run(Model):
    """What came of one. `of_bound`: the worst error of all checks as a share of its bound. `fresh`: built or recorded
    in this run, not found in the cache."""

    at: AwareDatetime
    kernel: str
    revision: str
    digest: str
    base: str | None = None
    number: int
    outcome: Outcome
    reason: Reason | None = None
    message: str | None = None
    checks: int
    of_bound: float | None = None
    cases: int
    seconds: float
    fresh: bool
    sandbox: bool
    protocol: int
    device: str
    device_uuid: str | None = None
    versions: dict[str, str]

    @property
    def judged(self) -> bool:
        return self.outcome in BLAMED or self.outcome in HONEST


@dataclass(frozen=True)
class Revision:
    """One to be judged, against the one before it in the suite's list."""

    folder: Folder
    base: Folder | None
    suite: Suite

    @property
    def key(self) -> tuple[str, str]:
        return self.suite.kernel, self.folder.digest

    @property
    def name(self) -> str:
        return f"{self.suite.kernel}/{self.folder.path.name}"


def shipped(device_class: DeviceClass, *, only: str = "", ends: bool = False) -> list[Revision]:
    """What the suites below kernels/ list for this class. `ends`: of the timed cases the smallest
    and the largest alone."""
    found = []
    for file in sorted((ROOT / "kernels").glob("*/suite.toml")):
        suite = read_suite(file.parent)
        if device_class not in suite.device_classes:
            continue
        # What the sanitizer says has its own script.
        judged = suite.model_copy(update={"sanitize": ()})
        if ends:
            by_size = sorted(suite.cases, key=lambda case: sum(each.bytes for each in tensors_of(suite, case)))
            judged = chosen_suite(judged, (by_size[0].id, by_size[-1].id), verify=True)
        folders = [read_folder(file.parent / name) for name in suite.revisions]
        found += [Revision(head, base, judged) for head, base in zip(folders, [None, *folders], strict=False)]
    return [one for one in found if only in one.name]


def run(revision: Revision, device_class: DeviceClass, number: int, ends_at: float) -> Run | None:
    """None where the time (`time.time`) was over before it was done."""
    settings = WorkerSettings(device_class=device_class, max_processes=1, own_operators=("local",))
    sandbox = choose(settings)
    job = job_here(revision.folder, revision.base, revision.suite, device_class)
    began, started = datetime.now(UTC), time.monotonic()
    try:
        report = evaluate(
            job,
            {folder.digest: folder.files for folder in (revision.folder, revision.base) if folder},
            settings=settings,
            on_progress=lambda _: None,
            cancelled=lambda: time.time() > ends_at,
            sandbox=sandbox if sandbox.isolates else NoSandbox(),
        )
    except Cancelled:
        return None
    done = evaluation_of(job, report, node=settings.node_name, started_at=began)
    where = report.environment
    assert where is not None  # noqa: S101 - the pipeline always fills it
    return Run(
        at=began.replace(microsecond=0),
        kernel=done.kernel,
        revision=revision.folder.path.name,
        digest=revision.folder.digest,
        base=done.base.label if done.base else None,
        number=number,
        outcome=done.outcome or Outcome.INFRASTRUCTURE_ERROR,
        reason=done.reason,
        message=done.message,
        checks=len(done.checks),
        of_bound=max((check.of_bound for check in done.checks if check.of_bound is not None), default=None),
        cases=sum(case.skipped is None for case in done.cases),
        seconds=round(time.monotonic() - started, 1),
        fresh=any(stage.stage in {Stage.BUILD, Stage.RECORD} and not stage.cached for stage in done.stages),
        sandbox=where.sandbox,
        protocol=done.protocol_version,
        device=where.device,
        device_uuid=where.device_uuid,
        versions={
            name: version
            for name, version in {"driver": where.driver, "cuda": where.cuda, **where.libraries}.items()
            if version
        },
    )


def read(file: Path) -> list[Run]:
    if not file.exists():
        return []
    return [Run.model_validate_json(line) for line in file.read_text(encoding="utf-8").splitlines() if line]


def rounds(revisions: Sequence[Revision], before: Iterable[Run], runs: int) -> Iterator[tuple[Revision, int]]:
    """(revision, number of its run), those with the fewest runs first: wherever it is ended, all have as many."""
    had = Counter((one.kernel, one.digest) for one in before if one.judged)
    for number in range(1, runs + 1):
        yield from ((each, number) for each in revisions if had[each.key] < number)


def table(runs: Sequence[Run]) -> str:
    """A row a revision, as it was when it ran last."""
    newest = {(one.kernel, one.revision): one.digest for one in sorted(runs, key=lambda one: one.at)}
    lines = [
        "| revision | runs | incorrect | untrusted | not judged | checks | worst error of its bound | timed cases |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for (kernel, revision), digest in sorted(newest.items()):
        own = [one for one in runs if (one.kernel, one.revision, one.digest) == (kernel, revision, digest)]
        outcomes = Counter(one.outcome for one in own)
        judged = sum(one.judged for one in own)
        worst = max((one.of_bound for one in own if one.of_bound is not None), default=None)
        cells = (
            f"{kernel} {revision}",
            *(judged, *(outcomes[outcome] for outcome in BLAMED), len(own) - judged),
            sum(one.checks for one in own),
            "" if worst is None else f"{worst:.2f}",
            sum(one.cases for one in own),
        )
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def section(file: Path) -> str:
    """A file as the page has it: where and when, and its table."""
    runs = read(file)
    devices = sorted({one.device for one in runs})
    cards = len({one.device_uuid for one in runs if one.device_uuid})
    days = sorted({one.at.date().isoformat() for one in runs})
    confined = "in the sandbox" if all(one.sandbox for one in runs) else "not all of them in the sandbox"
    where = f"{cards} cards, {devices[0]}" if cards > 1 else ", ".join(devices)
    said = f"`{file.name}`: {where}; {' to '.join(dict.fromkeys((days[0], days[-1])))}, {confined}."
    return f"{said}\n\n{table(runs)}"


def with_sections(page: str, files: Iterable[Path]) -> str:
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"the page lacks {BEGIN} … {END}")
    return f"{before}{BEGIN}\n\n" + "\n\n".join(map(section, files)) + f"\n\n{END}{after}"


def data_files() -> list[Path]:
    return sorted((ROOT / "data").glob("honest_runs_*.jsonl"))


def visible_gpus() -> list[str]:
    if "CUDA_VISIBLE_DEVICES" in os.environ:
        return [name for name in os.environ["CUDA_VISIBLE_DEVICES"].split(",") if name]
    return [str(index) for index in range(len(list(Path("/dev").glob("nvidia[0-9]*"))))] or ["0"]


def _take_gpu(free: SimpleQueue[str]) -> None:
    os.environ["CUDA_VISIBLE_DEVICES"] = free.get()


def all_runs(
    wanted: Iterator[tuple[Revision, int]],
    device_class: DeviceClass,
    *,
    lasted: dict[tuple[str, str], float],
    ends_at: float,
    keep: Callable[[Run], None],
) -> None:
    """One at a time on each GPU, or on the CPU. None begins that would not be done in time, as far as `lasted` (by a
    revision's key, in seconds) tells."""
    names = ["none"] if device_class is DeviceClass.CPU else visible_gpus()
    context = get_context("spawn")
    free: SimpleQueue[str] = context.SimpleQueue()
    for name in names:
        free.put(name)
    waiting: dict[Future[Run | None], Revision] = {}
    with ProcessPoolExecutor(len(names), mp_context=context, initializer=_take_gpu, initargs=(free,)) as pool:
        while True:
            for revision, number in wanted:
                if time.time() + lasted.get(revision.key, 0.0) < ends_at:
                    waiting[pool.submit(run, revision, device_class, number, ends_at)] = revision
                if len(waiting) == len(names):
                    break
            if not waiting:
                return
            for done in wait(waiting, return_when=FIRST_COMPLETED).done:
                revision = waiting.pop(done)
                if (found := done.result()) is not None:
                    lasted[revision.key] = max(found.seconds, lasted.get(revision.key, 0.0))
                    keep(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=RUNS, help="of each revision, those of the file included")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="after so many nothing runs any more")
    parser.add_argument("--out", type=Path, help="by default data/honest_runs_<class>.jsonl")
    parser.add_argument("--only", default="", help="revisions whose kernel/folder holds this")
    parser.add_argument("--ends", action="store_true", help="of the timed cases the smallest and the largest alone")
    parser.add_argument("--device-class", type=DeviceClass, help="by default the GPU's here, else cpu")
    parser.add_argument("--page", action="store_true", help="write the tables of docs/measurement.md and run nothing")
    asked = parser.parse_args()
    if asked.page:
        PAGE.write_text(with_sections(PAGE.read_text(encoding="utf-8"), data_files()), encoding="utf-8")
        return 0
    ends_at = time.time() + asked.seconds
    device_class = asked.device_class or local_device_class()
    out: Path = asked.out or ROOT / "data" / f"honest_runs_{device_class}.jsonl"
    before = read(out)
    wanted = list(rounds(shipped(device_class, only=asked.only, ends=asked.ends), before, asked.runs))
    lasted: dict[tuple[str, str], float] = {}
    for one in before:
        if not one.fresh:
            lasted[one.kernel, one.digest] = max(one.seconds, lasted.get((one.kernel, one.digest), 0.0))
    began, kept = time.monotonic(), 0

    def keep(found: Run) -> None:
        nonlocal kept
        kept += 1
        with out.open("a", encoding="utf-8") as file:
            file.write(found.model_dump_json(exclude_none=True) + "\n")
        left_s = (time.monotonic() - began) / kept * (len(wanted) - kept)
        said = found.outcome.value if found.reason is None else f"{found.outcome.value}: {found.message}"
        print(
            f"[{kept:>3} of {len(wanted)}, {left_s:4.0f} s left] {found.kernel}/{found.revision} run {found.number}:"
            f" {said}; {found.checks} checks, worst {found.of_bound or 0.0:.2f} of its bound; {found.seconds:.1f} s",
            flush=True,
        )

    all_runs(iter(wanted), device_class, lasted=lasted, ends_at=ends_at, keep=keep)
    runs = read(out)
    print(f"\n{table(runs)}")
    return int(any(one.outcome in BLAMED for one in runs))


if __name__ == "__main__":
    sys.exit(main())
