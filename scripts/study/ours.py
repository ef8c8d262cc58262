"""Evaluations drawn from recorded pairs, judged as the project judges: look after look until one decides.

Every evaluation draws its pairs with replacement. As the recorded code is identical on both sides, each drawn pair may
have its sides changed; a slowdown is put in by multiplying the head's times. A pair brings its one value,
as a verdict takes it from the samples; the floor is that of all samples together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

import verdict
from contract.outcomes import Verdict
from contract.samples import Comparison, Pair, Round

LOOKS: tuple[tuple[Literal[1, 2, 3], int], ...] = tuple(zip((1, 2, 3), verdict.LOOKS, strict=True))


@dataclass(frozen=True)
class Found:
    """What so many evaluations said, and how many processes a side they took."""

    verdicts: Counter[Verdict]
    processes: Counter[int]

    @property
    def evaluations(self) -> int:
        return self.verdicts.total()

    def share(self, which: Verdict) -> float:
        return self.verdicts[which] / self.evaluations


def draw(rng: np.random.Generator, values: np.ndarray[Any, Any], pairs: int) -> np.ndarray[Any, Any]:
    """Values of so many pairs, each with its sides in either place."""
    return np.asarray(rng.choice(values, pairs) * rng.choice((-1.0, 1.0), pairs))


def evaluate(
    rng: np.random.Generator,
    values: np.ndarray[Any, Any],
    *,
    evaluations: int,
    time_us: float,
    allowed: float,
    ratio: float = 1.0,
    processes: int = 16,
    floor: float | None = None,
) -> Found:
    verdicts: Counter[Verdict] = Counter()
    took: Counter[int] = Counter()
    for _ in range(evaluations):
        drawn = np.log(ratio) + draw(rng, values, processes)
        said, after = sequential(drawn, time_us=time_us, allowed=allowed, floor=floor)
        verdicts[said] += 1
        took[after] += 1
    return Found(verdicts, took)


def sequential(
    values: np.ndarray[Any, Any], *, time_us: float, allowed: float, floor: float | None = None
) -> tuple[Verdict, int]:
    """The verdict, and the processes a side after which it was reached."""
    pairs = [_pair(value, time_us) for value in values.tolist()]
    for look, enough in LOOKS:
        if enough > len(pairs):
            break
        said = decide(pairs[:enough], allowed=allowed, look=look, floor=floor)
        if said is not Verdict.INCONCLUSIVE:
            return said, enough
    return Verdict.INCONCLUSIVE, len(pairs)


def decide(
    pairs: Sequence[Pair], *, allowed: float, look: Literal[1, 2, 3] | None = None, floor: float | None = None
) -> Verdict:
    return verdict.decide(
        Comparison.model_construct(
            unit="us",
            allowed_slowdown=allowed,
            pairs=tuple(pairs),
            better="lower",
            spread_floor=floor,
            seed=0,
            look=look,
        )
    ).verdict


def _pair(value: float, time_us: float) -> Pair:
    """A pair whose ln(head/base) is `value`."""
    only = Round.model_construct(base=(time_us,), head=(time_us * float(np.exp(value)),))
    return Pair.model_construct(rounds=(only,), base_process=None, head_process=None)
