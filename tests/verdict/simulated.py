"""Comparisons made from chosen numbers: from the value of each pair, from a model of processes, or from recordings."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import verdict
from contract.outcomes import Verdict
from contract.samples import Comparison, Pair, Round

RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "h200_pairs.json").read_text())

Draw = Callable[[int], np.ndarray]


def of_values(values, *, allowed=0.005, time_us=50.0, **options) -> Comparison:
    """Pairs whose ln(head/base) are exactly `values`."""
    pairs = tuple(Pair(rounds=(Round(base=(time_us,), head=(time_us * float(np.exp(value)),)),)) for value in values)
    return Comparison(unit="us", allowed_slowdown=allowed, pairs=pairs, **options)


def of_processes(
    rng, *, ratio=1.0, pairs=8, rounds=8, bursts=2, within=0.0005, between=0.0007, time_us=50.0, **options
):
    """Fresh processes: each brings its own factor (sd `between`), each burst another (sd `within`)."""

    def side(level):
        own = level * np.exp(rng.normal(0.0, between))
        return own * np.exp(rng.normal(0.0, within, (rounds, bursts)))

    made = []
    for _ in range(pairs):
        base, head = side(time_us), side(time_us * ratio)
        made.append(Pair(rounds=tuple(Round(base=tuple(b), head=tuple(h)) for b, h in zip(base, head, strict=True))))
    return Comparison(unit="us", allowed_slowdown=options.pop("allowed", 0.005), pairs=tuple(made), **options)


def recorded_pairs(workload: str) -> tuple[Pair, ...]:
    """Eight pairs of fresh processes of identical code."""
    return tuple(
        Pair(rounds=tuple(Round(base=tuple(base), head=tuple(head)) for base, head in rounds))
        for rounds in RECORDED["workloads"][workload]
    )


def slowed(pair: Pair, factor: float) -> Pair:
    return Pair(
        rounds=tuple(Round(base=each.base, head=tuple(value * factor for value in each.head)) for each in pair.rounds)
    )


def sequential(values: np.ndarray, **options) -> tuple[Verdict, int]:
    """The whole procedure: looks after 4, 8 and 16 pairs until one decides; the verdict and the pairs it took."""
    for look, processes in enumerate(verdict.LOOKS, start=1):
        if len(values) < processes:
            break
        judged = verdict.decide(of_values(values[:processes], look=look, **options)).verdict
        if judged is not Verdict.INCONCLUSIVE:
            return judged, processes
    return Verdict.INCONCLUSIVE, processes
