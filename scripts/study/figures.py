"""What the verdicts promise, measured: one function a promise, each with its limits."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

import numpy as np

import verdict
from contract.outcomes import Verdict
from contract.samples import Comparison, Pair, Round
from scripts.study import limits, ours
from scripts.study.recordings import Workload
from verdict.history import Point, Tracker, changes_of

ALLOWED = 0.005
# Of identical code in fresh processes: 0 alarms in 3,000 are under 1 in 1000. Everything else takes fewer.
EVALUATIONS = 3000
FEWER = 1000
CURVE = (0.0, 0.002, 0.004, 0.005, 0.006, 0.007, 0.008, 0.009, 0.01, 0.011, 0.013, 0.015)
_ALARMS = (Verdict.SLOWER, Verdict.FASTER)


def beyond(workload: Workload) -> float | None:
    """How far over the allowed slowdown 8 processes a side are to find 95 of 100; None where nothing is promised."""
    if workload.capped or (workload.kind == "copy" and 5 <= workload.time_us < 40):
        return 0.006
    if workload.time_us >= 40:
        return 0.0015
    return 0.003 if workload.time_us >= 5 else None


def of_workload(workload: Workload, *, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    floor = workload.floor
    most = EVALUATIONS if workload.fresh else FEWER

    def run(**how: Any) -> ours.Found:
        how = {"evaluations": FEWER, "allowed": ALLOWED, "floor": floor, **how}
        return ours.evaluate(rng, workload.values, time_us=workload.time_us, **how)

    alarms = {allowed: run(evaluations=most, allowed=allowed) for allowed in (0.001, ALLOWED, 0.01)}
    found: dict[str, Any] = {
        "workload": workload.name,
        "source": workload.source,
        "kind": workload.kind,
        "fresh": workload.fresh,
        "capped": workload.capped,
        "time_us": round(workload.time_us, 1),
        "recorded_pairs": len(workload.pairs),
        "floor": floor,
        "spread": float(workload.values.std(ddof=1)),
        "identical": {f"{allowed:g}": _alarmed(each) for allowed, each in alarms.items()},
        # With what a node that learnt the workload's spread would assume.
        "identical_learnt": _alarmed(run(evaluations=most, floor=float(workload.values.std(ddof=1)))),
        "processes": dict(sorted(alarms[ALLOWED].processes.items())),
        "at_the_limit": _slower(run(evaluations=2 * FEWER if workload.fresh else FEWER, ratio=1.0 + ALLOWED)),
        "same_at_0.002": _said(run(allowed=0.002, processes=8), Verdict.SAME),
    }
    if workload.fresh:
        found["curve"] = [
            [slowdown, run(evaluations=400, ratio=1.0 + slowdown, processes=8).share(Verdict.SLOWER)]
            for slowdown in CURVE
        ]
    over = beyond(workload)
    if over is not None:
        found["over"] = over
        found["found"] = _slower(run(ratio=1.0 + ALLOWED + over, processes=8))
    really_run = {
        f"{ratio:g}": ours.decide(pairs, allowed=ALLOWED).value
        for ratio, pairs in sorted(workload.slowed.items())
        if len(pairs) >= verdict.LOOKS[0]
    }
    if really_run:
        found["really_run"] = really_run
    if workload.held_s:
        found["held_s_a_pair"] = median(workload.held_s)
    return found


def two_levels(*, seed: int) -> list[dict[str, Any]]:
    """Identical code whose processes fall on two levels: alarms of either kind."""
    rng, rows = np.random.default_rng(seed), []
    for apart in (0.008, 0.02, 0.13):
        for share in (0.1, 0.3, 0.5):
            alarms = 0
            for _ in range(FEWER):
                sides = apart * (rng.random((2, 16)) < share)
                values = sides[0] - sides[1] + rng.normal(0.0, 0.0005, 16)
                alarms += ours.sequential(values, time_us=50.0, allowed=ALLOWED)[0] in _ALARMS
            rows.append({"apart": apart, "share": share, **_counted(alarms, FEWER)})
    return rows


def quickness() -> dict[str, float]:
    """Seconds, the least of five: one decision of 10 pairs of 40 rounds of 10 calls, and histories."""
    rng = np.random.default_rng(7)

    def side() -> tuple[float, ...]:
        return tuple((50.0 * np.exp(rng.normal(0.0, 0.001, 10))).tolist())

    pairs = tuple(Pair(rounds=tuple(Round(base=side(), head=side()) for _ in range(40))) for _ in range(10))
    comparison = Comparison(unit="us", allowed_slowdown=ALLOWED, pairs=pairs)
    points = [
        Point(key=str(place), value=float(np.exp(value))) for place, value in enumerate(rng.normal(0, 0.01, 5000))
    ]
    tracker = Tracker()
    for point in points:
        tracker.add(point)
    return {
        "decide_s": _least(lambda: verdict.decide(comparison)),
        "changes_of_5000_s": _least(lambda: changes_of(points)),
        "one_point_more_s": _least(lambda: tracker.add(points[0])),
    }


def held(path: Path) -> dict[str, Any]:
    """Seconds that the card was held a case with a base, in evaluations that a node really did."""
    rows = [
        {
            "pairs": len(case["pairs"]),
            "held_s": case["held_s"],
            "capped": len(case["pairs"][0]["rounds"][0]["base"]) > 4,
        }
        for evaluation in json.loads(gzip.decompress(path.read_bytes()))
        for case in evaluation["cases"]
        if case["pairs"]
    ]
    return {
        name: {"cases": len(chosen), "median_s": median(chosen), "most_s": max(chosen)}
        for name, capped in (("plain", False), ("power capped", True))
        if (chosen := [row["held_s"] for row in rows if row["capped"] is capped])
    }


def run_to_run(folder: Path, workloads: Sequence[Workload]) -> list[dict[str, Any]]:
    """Relative standard deviations between runs of each harness, and of ours between processes of the same kernel."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.glob("*_harnesses.json")):
        for harness, own in json.loads(path.read_text(encoding="utf-8"))["runs"].items():
            for title, times in own.items():
                row = found.setdefault(title, {"workload": title, "time_us": median(times)})
                row[harness] = {"runs": len(times), "spread": stdev(times) / fmean(times)}
    # A pair has two processes.
    ours_ = {each.name: float(each.values.std(ddof=1)) / 2**0.5 for each in workloads if each.fresh}
    return [row | {"kernelgate": ours_.get(title)} for title, row in found.items()]


def _least(do: Callable[[], object]) -> float:
    took = []
    for _ in range(5):
        began = time.perf_counter()
        do()
        took.append(time.perf_counter() - began)
    return min(took)


def _said(found: ours.Found, which: Verdict) -> dict[str, Any]:
    return _counted(found.verdicts[which], found.evaluations)


def _alarmed(found: ours.Found) -> dict[str, Any]:
    return _counted(sum(found.verdicts[word] for word in _ALARMS), found.evaluations)


def _slower(found: ours.Found) -> dict[str, Any]:
    return _said(found, Verdict.SLOWER)


def _counted(hits: int, of: int) -> dict[str, Any]:
    return {"hits": hits, "of": of, "upper": limits.upper(hits, of), "lower": limits.lower(hits, of)}


def all_of(workloads: Sequence[Workload], *, seed: int, ladders: Path) -> Mapping[str, Any]:
    return {
        "workloads": [of_workload(each, seed=seed + place) for place, each in enumerate(workloads)],
        "two_levels": two_levels(seed=seed),
        "quickness": quickness(),
        "held": held(ladders),
        "run_to_run": run_to_run(ladders.parent, workloads),
    }
