"""gemm: C = A B, all row-major; A (m, k), B (k, n), C (m, n). fp16 with fp32 accumulation, or fp32."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from types import ModuleType
from typing import Any

from contract.layout import Dtype, Role, TensorSpec
from worker.operators import families
from worker.operators.base import Compared, Dims, Numerics, ratio, worst
from worker.operators.products import SAMPLED_ROWS

# A random sign vector turns a row's error e into a sum of standard deviation |e|; 8 of them never happen by chance.
FREIVALDS_SIGMAS = 8.0


@dataclass(frozen=True)
class Rows:
    slots: tuple[int, ...]
    rows: tuple[tuple[int, ...], ...]  # of each slot


class Gemm:
    """Tolerances: `relative_frobenius` scales the bound of the whole, `elementwise` that of each element.

    relative_frobenius 1.0: rounding to nearest has a relative Frobenius error of at most 1/sqrt(3) unit roundoffs (all
    results just above a power of two; 0.43 in general), give or take what few elements vary by. Sums in fp16 that are
    added up in fp32 every 64 products have 0.8, plain fp16 accumulation 3 or more. For fp32, sqrt(k) roundings of the
    running sum come on top.
    elementwise: u |AB| for the output's rounding, and 2^-23 (8 + k / 8) |A||B| for a running sum in fp32 (tensor cores
    truncate each step's sum; a step is at least 8 products): Higham, Accuracy and Stability, 3.1, with steps for terms.
    """

    name = "gemm"
    exact: tuple[str, ...] = ("one_hot", "binary")
    families: tuple[str, ...] = (*families.PLAIN, "large_offset", "row_scales", *exact)
    tolerances: Mapping[str, float] = {"relative_frobenius": 1.0, "elementwise": 1.0}
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
        return _compare(how, exact_product, absolute_product, outputs[0], dims["k"])

    def choose(self, random: Random, dims: Dims, slots: Sequence[int]) -> Rows:
        m = dims["m"]
        return Rows(
            slots=tuple(slots), rows=tuple(tuple(random.randrange(m) for _ in range(SAMPLED_ROWS)) for _ in slots)
        )

    def snapshot(self, how: Numerics, outputs: Sequence[Any], chosen: Rows) -> Any:
        slots, rows = how.xp.asarray(chosen.slots), how.xp.asarray(chosen.rows)
        return outputs[0][slots[:, None], rows]

    def compare_sampled(
        self, how: Numerics, inputs: Sequence[Any], snapshot: Any, chosen: Rows, dims: Dims
    ) -> Compared:
        product, absolute = how.products.of_rows(inputs[0], inputs[1], chosen.slots, chosen.rows)
        return _compare(how, product, absolute, snapshot, dims["k"])

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
        relative = how.tolerances["relative_frobenius"] * (how.unit_roundoff + _sums(k))
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


def _sums(k: int) -> float:
    """Relative error of running sums of k terms in fp32, rounded or truncated."""
    return 4 * math.sqrt(k) * 2.0**-24


def _rounding(squares: float, fourth_powers: float) -> float:
    """Unit roundoffs that elements of these sums of powers may be off as a whole: few ones vary more."""
    if not squares > 0.0:
        return 1.0
    return 0.6 * (1 + 2 * math.sqrt(fourth_powers) / squares)


def _compare(how: Numerics, reference: Any, absolute: Any, output: Any, k: int) -> Compared:
    xp = how.xp
    error = abs(output.astype(how.work) - reference)
    smallest = 2.0**-24 if how.dtype == "fp16" else 2.0**-126
    bound = how.tolerances["elementwise"] * (
        1.05 * how.unit_roundoff * abs(reference) + 2.0**-23 * (8 + k / 8) * absolute + smallest
    )
    share = float((error / bound).max())
    if math.isnan(share):
        return Compared(error=math.inf, bound=float(bound.max()), of_bound=math.inf, nan=True, what="NaN in C")
    frobenius = float(xp.sqrt((error * error).sum()))
    squares = reference * reference
    total = float(squares.sum())
    rounding = how.unit_roundoff * _rounding(total, float((squares * squares).sum())) * math.sqrt(total)
    # What a sum's roundings amount to depends on what it is made of, not on what is left of it.
    made_of = math.sqrt(float((absolute * absolute).sum()) / k)
    allowed = how.tolerances["relative_frobenius"] * (rounding + _sums(k) * max(math.sqrt(total), made_of)) + smallest
    return worst(
        (
            Compared(error=frobenius, bound=allowed, of_bound=ratio(frobenius, allowed), what="Frobenius norm"),
            Compared(error=float(error.max()), bound=float(bound.max()), of_bound=share, what="single element"),
        )
    )


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
