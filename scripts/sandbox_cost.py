"""What sandbox and checks cost on this machine: `python scripts/sandbox_cost.py [--gpu]`. Prints a Markdown table.

Starts of an empty command, a CPU launcher that loads a library, and a build, with and without the sandbox in turn; the
time that a burst of an empty kernel takes by the judge's clock; and whole evaluations of a shipped revision against the
one before, 4 processes a side with one round each, nothing built or recorded before: with everything, without the
sandbox, and without the checks of timed calls either (`scripts/trusting_judge.py`). With `--gpu`, on a machine that has
one and its own Python: starts of a launcher and of a recorder that records one case, and evaluations for the GPU.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
os.environ["PYTHONPATH"] = os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", "")))

from cli.bundles import read_folder  # noqa: E402 - after the path is set
from cli.local.run import job_here, local_device_class  # noqa: E402
from contract.devices import DeviceClass  # noqa: E402
from contract.layout import lay_out  # noqa: E402
from worker.judge.device_cpu import CpuArena, CpuDevice  # noqa: E402
from worker.launch.client import Launcher  # noqa: E402
from worker.launch.family import adopt_orphans  # noqa: E402
from worker.operators import OPERATORS  # noqa: E402
from worker.pipeline import evaluate  # noqa: E402
from worker.process import Limits, environment, run  # noqa: E402
from worker.protocol import Attach, Detach, Load, Prepare, RecordCase, RecordJob  # noqa: E402
from worker.sandbox import NoSandbox, Sandbox, choose  # noqa: E402
from worker.settings import WorkerSettings  # noqa: E402
from worker.toolchains.base import INCLUDE  # noqa: E402

STARTS, GPU_STARTS, BUILDS, BURSTS, EVALUATIONS = 30, 8, 8, 400, 2
PROCESSES = 4
DIMS = {"m": 16, "n": 16, "k": 16}
CASE = "m=16,n=16,k=16"
GPU_SOURCE = ROOT / "kernels" / "hgemm" / "v2_wmma" / "hgemm.cu"
SOURCE = ROOT / "kernels" / "sgemm_cpu" / "v1_blocked"
EVALUATED = (SOURCE.with_name("v2_vectorised"), SOURCE)
GPU_EVALUATED = (GPU_SOURCE.parent, GPU_SOURCE.parent.with_name("v1_tiled"))
TRUSTING_JUDGE = ROOT / "scripts" / "trusting_judge.py"
EMPTY = 'extern "C" int kernelgate_run(const void*) { return 0; }\n'
Measure = Callable[[Sandbox, Path], float]


def command(sandbox: Sandbox, folder: Path) -> float:
    """Seconds of a command that does nothing, under its nanny."""
    return _run(sandbox, folder, ["/bin/true"])


def build(sandbox: Sandbox, folder: Path) -> float:
    """Seconds of one g++ of a shipped kernel."""
    flags = ["-O3", "-march=native", "-std=c++20", "-fPIC", "-shared", "-pthread", f"-I{INCLUDE}"]
    return _run(sandbox, folder, ["g++", *flags, str(SOURCE / "sgemm.cpp"), "-o", str(folder / "built.so")])


def launcher(sandbox: Sandbox, folder: Path) -> float:
    """Seconds from its start until it has loaded a library."""
    started = time.perf_counter()
    with _launcher(sandbox, folder):
        return time.perf_counter() - started


def burst(sandbox: Sandbox, folder: Path) -> float:
    """The least time of an empty kernel by the judge's clock, in seconds."""
    with _launcher(sandbox, folder) as started:
        started.ask(Attach(), limit_s=20.0)
        started.ask(Prepare(slots=(0,)), limit_s=20.0)
        return min(started.go(limit_s=20.0)[1] for _ in range(BURSTS)) / 1e6


def gpu_launcher(sandbox: Sandbox, folder: Path) -> float:
    """Seconds from its start to its first answer."""
    from tests.gpu import harness  # noqa: PLC0415 - needs CUDA

    device, arena = harness.device(), harness.arena()
    prefix = sandbox.prefix(readable=(folder,), writable=(), gpu=True)
    started = time.perf_counter()
    made = Launcher(device.launcher, arena_fd=arena.fd, arena_bytes=arena.bytes, run_as=prefix)
    try:
        made.ask(Detach(), limit_s=60.0)
        return time.perf_counter() - started
    finally:
        made.close()


def recorder(sandbox: Sandbox, folder: Path) -> float:
    """Seconds of recording one case."""
    from tests.gpu import harness  # noqa: PLC0415 - needs CUDA

    built = harness.build(GPU_SOURCE)
    case = RecordCase(case=CASE, dims=DIMS, tensors=OPERATORS["gemm"].tensors(DIMS, "fp16"))
    job = RecordJob(
        language="cuda",
        source=str(built.path),
        entry="kernelgate_run",
        cases=(case,),
        cubins=built.cubins,
        out_dir=str(folder),
    )
    stdin = job.model_dump_json().encode() + b"\n"
    return _run(
        sandbox, folder, [sys.executable, "-m", "worker.record"], readable=built.path.parent, gpu=True, stdin=stdin
    )


def _run(
    sandbox: Sandbox,
    folder: Path,
    argv: list[str],
    *,
    readable: Path = SOURCE,
    gpu: bool = False,
    stdin: bytes = b"",
) -> float:
    prefix = sandbox.prefix(readable=(readable,), writable=(folder,), gpu=gpu)
    env = environment(home=folder)
    done = run([*prefix, *argv], limits=Limits(seconds=120.0), cwd=folder, env=env, stdin=stdin)
    if done.returncode != 0:
        sys.exit(f"{argv[0]} ended with {done.returncode}: {done.stderr.decode()}")
    return done.seconds


@contextmanager
def _launcher(sandbox: Sandbox, folder: Path) -> Iterator[Launcher]:
    device = CpuDevice()
    arena: CpuArena = device.arena(1 << 20)
    prefix = sandbox.prefix(readable=(folder,), writable=(), gpu=False)
    made = Launcher(device.launcher, arena_fd=arena.fd, arena_bytes=arena.bytes, run_as=prefix, freezes=True)
    layout = lay_out(OPERATORS["gemm"].tensors(DIMS, "fp32"))
    library = str(folder / "empty.so")
    try:
        load = Load(case=CASE, dims=DIMS, layout=layout, library=library, entry="kernelgate_run")
        made.ask(load, limit_s=20.0)
        yield made
    finally:
        made.close()
        arena.close()


def evaluation(sandbox: Sandbox, folder: Path, *, of: tuple[Path, Path], to: DeviceClass, checks: bool = True) -> float:
    """Seconds of evaluating `of` (head, base) with an empty cache. What CuPy compiles for the judge stays."""
    head, base = map(read_folder, of)
    if head.suite is None:
        sys.exit(f"{head.path.parent}: suite.toml is missing")
    with tempfile.TemporaryDirectory(dir=folder) as cache:
        (folder / "cupy").mkdir(exist_ok=True)
        (Path(cache) / "cupy").symlink_to(folder / "cupy")
        settings = WorkerSettings(
            device_class=to,
            cache_dir=Path(cache),
            max_processes=PROCESSES,
            own_operators=("local",),
            judge=(str(TRUSTING_JUDGE), *(["--checked"] if checks else [])),
        )
        started = time.perf_counter()
        report = evaluate(
            job_here(head, base, head.suite.model_copy(update={"sanitize": ()}), to),
            {side.digest: side.files for side in (head, base)},
            settings=settings,
            on_progress=lambda _: None,
            cancelled=lambda: False,
            sandbox=sandbox,
        )
        seconds = time.perf_counter() - started
    if report.failure is not None:
        sys.exit(f"{head.path.name} against {base.path.name}: {report.failure.message}\n{report.log[-2000:]}")
    return seconds


def evaluations(sandbox: Sandbox, folder: Path, *, of: tuple[Path, Path], to: DeviceClass, times: int) -> Iterator[str]:
    """Rows: what the checks add, what the sandbox adds to that, and both."""

    def took(one: Sandbox, *, checks: bool = True) -> float:
        return evaluation(one, folder, of=of, to=to, checks=checks)

    took(sandbox)  # what the machine keeps from the first one
    ways = ((NoSandbox(), False), (NoSandbox(), True), (sandbox, True))
    rounds = [[took(one, checks=checks) for one, checks in ways] for _ in range(times)]
    plain, checked, both = (min(way) for way in zip(*rounds, strict=True))
    name = f"an evaluation of {of[0].parent.name} {of[0].name}"
    yield row(f"{name}: checks of timed calls", [(plain, checked)])
    yield row(f"{name}: sandbox", [(checked, both)])
    yield row(f"{name}: both", [(plain, both)])


def row(what: str, pairs: Sequence[tuple[float, float]]) -> str:
    """The least of each, since what else runs on the machine only adds. Seconds, shown as ms."""
    without, within = (1e3 * min(side) for side in zip(*pairs, strict=True))
    more = within - without
    return f"| {what} | {without:.2f} | {within:.2f} | {more:.2f} | {more / without:.1%} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--head", type=Path, help="what is evaluated; by default hgemm v2, or sgemm_cpu v2")
    parser.add_argument("--base", type=Path, help="and against what; by default v1 of it")
    parser.add_argument("--evaluations", type=int, default=EVALUATIONS, help="of each kind; 0: none")
    asked = parser.parse_args()
    sandbox = choose(WorkerSettings())
    if not sandbox.isolates:
        sys.exit(sandbox.problem or "the sandbox is switched off")
    on_gpu: dict[str, tuple[Measure, int]] = {
        "a GPU launcher, to its first answer": (gpu_launcher, GPU_STARTS),
        "a recorder of one case": (recorder, GPU_STARTS),
    }
    on_cpu: dict[str, tuple[Measure, int]] = {
        "an empty command": (command, STARTS),
        "a CPU launcher, ready": (launcher, STARTS),
        "a build by g++": (build, BUILDS),
        "a burst of an empty kernel": (burst, 3),
    }
    head, base = GPU_EVALUATED if asked.gpu else EVALUATED
    of = (asked.head or head, asked.base or base)
    print(f"{sandbox.caps}\n\n| | without, ms | with, ms | more, ms | more |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "empty.cpp").write_text(EMPTY)
        _run(NoSandbox(), folder, ["g++", "-shared", "-fPIC", "empty.cpp", "-o", "empty.so"])
        adopt_orphans()
        for what, (measure, times) in (on_gpu if asked.gpu else on_cpu).items():
            pairs = [(measure(NoSandbox(), folder), measure(sandbox, folder)) for _ in range(times)]
            print(row(what, pairs), flush=True)
        if asked.evaluations:
            to = local_device_class() if asked.gpu else DeviceClass.CPU
            for line in evaluations(sandbox, folder, of=of, to=to, times=asked.evaluations):
                print(line, flush=True)
    sandbox.close()


if __name__ == "__main__":
    main()
