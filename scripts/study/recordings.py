"""Recorded pairs of processes of identical code, as data/*_samples.json.gz keeps them.

A file is {"device", "unit", "note", "comparisons": [{"workload", "true_work_ratio", "rounds": [{"base": […],
"head": […]}, …], "base_process"?, "head_process"?, "capped"?, "kind"?, "held_s"?}, …]}: one comparison is one pair.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import Any, Literal

import numpy as np

from contract.samples import Comparison, Pair, Round
from verdict.evidence import gather

Kind = Literal["compute", "copy"]


@dataclass
class Workload:
    """Pairs of one workload. `slowed`: by the true ratio of work, pairs whose head really does more.

    fresh: each pair has two processes of its own; else processes appear in several pairs, and only spreads are used.
    """

    name: str
    source: str
    kind: Kind
    fresh: bool
    capped: bool
    pairs: list[Pair] = field(default_factory=list)
    slowed: dict[float, list[Pair]] = field(default_factory=dict)
    held_s: list[float] = field(default_factory=list)

    @property
    def time_us(self) -> float:
        return median(sample for pair in self.pairs for each in pair.rounds for sample in each.base)

    @property
    def values(self) -> np.ndarray[Any, Any]:
        """ln(head/base) of each pair, as a verdict takes it from the samples."""
        return np.array([value_of(pair) for pair in self.pairs])

    @property
    def floor(self) -> float:
        """The least spread that a verdict on these samples assumes, while nothing is learnt."""
        return gather(Comparison(unit="us", allowed_slowdown=0.005, pairs=tuple(self.pairs))).floor

    def levels(self) -> list[float]:
        """One number a process, us: what a harness that runs once and reports a mean would say."""
        return [
            fmean(getattr(each, side)) for pair in self.pairs for side in ("base", "head") for each in [whole(pair)]
        ]


def value_of(pair: Pair) -> float:
    return float(gather(Comparison(unit="us", allowed_slowdown=0.005, pairs=(pair,))).values[0])


def whole(pair: Pair) -> Round:
    """All samples of either process of a pair."""
    return Round(
        base=tuple(value for each in pair.rounds for value in each.base),
        head=tuple(value for each in pair.rounds for value in each.head),
    )


def read(folder: Path) -> list[Workload]:
    """Every workload of the folder's recordings, the fresh ones first. Files that differ in a last number
    (`h200_study1`, `h200_study2`) are runs of one recording."""
    rows: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for path in sorted(folder.glob("*_samples.json.gz")):
        source = path.name.removesuffix("_samples.json.gz").rstrip("0123456789")
        for row in json.loads(gzip.decompress(path.read_bytes()))["comparisons"]:
            rows.setdefault((source, row["workload"]), []).append(row)
    found = [_workload(name, source, own) for (source, name), own in rows.items()]
    return sorted(found, key=lambda each: (not each.fresh, each.source))


def _workload(name: str, source: str, rows: Sequence[dict[str, Any]]) -> Workload:
    made = Workload(
        name=name,
        source=source,
        kind=rows[0].get("kind") or ("copy" if name.startswith("copy") else "compute"),
        fresh=all("base_process" not in row for row in rows),
        capped=any(row.get("capped") or _capped(row) for row in rows),
    )
    for row in rows:
        pair = Pair(rounds=tuple(Round(base=tuple(each["base"]), head=tuple(each["head"])) for each in row["rounds"]))
        ratio = round(float(row["true_work_ratio"]), 6)
        if ratio == 1.0:
            made.pairs.append(pair)
        else:
            made.slowed.setdefault(ratio, []).append(pair)
        if "held_s" in row:
            made.held_s.append(row["held_s"])
    return made


def _capped(row: dict[str, Any]) -> bool:
    """By what was read of the card after the pair, or around its rounds; the fourth number is NVML's clock event
    reasons, whose bit 2 is the software power cap."""
    read_ = [row.get("clock_after"), *(each.get("clock") for each in row["rounds"])]
    return any(clocks and int(clocks[3]) & 4 for clocks in read_)
