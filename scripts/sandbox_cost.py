"""What the sandbox costs on this machine: `python scripts/sandbox_cost.py [--gpu]`. Prints a Markdown table.

Starts of an empty command, a CPU launcher that loads a library, and a build, with and without the sandbox in turn; and
the time that a burst of an empty kernel takes by the judge's clock. With `--gpu`, on a machine that has one and its own
Python: starts of a launcher and of a recorder that records one case of a shipped kernel.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
os.environ["PYTHONPATH"] = os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", "")))

from contract.layout import lay_out  # noqa: E402 - after the path is set
from worker.judge.device_cpu import CpuArena, CpuDevice  # noqa: E402
from worker.launch.client import Launcher  # noqa: E402
from worker.launch.family import adopt_orphans  # noqa: E402
from worker.operators import OPERATORS  # noqa: E402
from worker.process import Limits, environment, run  # noqa: E402
from worker.protocol import Attach, Detach, Load, Prepare, RecordCase, RecordJob  # noqa: E402
from worker.sandbox import NoSandbox, Sandbox, choose  # noqa: E402
from worker.settings import WorkerSettings  # noqa: E402
from worker.toolchains.base import INCLUDE  # noqa: E402

STARTS, GPU_STARTS, BUILDS, BURSTS = 30, 8, 8, 400
DIMS = {"m": 16, "n": 16, "k": 16}
CASE = "m=16,n=16,k=16"
GPU_SOURCE = ROOT / "kernels" / "hgemm" / "v2_wmma" / "hgemm.cu"
SOURCE = ROOT / "kernels" / "sgemm_cpu" / "v1_blocked"
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu", action="store_true")
    gpu = parser.parse_args().gpu
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
    print(f"{sandbox.caps}\n\n| | without, ms | with, ms | more, ms |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "empty.cpp").write_text(EMPTY)
        _run(NoSandbox(), folder, ["g++", "-shared", "-fPIC", "empty.cpp", "-o", "empty.so"])
        adopt_orphans()
        for what, (measure, times) in (on_gpu if gpu else on_cpu).items():
            pairs = [(measure(NoSandbox(), folder), measure(sandbox, folder)) for _ in range(times)]
            # The least of each: what else runs on the machine only adds.
            without, within = (1e3 * min(side) for side in zip(*pairs, strict=True))
            print(f"| {what} | {without:.2f} | {within:.2f} | {within - without:.2f} |")
    sandbox.close()


if __name__ == "__main__":
    main()
