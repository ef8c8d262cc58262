"""The study's results as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scripts.study.against_peers import OURS
from verdict import LOOKS

RESAMPLED = """\
Resampled: each row is {evaluations} evaluations of identical code, drawn with replacement from the pairs of fresh
processes that were really recorded ({recorded} in all), either side in either place; slowdowns are put in by
multiplying the head's times ({fewer} evaluations). Alarms: `slower` or `faster`; in brackets the upper limit at
95 %."""
LONG_LIVED = """\
Long-lived processes, the same few in many pairs, drawn as if each pair were fresh: slopes between bursts
(`h200_burst`), and events around single calls (`h200_percall`), which the project gave up for being this far apart.
Where a handful of recorded values is all there is to draw from, and the floor is a guess, 8 of them may agree by
chance; a node that has learnt the spread is not misled."""
PEERS = """\
What people use today, on the same samples: the share of evaluations called slower, all workloads together ({of}
evaluations a figure). Identical code is shown as bursts of fresh processes and as events around single calls, which is
what these tools are mostly given. What finds 0.7 % here also finds it in identical code: look at the first columns."""

RUN_TO_RUN = """\
How far runs are apart, each a process of its own: what `triton.testing.do_bench` and NVBench report of the same kernels
(standard deviation over the mean), and what one process of a pair brings here."""
TWO_LEVELS = """\
- Two levels between processes, 0.8, 2 and 13 % apart, a tenth to half of the processes on the slow one: {alarms} alarms
  in {of} evaluations of identical code. (Where half of the processes are slow, 8 pairs all show head slow and base fast
  once in 65,000 evaluations, as if the code were slower.)"""
QUICKNESS = """\
- One decision of 10 pairs of 40 rounds of 10 calls: {decide_ms:.1f} ms. Change points of 5,000 points: {changes_ms:.0f}
  ms; one point more: {point_us:.0f} us."""
HELD = """\
- Card held a case with a base, {name}, in {cases} cases that were really run (`data/h200_ladders.json.gz`):
  {median_s:.1f} s in the median, {most_s:.1f} s at most."""


def page(results: Mapping[str, Any]) -> str:
    workloads = results["workloads"]
    fresh = [each for each in workloads if each["fresh"]]
    others = [each for each in workloads if not each["fresh"]]
    evaluations = fresh[0]["identical"]["0.005"]["of"]
    fewer = fresh[0]["same_at_0.002"]["of"]
    recorded = sum(each["recorded_pairs"] for each in fresh)
    return "\n\n".join(
        (
            RESAMPLED.format(evaluations=evaluations, recorded=recorded, fewer=fewer),
            promises(fresh),
            "![The share of evaluations called slower over the true slowdown](plots/detection.svg)",
            LONG_LIVED,
            promises(others),
            PEERS.format(of=next(iter(results["peers"]["fresh"].values()))["1"]["of"]),
            peers(results["peers"]),
            "![Alarms on identical code by rule](plots/alarms.svg)",
            *([RUN_TO_RUN, run_to_run(results["run_to_run"])] if results.get("run_to_run") else []),
            _rest(results),
        )
    )


def promises(rows: Sequence[Mapping[str, Any]]) -> str:
    header = (
        "workload", "us", "pairs", "between pairs", "alarms, e = 0.1 %", "e = 0.5 %", "e = 1 %",
        "e = 0.5 %, floor learnt", "`slower` at exactly e", "found at", "with 8 a side", "`same`, e = 0.2 %",
        "processes",
    )  # fmt: skip
    return _table(header, (_promise(row) for row in rows))


def _promise(row: Mapping[str, Any]) -> tuple[str, ...]:
    name = row["workload"] + (" (power capped)" if row["capped"] else "")
    over = row.get("over")
    took = ", ".join(
        f"{count}: {_percent(times / row['identical']['0.005']['of'], 0)}" for count, times in row["processes"].items()
    )
    return (
        name,
        f"{row['time_us']:g}",
        str(row["recorded_pairs"]),
        _percent(row["spread"], 3),
        *(_alarms(row["identical"][allowed]) for allowed in ("0.001", "0.005", "0.01")),
        _alarms(row["identical_learnt"]),
        _share(row["at_the_limit"]),
        f"e + {100 * over:g} %" if over else "",
        _share(row["found"]) if over else "",
        _share(row["same_at_0.002"]),
        took,
    )


def peers(found: Mapping[str, Mapping[str, Any]]) -> str:
    header = ("rule", "identical: bursts", "identical: single calls", "+0.7 %", "+1 %", "+2 %", "+5 %")
    names = [OURS, *(name for name in found["fresh"] if name != OURS)]
    rows = (
        (
            name,
            _alarms_share(found["fresh"][name]["1"]),
            _alarms_share(found["single_calls"][name]["1"]),
            *(_share(found["fresh"][name][ratio]) for ratio in ("1.007", "1.01", "1.02", "1.05")),
        )
        for name in names
    )
    return _table(header, rows)


def run_to_run(rows: Sequence[Mapping[str, Any]]) -> str:
    def spread(row: Mapping[str, Any], harness: str) -> str:
        return _percent(row[harness]["spread"], 3) if harness in row else ""

    return _table(
        ("workload", "us", "do_bench", "NVBench", "Kernelgate"),
        (
            (
                row["workload"],
                f"{row['time_us']:.3g}",
                spread(row, "do_bench"),
                spread(row, "nvbench"),
                _percent(row["kernelgate"], 3) if row["kernelgate"] is not None else "",
            )
            for row in rows
        ),
    )


def _rest(results: Mapping[str, Any]) -> str:
    levels, quick, held = results["two_levels"], results["quickness"], results["held"]
    alarms, of = sum(row["hits"] for row in levels), sum(row["of"] for row in levels)
    lines = [
        TWO_LEVELS.format(alarms=alarms, of=of),
        QUICKNESS.format(
            decide_ms=1e3 * quick["decide_s"],
            changes_ms=1e3 * quick["changes_of_5000_s"],
            point_us=1e6 * quick["one_point_more_s"],
        ),
        *(HELD.format(name=name, **row) for name, row in held.items()),
    ]
    for row in results["workloads"]:
        if "held_s_a_pair" in row:
            held_s = ", ".join(f"{count * row['held_s_a_pair']:.1f} s" for count in LOOKS)
            lines.append(
                f"- Card held, {row['workload']}: {held_s} with {', '.join(map(str, LOOKS))} processes a side."
            )
        if "really_run" in row:
            said = ", ".join(f"{100 * (float(ratio) - 1):+.2g} % {word}" for ratio, word in row["really_run"].items())
            lines.append(f"- Really run, {row['workload']}: {said}.")
    return "\n".join(lines)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "| --- |" + " ---: |" * (len(header) - 1)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def _alarms(count: Mapping[str, Any]) -> str:
    return f"{count['hits']} ({_percent(count['upper'], 2)})"


def _alarms_share(count: Mapping[str, Any]) -> str:
    return f"{_share(count)} ({_percent(count['upper'], 2)})"


def _share(count: Mapping[str, Any]) -> str:
    return _percent(count["hits"] / count["of"], 1)


def _percent(share: float, decimals: int) -> str:
    return f"{100 * share:.{decimals}f} %"
