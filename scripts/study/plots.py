"""The study's plots, as SVG that is the same for the same results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("svg")
mpl.rcParams.update(
    {
        "svg.hashsalt": "kernelgate",
        "svg.fonttype": "none",
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
)

from matplotlib import pyplot as plt  # noqa: E402 - after its settings


def draw(results: Mapping[str, Any], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    _detection(results, folder / "detection.svg")
    _alarms(results, folder / "alarms.svg")


def _detection(results: Mapping[str, Any], path: Path) -> None:
    figure, axes = plt.subplots(figsize=(7, 3.6))
    for row in results["workloads"]:
        if row["fresh"]:
            slowdowns, shares = zip(*row["curve"], strict=True)
            axes.plot(
                [100 * each for each in slowdowns],
                [100 * each for each in shares],
                marker="o",
                markersize=3,
                label=f"{row['workload']}, {row['time_us']:g} us",
            )
    axes.axvline(0.5, color="grey", linewidth=0.8, linestyle="--")
    axes.axhline(95, color="grey", linewidth=0.8, linestyle=":")
    axes.set_xlabel("true slowdown, % (dashed: the allowed one)")
    axes.set_ylabel("called slower, % (dotted: 95)")
    axes.legend(frameon=False, fontsize=8)
    _save(figure, path)


def _alarms(results: Mapping[str, Any], path: Path) -> None:
    found = results["peers"]
    names = list(found["fresh"])[::-1]
    figure, axes = plt.subplots(figsize=(7, 4.2))
    for offset, source, label in ((0.2, "fresh", "bursts, fresh processes"), (-0.2, "single_calls", "single calls")):
        shares = [100 * found[source][name]["1"]["hits"] / found[source][name]["1"]["of"] for name in names]
        axes.barh([place + offset for place in range(len(names))], shares, height=0.38, label=label)
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.set_xlabel("identical code called slower, % of evaluations")
    axes.legend(frameon=False, fontsize=8)
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
