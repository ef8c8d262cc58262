"""gemm: C = A B, all row-major; A (m, k), B (k, n), C (m, n). fp16 with fp32 accumulation, or fp32."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from types import ModuleType
from typing import Any

from contract.layout import Dtype, Role, TensorSpec
from worker.operators import families
from worker.operators.base import Compared, Dims, Numerics
from worker.operators.products import SAMPLED_ROWS
from worker.operators.rounding import TOLERANCES, compare_sums, of_sums

# A random sign vector turns a row's error e into a sum of standard deviation |e|; 8 of them never happen by chance.
FREIVALDS_SIGMAS = 8.0


@dataclass(frozen=True)
class Rows:
    slots: tuple[int, ...]
    rows: tuple[tuple[int, ...], ...]  # of each slot


class Gemm:
    """Tolerances: worker/operators/rounding.py, with sums of k terms, made of |A||B|."""

    name = "gemm"
    exact: tuple[str, ...] = ("one_hot", "binary")
    families: tuple[str, ...] = (*families.PLAIN, "large_offset", "row_scales", *exact)
    tolerances: Mapping[str, float] = TOLERANCES
    backends: Mapping[str, tuple[str, ...]] = {"cpu": ("blas",), "cuda": ("cublas",)}
    baseline_writes_output = True

    def tensors(self, dims: Dims, dtype: Dtype) -> tuple[TensorSpec, ...]:
        m, n, k = dims["m"], dims["n"], dims["k"]
        return (
            TensorSpec(name="a", role=Role.INPUT, dtype=dtype, shape=(m, k)),
            TensorSpec(name="b", role=Role.INPUT, dtype=dtype, shape=(k, n)),
            TensorSpec(name="c", role=Role.OUTPUT, dtype=dtype, shape=(m, n)),
        )

    def flops(self, dims: Dims) -> float:
        return 2.0 * dims["m"] * dims["n"] * dims["k"]

    def bytes_moved(self, dims: Dims, dtype: Dtype) -> float:
        return float(sum(tensor.bytes for tensor in self.tensors(dims, dtype)))

    def fill(self, xp: ModuleType, family: str, inputs: Sequence[Any], dims: Dims, seed: int) -> None:
        rng = families.generator(xp, seed)
        a, b = inputs
        if family in families.PLAIN:
            a[...] = families.plain(xp, rng, family, a.shape)
            b[...] = families.plain(xp, rng, family, b.shape)
        elif family == "large_offset":
            # k offset^2 is the size of C: 16000 is far inside fp16.
            offset = min(8.0, math.sqrt(16_000 / dims["k"]))
            a[...] = families.uniform(xp, rng, a.shape) + offset
            b[...] = families.uniform(xp, rng, b.shape) + offset
        elif family == "row_scales":
            a[...] = families.row_scales(xp, rng, a.shape, 6)
            b[...] = families.normal(xp, rng, b.shape)
        elif family == "one_hot":
            a[...] = families.one_hot(xp, rng, a.shape)
            b[...] = families.normal(xp, rng, b.shape)
        elif family == "binary":
            a[...] = families.bits(xp, rng, a.shape)
            b[...] = families.bits(xp, rng, b.shape)
        else:
            raise ValueError(f"{family} is not an input family of gemm")

    def reference(self, how: Numerics, inputs: Sequence[Any]) -> tuple[Any, Any]:
        """AB and |A||B| in the work dtype; leading axes are batched."""
        a, b = (tensor.astype(how.work) for tensor in inputs)
        return a @ b, abs(a) @ abs(b)

    def compare(
        self, how: Numerics, family: str, inputs: Sequence[Any], outputs: Sequence[Any], dims: Dims
    ) -> Compared:
        exact_product, absolute_product = self.reference(how, inputs)
        if family in self.exact:
            return _compare_exact(how, exact_product, outputs[0])
        return compare_sums(how, exact_product, absolute_product, outputs[0], dims["k"])

    def choose(self, random: Random, dims: Dims, slots: Sequence[int]) -> Rows:
        # A burst of short calls has thousands of slots: one draw for all; what 64 bits are uneven by is nothing.
        drawn = array("Q", random.randbytes(8 * SAMPLED_ROWS * len(slots)))
        rows = iter([word % dims["m"] for word in drawn])
        return Rows(slots=tuple(slots), rows=tuple(zip(*[rows] * SAMPLED_ROWS, strict=True)))

    def snapshot(self, how: Numerics, outputs: Sequence[Any], chosen: Rows) -> Any:
        slots, rows = how.xp.asarray(chosen.slots), how.xp.asarray(chosen.rows)
        return outputs[0][slots[:, None], rows]

    def compare_sampled(
        self, how: Numerics, inputs: Sequence[Any], snapshot: Any, chosen: Rows, dims: Dims
    ) -> Compared:
        product, absolute = how.products.of_rows(inputs[0], inputs[1], chosen.slots, chosen.rows)
        return compare_sums(how, product, absolute, snapshot, dims["k"])

    def compare_whole(
        self,
        how: Numerics,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        *,
        slots: Sequence[int],
        dims: Dims,
        random: Random,
    ) -> Compared:
        """Freivalds: C x against A (B x) for random signs x, row by row."""
        xp, (a, b), c, k = how.xp, inputs, outputs[0], dims["k"]
        signs = families.bits(xp, families.generator(xp, random.getrandbits(63)), (1, dims["n"]))
        x = (2 * signs - 1).astype(how.work)
        cx, c_squares = how.products.with_vectors(c, slots, x)
        bx, b_squares = how.products.with_vectors(b, slots, x)
        abx, a_squares = how.products.with_vectors(a, slots, bx)
        off = abs(cx - abx)
        # Rows of C may all but cancel; what their sums were made of does not.
        made_of = xp.sqrt(a_squares) * xp.sqrt(b_squares.sum(axis=1, keepdims=True) / k)
        relative = how.tolerances["relative_frobenius"] * (how.unit_roundoff + of_sums(k))
        bounds = FREIVALDS_SIGMAS * relative * (xp.sqrt(c_squares) + 1e-3 * made_of)
        share = float((off / xp.maximum(bounds, 1e-30)).max())
        return Compared(
            error=float(off.max()),
            bound=float(bounds.max()),
            of_bound=math.inf if math.isnan(share) else share,
            nan=math.isnan(share),
            what="C x differs from A (B x) for random signs x",
        )

    def baseline(self, torch: Any, backend: str, dims: Dims) -> Callable[[Sequence[Any], Sequence[Any]], None] | None:
        del backend, dims

        def call(inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
            torch.mm(inputs[0], inputs[1], out=outputs[0])

        return call


def _compare_exact(how: Numerics, reference: Any, output: Any) -> Compared:
    """The reference's sums are exact (integers, or one product), so their rounding is the only right answer."""
    xp = how.xp
    rounded = reference.astype(output.dtype)
    if bool((output == rounded).all()):
        return Compared(error=0.0, bound=0.0, of_bound=0.0)
    nan = bool(xp.isnan(output).any())
    error = math.inf if nan else float(abs(output.astype(how.work) - rounded.astype(how.work)).max())
    return Compared(error=error, bound=0.0, of_bound=math.inf, nan=nan, what="not the rounded exact sum")


GEMM = Gemm()
