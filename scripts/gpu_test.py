"""What `make gpu-test` runs on a machine with an NVIDIA GPU: tests/gpu, then tables of what this card's numbers are."""

from __future__ import annotations

import argparse
import math
import os
import secrets
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
os.environ["PYTHONPATH"] = os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", "")))

from pydantic import TypeAdapter  # noqa: E402 - after the path is set

from contract.devices import device_class_of  # noqa: E402
from contract.suite import Suite  # noqa: E402
from tests.gpu import harness  # noqa: E402
from tests.kernels.shipped import suite_of  # noqa: E402
from worker.protocol import (  # noqa: E402
    Attach,
    Detach,
    JudgeChecked,
    JudgeDone,
    JudgeJob,
    JudgeMeasured,
    JudgeSays,
    Prepare,
    Side,
)

LARGE = {"m": 1024, "n": 1024, "k": 1024}
PAIRS, ROUNDS = 6, 6


def table(title: str, header: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    lines = [[str(cell) for cell in line] for line in (list(header), *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    print(f"\n{title}")
    for line in lines:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    sys.stdout.flush()


def timed(act: object, *arguments: object) -> tuple[float, object]:
    started = time.perf_counter()
    result = act(*arguments)  # type: ignore[operator]
    return time.perf_counter() - started, result


def device_table() -> None:
    device, xp = harness.device(), harness.device().xp
    rows: list[tuple[object, ...]] = []
    probes = sorted(device.probe_us() for _ in range(500))
    rows.append(("quiet probe, idle", f"{probes[250]:.1f} us", f"99 %: {probes[495]:.1f}, most {probes[-1]:.1f} us"))
    for name, shape in (("1024^2", (400, 1024, 1024)), ("8192^2", (6, 8192, 8192)), ("odd 333x77", (2000, 333, 77))):
        out = xp.empty(shape, xp.float16)
        for kind in ("normal", "uniform"):
            device.random(kind, out, list(range(shape[0])))
            device.synchronize()
            seconds, _ = timed(
                lambda out=out, kind=kind: (device.random(kind, out, list(range(len(out)))), device.synchronize())
            )
            rows.append(
                (f"draw {kind} fp16 {name}", f"{seconds * 1e3:.2f} ms", f"{out.nbytes / seconds / 1e12:.2f} GB/ms")
            )
        del out
    built = harness.build(harness.FIXTURES / "entries.cu")
    record, _ = harness.recorded(built.path, entry="kernelgate_run", dims=LARGE, cubins=built.cubins)
    layout, slots = record.layout, 400
    view = harness.arena().tensor(layout, layout.tensors[2], slots).view(xp.uint16)
    bands = [harness.arena().raw(first, last, layout, slots) for first, last in layout.guards]

    def poison() -> None:
        view[...] = 0x7E01
        device.synchronize()

    def guard() -> None:
        for band in bands:
            band[...] = 0x5A
        device.synchronize()

    def guards_hold() -> bool:
        return not any(bool((band != 0x5A).any()) for band in bands)

    for name, act in (("poison 400 outputs of 1024^2", poison), ("lay guards", guard), ("check guards", guards_hold)):
        act()
        seconds, _ = timed(act)
        rows.append((name, f"{seconds * 1e3:.2f} ms", ""))
    device.release_scratch()
    energy = device.energy_mj()
    rows.append(("clocks", device.clocks(), f"energy {energy} mJ"))
    table("The judge's device", ("what", "took", ""), rows)


def launcher_table() -> None:
    rows: list[tuple[object, ...]] = []
    starts, attaches, detaches = [], [], []
    for _ in range(5):
        launcher = None

        def ready() -> object:
            launcher = harness.start()
            launcher.ask(Detach(), limit_s=harness.LIMIT_S)
            return launcher

        seconds, launcher = timed(ready)
        starts.append(seconds)
        attaches.append(timed(lambda held=launcher: held.ask(Attach(), limit_s=harness.LIMIT_S))[0])
        detaches.append(timed(lambda held=launcher: held.ask(Detach(), limit_s=harness.LIMIT_S))[0])
        launcher.close()  # type: ignore[attr-defined]
    for name, values in (("start to first answer", starts), ("attach", attaches), ("detach", detaches)):
        rows.append(
            (name, f"{statistics.median(values) * 1e3:.1f} ms", f"{min(values) * 1e3:.1f} to {max(values) * 1e3:.1f}")
        )
    table("The launcher", ("what", "median", "range, ms"), rows)


def burst_table(programs: dict[str, tuple[object, object]]) -> None:
    rows = []
    for name, (record, said) in programs.items():
        slots = harness.arena().bytes // record.layout.slot_bytes  # type: ignore[attr-defined]
        harness.draw(record, slots)  # type: ignore[arg-type]
        launcher = harness.attached(record, said, LARGE)  # type: ignore[arg-type]
        for calls in (100, 1000, 4000):
            order = [slot % slots for slot in range(calls)]
            launcher.ask(Prepare(slots=tuple(order[:1])), limit_s=harness.LIMIT_S)
            seconds, _ = timed(
                lambda o=order, held=launcher: held.ask(Prepare(slots=tuple(o)), limit_s=harness.LIMIT_S)
            )
            reply, clock_us = launcher.go(limit_s=harness.LIMIT_S)
            rows.append((name, len(record.nodes), calls, f"{seconds * 1e3:.1f}", f"{seconds * 1e6 / calls:.2f}",  # type: ignore[attr-defined]
                         f"{(reply.elapsed_us or 0) / calls:.2f}", f"{clock_us / calls:.2f}"))  # fmt: skip
        launcher.close()
    table(
        "Preparing a burst",
        ("program", "nodes", "calls", "prepare ms", "us a call", "time us a call", "by the judge's clock"),
        rows,
    )


def same_against_same(programs: dict[str, tuple[object, object]]) -> None:
    rows = []
    for name, (record, said) in programs.items():
        slots = min(400, harness.arena().bytes // record.layout.slot_bytes)  # type: ignore[attr-defined]
        inputs, outputs = harness.draw(record, slots)  # type: ignore[arg-type]
        medians, last, times, seconds = [], [], [], 0.0
        for pair in range(PAIRS):
            began = time.perf_counter()
            sides = [harness.start() for _ in range(2)]
            for side in sides:
                side.ask(Attach(), limit_s=harness.LIMIT_S)
                harness.load(side, record, said, LARGE)  # type: ignore[arg-type]
                harness.burst(side, list(range(slots)))
            last = []
            for turn in range(ROUNDS):
                first, second = (0, 1) if (turn + pair) % 2 else (1, 0)
                found: dict[int, list[float]] = {0: [], 1: []}
                for which in (first, second, second, first):
                    time_us, _ = harness.burst(sides[which], list(range(slots)))
                    found[which].append(time_us)
                times += found[0]
                last.append(math.log(statistics.mean(found[0]) / statistics.mean(found[1])))
            medians.append(statistics.median(last))
            for side in sides:
                side.close()
            seconds += time.perf_counter() - began
        error = harness.worst_error(inputs, outputs, [0, slots - 1])
        spread = [f"{statistics.stdev(values) * 100:.3f}" for values in (last, medians)]
        rows.append((name, f"{statistics.median(times):.2f}", slots, *spread, f"{error:.1e}", f"{seconds / PAIRS:.2f}"))
    table(
        f"The same code against itself ({PAIRS} pairs of fresh processes, {ROUNDS} rounds)",
        ("program", "time us", "calls", "sd of a round %", "sd between pairs %", "relative error", "s a pair"),
        rows,
    )


def power_table() -> None:
    """How soon the card's power cap is seen: readings as the judge makes them, before and after a stretch of work."""
    device, xp = harness.device(), harness.device().xp
    a, b = (xp.empty((8192, 8192), xp.float16) for _ in range(2))
    device.random("normal", a.reshape(1, 8192, 8192), [1])
    device.random("normal", b.reshape(1, 8192, 8192), [2])
    c, rows = xp.empty_like(a), []
    xp.matmul(a, b, out=c)
    device.synchronize()
    for stretch in (0.0, 0.03, 0.06, 0.12, 0.5, 1.0):
        device.energy_mj()
        started = time.perf_counter()
        while time.perf_counter() - started < stretch:
            for _ in range(5):
                xp.matmul(a, b, out=c)
            device.synchronize()
        spent = time.perf_counter() - started
        clocks = device.clocks()
        rows.append((f"{spent:.2f} s", device.power_capped(), clocks))
        time.sleep(2.5)  # for the card to cool down: the next row starts from rest
    device.release_scratch()
    table("A large GEMM without pause, from rest", ("for", "power capped", "clocks"), rows)


def evaluation_tables() -> None:
    """Two revisions of each shipped GPU kernel judged for real: against each other and against the library."""
    hgemm = _suite("hgemm", cases=1, verify_cases=2)
    built = {label: harness.build(ROOT / "kernels" / "hgemm" / label / "hgemm.cu") for label in ("v1_tiled", "v2_wmma")}
    sides = {
        label: harness.side(label, library.path, entry="kernelgate_run", suite=hgemm, cubins=library.cubins)
        for label, library in built.items()
    }
    _evaluate("hgemm v2 against v1", hgemm, sides["v2_wmma"], sides["v1_tiled"])
    _evaluate("hgemm v2 against a copy of itself", hgemm, sides["v2_wmma"], sides["v2_wmma"])
    attention = _suite("attention_prefill", cases=2, verify_cases=3)
    sides = {
        label: harness.side(
            label,
            ROOT / "kernels" / "attention_prefill" / label / "kernel.py",
            entry="run",
            suite=attention,
            cubins=None,
        )
        for label in ("v0_online_softmax", "v2_exp2")
    }
    _evaluate("attention_prefill v2 against v0", attention, sides["v2_exp2"], sides["v0_online_softmax"])
    rmsnorm = _suite("rmsnorm", cases=5, verify_cases=7)
    folders = [ROOT / "kernels" / "rmsnorm" / label for label in rmsnorm.revisions]
    rms = [harness.side(each.name, each / "kernel.py", entry="run", suite=rmsnorm, cubins=None) for each in folders]
    for base, head in pairwise(rms):
        _evaluate(f"rmsnorm {head.label} against {base.label}", rmsnorm, head, base)


def _suite(kernel: str, *, cases: int, verify_cases: int) -> Suite:
    suite = suite_of(kernel)
    return suite.model_copy(
        update={
            "cases": suite.cases[:cases],
            "verify_cases": suite.verify_cases[:verify_cases],
            "allowances": (),
            "predictions": (),
        }
    )


def _evaluate(title: str, suite: Suite, head: Side, base: Side) -> None:
    if base.artifact_digest == head.artifact_digest:  # a copy: else there would be nothing to measure
        base = base.model_copy(update={"label": "copy", "artifact_digest": "0" * 64})
    job = JudgeJob(
        device_class=device_class_of(harness.device().environment().device) or suite.device_classes[0],
        suite=suite,
        head=head,
        base=base,
        seed=secrets.randbits(63),
    )
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "worker.judge"], input=job.model_dump_json(), capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - started
    says: TypeAdapter[JudgeSays] = TypeAdapter(JudgeSays)
    said = [says.validate_json(line) for line in done.stdout.splitlines()]
    checks = [line.check for line in said if isinstance(line, JudgeChecked)]
    rows = []
    for line in said:
        if not isinstance(line, JudgeMeasured):
            continue
        values = {metric.name: metric.value for metric in line.result.metrics}
        judged = line.result.judgement
        rows.append(
            (
                line.result.case,
                *(f"{values[name]:.2f}" if name in values else "" for name in ("time", "base_time", "baseline_time")),
                f"{values.get('throughput_over_baseline', math.nan):.3f}",
                f"{judged.ratio:.4f}" if judged and judged.ratio else "",
                judged.verdict if judged else "",
                len(line.result.pairs),
                f"{values['held_s']:.1f}",
            )
        )
    passed = sum(check.passed for check in checks)
    worst = max((check.of_bound or 0.0 for check in checks), default=math.nan)
    table(
        f"{title}: {passed} of {len(checks)} checks passed, worst {worst:.2f} of its bound; {seconds:.1f} s in all",
        ("case", "us", "base us", "library us", "of library", "ratio", "verdict", "pairs", "held s"),
        rows,
    )
    last = said[-1] if said else None
    if not isinstance(last, JudgeDone) or last.failure:
        print(last, done.stderr[-2000:])
        raise SystemExit(1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables-only", action="store_true")
    arguments = parser.parse_args()
    failed = 0
    if not arguments.tables_only:
        failed = subprocess.run(
            [sys.executable, "-m", "pytest", "-m", "gpu", "--durations=5", str(ROOT / "tests" / "gpu")],
            check=False,
            cwd=ROOT,
        ).returncode
    seconds, _ = timed(harness.device)
    environment = harness.device().environment()
    print(f"\n{environment.device}, driver {environment.driver}, CUDA {environment.cuda}, {environment.libraries}")
    print(f"the judge's device was ready in {seconds:.2f} s, its arena of 6 GiB in {timed(harness.arena)[0]:.2f} s")
    source = harness.FIXTURES / "entries.cu"
    build_s, built = timed(harness.build, source)
    wmma_s, wmma = timed(lambda: harness.recorded(built.path, entry="kernelgate_run", dims=LARGE, cubins=built.cubins))
    triton_s, triton = timed(lambda: harness.recorded(harness.FIXTURES / "tuned_gemm.py", entry="run", dims=LARGE))
    print(
        f"built in {build_s:.1f} s; recorded: cuda in {wmma_s:.2f} s, triton (compiled and tuned) in {triton_s:.2f} s"
    )
    programs = {"wmma, add, memset": wmma, "triton gemm": triton}
    device_table()
    launcher_table()
    burst_table(programs)
    same_against_same(programs)
    power_table()
    harness.arena().close()
    evaluation_tables()
    return failed


if __name__ == "__main__":
    sys.exit(main())
