"""How far runs of other harnesses are apart on the study's kernels: `triton.testing.do_bench` and NVBench.

    python -m scripts.study.harnesses --out data/h200_harnesses.json --runs 10

Each run is a process of its own that reports one number, as their users get it. A harness that isn't installed
(`pip install cuda-bench` brings NVBench) is left out and said. Needs nvcc, torch and a GPU.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from contract.devices import DeviceClass
from contract.suite import Case
from scripts.study.record import ROOT, bundle, suite_of
from worker.operators import tensors_of
from worker.record.abi import build_call

HARNESSES = ("do_bench", "nvbench")
_RUN_LIMIT_S = 120


def build(folder: Path) -> Path:
    source, library = folder / "handed_on.cu", folder / "kernel.so"
    source.write_bytes(bundle(0.0)["handed_on.cu"])
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    include = ROOT / "worker" / "toolchains" / "include"
    flags = ("-O3", "-std=c++17", "-shared", "-Xcompiler=-fPIC", "-arch=native", f"-I{include}")
    subprocess.run([nvcc, *flags, str(source), "-o", str(library)], check=True, cwd=folder)
    return library


def call_of(library: Path, case: Case) -> Callable[[int], None]:
    """A call on a stream, given by its address."""
    import torch  # noqa: PLC0415 - children only

    suite = suite_of(DeviceClass.H200, [])
    specs = tensors_of(suite, case)
    tensors = [torch.randn(spec.shape, dtype=torch.float16, device="cuda") for spec in specs]
    run = ctypes.CDLL(str(library)).kernelgate_run

    def call(stream: int) -> None:
        placed = [(spec, tensor.data_ptr()) for spec, tensor in zip(specs, tensors, strict=True)]
        built = build_call(placed, case.dims, stream=stream)
        if code := run(ctypes.byref(built.call)):
            raise SystemExit(f"the kernel returned {code}")

    return call


def do_bench(call: Callable[[int], None]) -> float:
    import torch  # noqa: PLC0415
    import triton  # noqa: PLC0415

    found: float = triton.testing.do_bench(lambda: call(torch.cuda.current_stream().cuda_stream), return_mode="median")
    return 1e3 * found


def nvbench(call: Callable[[int], None]) -> float:
    from cuda import bench  # noqa: PLC0415

    def measured(state: Any) -> None:
        state.exec(lambda launch: call(launch.get_stream().addressof()))

    bench.register(measured)
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "result.json"
        bench.run_all_benchmarks(["study", "--json", str(written), "--quiet"])
        [state] = json.loads(written.read_text())["benchmarks"][0]["states"]
    summaries = {summary["tag"]: summary["data"][0]["value"] for summary in state["summaries"] if summary.get("data")}
    return 1e6 * float(summaries["nv/cold/time/gpu/mean"])


def one(harness: str, library: Path, title: str) -> float:
    [case] = [case for case in suite_of(DeviceClass.H200, []).cases if case.title == title]
    return {"do_bench": do_bench, "nvbench": nvbench}[harness](call_of(library, case))


def run(harness: str, library: Path, title: str) -> float:
    """In a process of its own. Raises RuntimeError with what it said."""
    command = (sys.executable, "-m", "scripts.study.harnesses", "--one", harness, str(library), title)
    done = subprocess.run(command, capture_output=True, text=True, timeout=_RUN_LIMIT_S, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "it said nothing")
    return float(done.stdout.strip().splitlines()[-1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--workloads", nargs="*", default=[])
    parser.add_argument("--one", nargs=3, metavar=("HARNESS", "LIBRARY", "WORKLOAD"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        harness, library, title = arguments.one
        print(one(harness, Path(library), title))
        return 0
    if arguments.out is None:
        parser.error("--out is missing")
    titles = [case.title or "" for case in suite_of(DeviceClass.H200, arguments.workloads).cases]
    found: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        library = build(Path(folder))
        for harness in HARNESSES:
            try:
                for title in titles:
                    times = [run(harness, library, title) for _ in range(arguments.runs)]
                    found.setdefault(harness, {})[title] = times
                    print(f"{harness} {title}: " + " ".join(f"{each:.3f}" for each in times))
            except RuntimeError as error:
                print(f"{harness} is left out: {error}", file=sys.stderr)
            arguments.out.write_text(json.dumps({"unit": "us", "runs": found}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
