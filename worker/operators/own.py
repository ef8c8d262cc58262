"""An operator that a kernel's folder brings (operator.py beside its suite.toml): the suite's text, made an `Operator`.

The text is trusted like the suite that carries it, and nothing else is: it is compiled from memory, so that no file of
a submission can stand in for it. Its functions run in the judge and in the baseline's process, nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random
from types import ModuleType
from typing import Any

from contract.layout import Dtype, TensorSpec
from contract.own_operator import FILE, Signature, read_signature
from worker.operators import families
from worker.operators.base import Compared, Dims, Numerics, worst
from worker.operators.rounding import TOLERANCES, compare_sums

# Of a burst's slots: one after the other, as their inputs differ, and each takes half a millisecond on a GPU.
SLOTS = 16
ROWS = 4  # of a slot


class OwnOperatorFailed(Exception):  # noqa: N818
    """The operator itself is wrong: it raised, or gave what it should not. Never the kernel's fault."""


@dataclass(frozen=True)
class Draw:
    """What `fill` draws with: float32 arrays of the array module `xp`, from one seed."""

    xp: ModuleType
    rng: Any

    def normal(self, shape: tuple[int, ...]) -> Any:
        return families.normal(self.xp, self.rng, shape)

    def uniform(self, shape: tuple[int, ...]) -> Any:
        """[-1, 1)."""
        return families.uniform(self.xp, self.rng, shape)

    def heavy_tailed(self, shape: tuple[int, ...]) -> Any:
        return families.heavy_tailed(self.xp, self.rng, shape)

    def row_scales(self, shape: tuple[int, ...], octaves: int) -> Any:
        return families.row_scales(self.xp, self.rng, shape, octaves)

    def one_hot(self, shape: tuple[int, ...]) -> Any:
        return families.one_hot(self.xp, self.rng, shape)

    def bits(self, shape: tuple[int, ...]) -> Any:
        return families.bits(self.xp, self.rng, shape)


@dataclass(frozen=True)
class Chosen:
    """Rows of the outputs by slot; () is all of them."""

    slots: tuple[int, ...]
    rows: tuple[tuple[int, ...], ...]


class OwnOperator:
    """Tolerances: worker/operators/rounding.py, with sums of TERMS terms, made of `magnitude` or of |reference|."""

    tolerances: Mapping[str, float] = TOLERANCES

    def __init__(self, name: str, source: str) -> None:
        self.name, self._source = name, source
        self.signature: Signature = read_signature(source)
        self.families = (*families.PLAIN, *self.signature.families)
        backend = (self.signature.baseline,)
        self.backends: Mapping[str, tuple[str, ...]] = {"cpu": backend, "cuda": backend}
        self.baseline_writes_output = self.signature.baseline_writes

    def tensors(self, dims: Dims, dtype: Dtype) -> tuple[TensorSpec, ...]:
        return self.signature.tensors(dims, dtype)

    def flops(self, dims: Dims) -> float:
        return self.signature.count(self.signature.flop, dims)

    def bytes_moved(self, dims: Dims, dtype: Dtype) -> float:
        if self.signature.bytes is not None:
            return self.signature.count(self.signature.bytes, dims)
        return float(sum(tensor.bytes for tensor in self.tensors(dims, dtype)))

    def fill(self, xp: ModuleType, family: str, inputs: Sequence[Any], dims: Dims, seed: int) -> None:
        rng = families.generator(xp, seed)
        if family in families.PLAIN:
            for tensor in inputs:
                tensor[...] = families.plain(xp, rng, family, tensor.shape)
        else:
            self._call("fill", Draw(xp, rng), family, tuple(inputs), dict(dims))
        if not all(bool(xp.isfinite(tensor).all()) for tensor in inputs):
            raise OwnOperatorFailed(f"{FILE}: inputs of the family {family} are not all finite")

    def compare(
        self, how: Numerics, family: str, inputs: Sequence[Any], outputs: Sequence[Any], dims: Dims
    ) -> Compared:
        del family
        rows = len(outputs[0])
        if not self._by_row:
            return self._compare(how, inputs, outputs, dims)
        # By blocks of rows: the reference's temporary arrays are several times the output.
        each = 8 * sum(math.prod(tensor.shape[1:]) for tensor in outputs) * how.xp.dtype(how.work).itemsize
        step = max(1, how.scratch_bytes // each)
        return worst(
            [
                self._compare(how, self._cut(inputs, block), [output[block] for output in outputs], dims)
                for block in (slice(at, at + step) for at in range(0, rows, step))
            ]
        )

    def choose(self, random: Random, dims: Dims, slots: Sequence[int]) -> Chosen:
        """Some rows of some slots; where rows depend on each other, all of one slot."""
        if not self._by_row:
            return Chosen((random.choice(list(slots)),), ((),))
        rows = self.tensors(dims, "fp32")[-1].shape[0]
        some = random.sample(list(slots), min(SLOTS, len(slots)))
        return Chosen(tuple(some), tuple(tuple(random.randrange(rows) for _ in range(ROWS)) for _ in some))

    def snapshot(self, how: Numerics, outputs: Sequence[Any], chosen: Chosen) -> Any:
        slots, rows = how.xp.asarray(chosen.slots), how.xp.asarray(chosen.rows)
        if not self._by_row:
            return [output[slots] for output in outputs]
        return [output[slots[:, None], rows] for output in outputs]

    def compare_sampled(
        self, how: Numerics, inputs: Sequence[Any], snapshot: Any, chosen: Chosen, dims: Dims
    ) -> Compared:
        found = []
        for place, (slot, rows) in enumerate(zip(chosen.slots, chosen.rows, strict=True)):
            of_slot = [tensor[slot] for tensor in inputs]
            if self._by_row:
                of_slot = self._cut(of_slot, how.xp.asarray(rows))
            found.append(self._compare(how, of_slot, [output[place] for output in snapshot], dims))
        return worst(found)

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
        """All of one secret slot against the reference; and no slot has kept a NaN of its poison."""
        for output in outputs:
            rows = output.reshape(output.shape[0], -1, output.shape[-1])
            ignored = how.xp.zeros((1, output.shape[-1]), how.work)
            _, squares = how.products.with_vectors(rows, slots, ignored)
            if bool(how.xp.isnan(squares).any()):
                return Compared(error=math.inf, bound=0.0, of_bound=math.inf, nan=True, what="NaN")
        slot = random.choice(list(slots))
        return self.compare(how, "", [tensor[slot] for tensor in inputs], [tensor[slot] for tensor in outputs], dims)

    def baseline(self, torch: Any, backend: str, dims: Dims) -> Callable[[Sequence[Any], Sequence[Any]], None] | None:
        del backend
        function, case = self._functions["baseline"], dict(dims)

        def call(inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
            function(torch, inputs, outputs, case)

        return call

    @property
    def _by_row(self) -> bool:
        return bool(self.signature.by_rows)

    def _cut(self, inputs: Sequence[Any], rows: Any) -> list[Any]:
        """The inputs of these rows of the outputs."""
        by_rows = self.signature.by_rows
        return [tensor[rows] if name in by_rows else tensor for name, tensor in self._named(inputs)]

    def _named(self, inputs: Sequence[Any]) -> zip[tuple[str, Any]]:
        return zip(self.signature.inputs, inputs, strict=True)

    def _compare(self, how: Numerics, inputs: Sequence[Any], outputs: Sequence[Any], dims: Dims) -> Compared:
        wide = tuple(tensor.astype(how.work) for tensor in inputs)
        references = self._results("reference", how, wide, outputs, dims)
        made_of = [abs(reference) for reference in references]
        if "magnitude" in self._functions:
            made_of = self._results("magnitude", how, wide, outputs, dims)
        terms = self.signature.count(self.signature.terms, dims)
        return worst(
            [
                compare_sums(how, reference, scale, output, terms)
                for reference, scale, output in zip(references, made_of, outputs, strict=True)
            ]
        )

    def _results(
        self, function: str, how: Numerics, inputs: tuple[Any, ...], outputs: Sequence[Any], dims: Dims
    ) -> list[Any]:
        """One array an output, of its shape and all finite: else nothing could be told from a comparison."""
        given = self._call(function, how.xp, inputs, dict(dims))
        results = list(given) if isinstance(given, tuple) else [given]
        shapes = [getattr(result, "shape", None) for result in results]
        if shapes != [output.shape for output in outputs]:
            wanted = ", ".join(str(output.shape) for output in outputs)
            raise OwnOperatorFailed(f"{FILE}: {function} gave {', '.join(map(str, shapes))} instead of {wanted}")
        results = [result.astype(how.work) for result in results]
        if not all(bool(how.xp.isfinite(result).all()) for result in results):
            raise OwnOperatorFailed(f"{FILE}: {function} is not finite everywhere")
        return results

    def _call(self, name: str, *arguments: Any) -> Any:
        try:
            return self._functions[name](*arguments)
        except (MemoryError, OwnOperatorFailed):
            raise
        except Exception as error:
            if type(error).__name__ == "OutOfMemoryError":
                raise
            raise OwnOperatorFailed(f"{FILE}: {name} raised {type(error).__name__}: {error}") from error

    @cached_property
    def _functions(self) -> dict[str, Callable[..., Any]]:
        """What the text defines. It is run once, where a function is first needed."""
        module = ModuleType("kernelgate_operator")
        try:
            exec(compile(self._source, FILE, "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - the suite's own
        except Exception as error:
            raise OwnOperatorFailed(f"{FILE} raised {type(error).__name__}: {error}") from error
        return {name: value for name, value in vars(module).items() if callable(value)}
