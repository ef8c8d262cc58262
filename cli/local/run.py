"""`kernelgate run`: the worker's pipeline on this machine, for one folder, without a service."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime, timedelta

from pydantic import ValidationError
from rich.console import Console
from rich.live import Live
from rich.text import Text

from cli.bundles import Folder
from cli.errors import CliError
from cli.local.judged import evaluation_of
from cli.show.stages import progress_words
from contract.api import EvaluationOut
from contract.devices import DeviceClass
from contract.job import PROTOCOL_VERSION, Job, Progress, RevisionRef
from contract.names import LOCAL_PROJECT
from contract.suite import Suite
from contract.text import one_line

LIMIT = timedelta(hours=1)


def run_here(
    head: Folder,
    *,
    base: Folder | None,
    cases: tuple[str, ...],
    verify: bool,
    profile: bool,
    device_class: DeviceClass | None,
    out: Console,
) -> tuple[EvaluationOut, Suite]:
    """Evaluate `head` now. Returns the evaluation and the suite that judged it: the folder's, with `cases` alone."""
    from worker.pipeline import evaluate  # noqa: PLC0415
    from worker.sandbox import NoSandbox, choose  # noqa: PLC0415
    from worker.settings import WorkerSettings  # noqa: PLC0415

    if head.suite is None:
        raise CliError(
            f"{head.path.parent}: suite.toml is missing", hint="a suite names the operator, dtype and cases to run"
        )
    suite = chosen_suite(head.suite, cases, verify=verify)
    here = local_device_class()
    wanted = device_class or (DeviceClass.CPU if head.manifest.language == "cpp" else here)
    build_only = wanted not in {here, DeviceClass.CPU}
    if build_only:
        out.print(f"there is no {wanted.value} here: it is built, not run", style="yellow")
    elif wanted is DeviceClass.CPU and head.manifest.language != "cpp":
        out.print("there is no card here: it is compiled for its architectures and not measured", style="yellow")
    # An operator of the folder's own is trusted like the folder.
    settings = WorkerSettings(device_class=DeviceClass.CPU if build_only else wanted, own_operators=(LOCAL_PROJECT,))
    sandbox = choose(settings)
    if not sandbox.isolates:
        # A folder of one's own, on one's own machine.
        out.print(f"{sandbox.problem or 'the sandbox is off'}: it runs with your rights", style="yellow")
        sandbox = NoSandbox()
    job = job_here(head, base, suite, wanted).model_copy(update={"build_only": build_only, "profile": profile})
    bundles = {folder.digest: folder.files for folder in (head, base) if folder}
    started = datetime.now(UTC)
    show = _Shown(out)
    with show:
        report = evaluate(
            job,
            bundles,
            settings=settings,
            on_progress=show.progress,
            cancelled=lambda: False,
            sandbox=sandbox,
        )
    return evaluation_of(job, report, node=settings.node_name, started_at=started), suite


def chosen_suite(suite: Suite, cases: tuple[str, ...], *, verify: bool) -> Suite:
    """`suite` with these cases (`m=64,n=64,k=64`) in the place of its own, and its verify cases only if `verify`."""
    content = suite.model_dump()
    content["verify_cases"] = content["verify_cases"] if verify else ()
    if cases:
        wanted = [{"dims": _dims(case)} for case in cases]
        known = {case.id: case.model_dump() for case in suite.cases}
        try:
            bare = Suite.model_validate({**content, "cases": wanted, "allowances": (), "predictions": ()})
        except ValidationError as error:
            message = error.errors()[0]["msg"].removeprefix("Value error, ")
            raise CliError(f"--case: {message}") from error
        ids = [case.id for case in bare.cases]
        content["cases"] = [known.get(case.id) or case.model_dump() for case in bare.cases]
        for entries in ("allowances", "predictions"):
            content[entries] = [entry for entry in content[entries] if entry["case"] in ids]
    return Suite.model_validate(content)


def local_device_class() -> DeviceClass:
    """The class of the GPU here; `cpu` without one, or with one of no class."""
    from contract.devices import device_class_of  # noqa: PLC0415
    from worker.node import probe_gpu  # noqa: PLC0415

    gpu, _ = probe_gpu()
    return (device_class_of(gpu.name) if gpu else None) or DeviceClass.CPU


def to_csv(evaluation: EvaluationOut) -> str:
    """case,metric,value,low,high,unit: a line a metric."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(("case", "metric", "value", "low", "high", "unit"))
    for result in evaluation.cases:
        for metric in result.metrics:
            lines.writerow((result.case, metric.name, metric.value, metric.low, metric.high, metric.unit))
    return text.getvalue()


def job_here(head: Folder, base: Folder | None, suite: Suite, device_class: DeviceClass) -> Job:
    """What a service would hand to a node, for folders that no service knows."""
    return Job(
        evaluation_id="ev_local",
        lease_token="none",  # noqa: S106 - nobody is asked
        deadline=datetime.now(UTC) + LIMIT,
        heartbeat_s=5.0,
        project=LOCAL_PROJECT,
        kernel=suite.kernel,
        device_class=device_class,
        revision=_reference("rev_head", head),
        base=_reference("rev_base", base) if base else None,
        suite=suite,
        protocol_version=PROTOCOL_VERSION,
        repeat=1,
    )


def _reference(name: str, folder: Folder) -> RevisionRef:
    return RevisionRef(id=name, label=folder.manifest.label, digest=folder.digest)


def _dims(case: str) -> dict[str, int]:
    dims = {}
    for part in case.split(","):
        name, _, value = part.partition("=")
        if not value.strip().isdigit() or not name.strip():
            raise CliError(f"--case {case}: {part!r} is not of the form m=4096", hint="--case m=4096,n=4096,k=4096")
        dims[name.strip()] = int(value)
    return dims


class _Shown:
    """Progress in one line that is redrawn, or one line a stage where there is no terminal."""

    def __init__(self, out: Console) -> None:
        self._out = out
        self._live = Live(console=out, transient=True, refresh_per_second=8) if out.is_terminal else None
        self._stage = ""

    def __enter__(self) -> None:
        if self._live:
            self._live.start()

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def progress(self, progress: Progress) -> None:
        if self._live:
            self._live.update(Text(f"  {progress.stage.value:<9} {progress_words(progress)}"))
        elif progress.stage.value != self._stage:
            self._stage = progress.stage.value
            self._out.print(f"  {self._stage:<9} {one_line(progress.detail)}")
