"""What an operator is: its tensors, input families, reference, tolerances, baseline, and FLOP and byte counts.

An operator gets an array module `xp` (NumPy or CuPy) and never imports one; only its `baseline` may use torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from types import ModuleType
from typing import Any, Protocol

from contract.layout import Dtype, TensorSpec
from worker.operators.products import Products

Dims = Mapping[str, int]
# Temporary arrays of a check stay near this size, or a device's own: little enough for a laptop.
SCRATCH_BYTES = 256 << 20


@dataclass(frozen=True)
class Compared:
    """The worst error of a comparison, its bound, and error / bound. NaN in the output makes `of_bound` infinite."""

    error: float
    bound: float
    of_bound: float
    nan: bool = False
    what: str = ""

    @property
    def passed(self) -> bool:
        return self.of_bound <= 1.0


@dataclass(frozen=True)
class Numerics:
    """How to compare: the array module, the references' dtype, the suite's tolerances (by the operator's names), and
    what temporary arrays may take."""

    xp: ModuleType
    dtype: Dtype
    work: Any
    products: Products
    tolerances: Mapping[str, float]
    scratch_bytes: int = SCRATCH_BYTES

    @property
    def unit_roundoff(self) -> float:
        return {"fp16": 2.0**-11, "fp32": 2.0**-24}[self.dtype]


class Operator(Protocol):
    """Arrays of inputs and outputs come in the order of `tensors`; with a leading slot axis where the name says slots.

    families: input families of `fill`, all verified. exact: those whose outputs are compared bit for bit.
    tolerances: names and defaults of what a suite may override.
    backends: the baseline's backends by device ("cpu", "cuda"); the first is the primary one.
    baseline_writes_output: whether the baseline's output lands in the arena, so that it is checked like any other.
    """

    name: str
    families: tuple[str, ...]
    tolerances: Mapping[str, float]
    backends: Mapping[str, tuple[str, ...]]
    baseline_writes_output: bool

    def tensors(self, dims: Dims, dtype: Dtype) -> tuple[TensorSpec, ...]: ...

    def flops(self, dims: Dims) -> float: ...

    def bytes_moved(self, dims: Dims, dtype: Dtype) -> float:
        """Each tensor once: what no call can move less of."""

    def fill(self, xp: ModuleType, family: str, inputs: Sequence[Any], dims: Dims, seed: int) -> None:
        """Draw the inputs of one call in place."""

    def compare(
        self, how: Numerics, family: str, inputs: Sequence[Any], outputs: Sequence[Any], dims: Dims
    ) -> Compared:
        """All of one call's output against the reference."""

    def choose(self, random: Random, dims: Dims, slots: Sequence[int]) -> Any:
        """Secret rows (query blocks) of these slots, for `snapshot` and `compare_sampled`."""

    def snapshot(self, how: Numerics, outputs: Sequence[Any], chosen: Any) -> Any:
        """Copy the chosen rows; `outputs` have a slot axis."""

    def compare_sampled(self, how: Numerics, inputs: Sequence[Any], snapshot: Any, chosen: Any, dims: Dims) -> Compared:
        """The copied rows against the reference; `inputs` have a slot axis."""

    def compare_whole(
        self,
        how: Numerics,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        *,
        slots: Sequence[int],
        dims: Dims,
        random: Random,
    ) -> Compared | None:
        """A check over all of each slot's output that is cheaper than the call; None where the operator has none."""

    def baseline(self, torch: Any, backend: str, dims: Dims) -> Callable[[Sequence[Any], Sequence[Any]], None] | None:
        """The vendor library's call on torch tensors (inputs, outputs); None where the backend lacks the case."""


def tolerances_of(operator: Operator, given: Mapping[str, float]) -> dict[str, float]:
    """The operator's tolerances with the suite's in their place; ValueError where a name is none of its."""
    for name in given:
        if name not in operator.tolerances:
            known = ", ".join(operator.tolerances)
            raise ValueError(f"suite.toml: tolerances.{name} is not a tolerance of {operator.name} ({known})")
    return {**operator.tolerances, **given}


def worst(candidates: Sequence[Compared]) -> Compared:
    return max(candidates, key=lambda compared: compared.of_bound)


def ratio(error: float, bound: float) -> float:
    """error / bound; infinite where either is NaN or the bound is 0 and missed."""
    if error == 0:
        return 0.0
    share = error / bound if bound > 0 else math.nan
    return math.inf if math.isnan(share) else share
