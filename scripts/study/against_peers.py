"""The same drawn evaluations given to every rule, ours among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from contract.outcomes import Verdict
from scripts.study import limits, ours, peers
from scripts.study.recordings import Workload, whole

OURS = "Kernelgate, eight processes a side"
EVALUATIONS = 200
RATIOS = (1.0, 1.007, 1.01, 1.02, 1.05)
ALLOWED = 0.005


def compare(workloads: Sequence[Workload], *, seed: int) -> dict[str, dict[str, Any]]:
    """Rule -> ratio -> how many evaluations, over all workloads together, it called slower."""
    rng = np.random.default_rng(seed)
    hits = {name: dict.fromkeys(RATIOS, 0) for name in (OURS, *peers.RULES)}
    for workload in workloads:
        runs, levels = [whole(pair) for pair in workload.pairs], np.array(workload.levels())
        for ratio in RATIOS:
            for _ in range(EVALUATIONS):
                given = peers.given(rng, runs, levels, ratio=ratio)
                for name, rule in peers.RULES.items():
                    hits[name][ratio] += rule(given)
            found = ours.evaluate(
                rng,
                workload.values,
                evaluations=EVALUATIONS,
                time_us=workload.time_us,
                allowed=ALLOWED,
                ratio=ratio,
                processes=8,
                floor=workload.floor,
            )
            hits[OURS][ratio] += found.verdicts[Verdict.SLOWER]
    of = EVALUATIONS * len(workloads)
    return {
        name: {
            f"{ratio:g}": {"hits": count, "of": of, "upper": limits.upper(count, of)} for ratio, count in own.items()
        }
        for name, own in hits.items()
    }
