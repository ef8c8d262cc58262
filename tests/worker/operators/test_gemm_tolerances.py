"""A tolerance counts only if mutants fail it: each must fail at least one family, and honest computations none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import numpy as np
import pytest

from contract.layout import Dtype
from worker.operators.base import Numerics, tolerances_of
from worker.operators.gemm import GEMM
from worker.operators.products import ArrayProducts

DIMS = {"m": 96, "n": 80, "k": 272}
NUMPY: dict[str, Any] = {"fp16": np.float16, "fp32": np.float32}
Mutant = Callable[[np.ndarray, np.ndarray], np.ndarray]


def numerics(dtype: Dtype, **tolerances: float) -> Numerics:
    given = {**GEMM.tolerances, **tolerances}
    return Numerics(xp=np, dtype=dtype, work=np.float64, products=ArrayProducts(np.float64), tolerances=given)


def inputs_of(family: str, dtype: Dtype, dims: dict[str, int] = DIMS) -> list[np.ndarray]:
    inputs = [np.empty(tensor.shape, NUMPY[dtype]) for tensor in GEMM.tensors(dims, dtype)[:2]]
    GEMM.fill(np, family, inputs, dims, seed=7)
    return inputs


def failed_families(mutant: Mutant, dtype: Dtype, dims: dict[str, int] = DIMS) -> Iterator[str]:
    """Lazily: one family that fails is enough for a mutant."""
    for family in GEMM.families:
        inputs = inputs_of(family, dtype, dims)
        output = mutant(*inputs).astype(NUMPY[dtype])
        if not GEMM.compare(numerics(dtype), family, inputs, [output], dims).passed:
            yield family


def honest(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.float32) @ b.astype(np.float32)


def sequential(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """One running fp32 sum, the order with the largest rounding error."""
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for p in range(a.shape[1]):
        total += a[:, p : p + 1].astype(np.float32) * b[p].astype(np.float32)
    return total


def truncating(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Tensor cores: the running fp32 sum is cut off, not rounded, after every 16 products."""
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for p in range(0, a.shape[1], 16):
        exact = total.astype(np.float64) + a[:, p : p + 16].astype(np.float64) @ b[p : p + 16].astype(np.float64)
        rounded = exact.astype(np.float32)
        too_far = abs(rounded.astype(np.float64)) > abs(exact)
        total = np.where(too_far, np.nextafter(rounded, np.float32(0)), rounded)
    return total


def zeros(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.zeros((a.shape[0], b.shape[1]), np.float32)


def constant(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.full_like(zeros(a, b), honest(a, b).mean())


def diagonal_only(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    c = zeros(a, b)
    np.fill_diagonal(c, np.diagonal(honest(a, b)))
    return c


def fp16_accumulation(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    total = np.zeros((a.shape[0], b.shape[1]), np.float16)
    with np.errstate(over="ignore", invalid="ignore"):
        for p in range(a.shape[1]):
            total += (a[:, p : p + 1] * b[p]).astype(np.float16)
    return total


def fp16_accumulation_of_tiles(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Exact within 16 products, as HMMA.F16 does, the running sum in fp16."""
    total = np.zeros((a.shape[0], b.shape[1]), np.float16)
    for p in range(0, a.shape[1], 16):
        total += (a[:, p : p + 16].astype(np.float32) @ b[p : p + 16].astype(np.float32)).astype(np.float16)
    return total


def fp16_accumulation_promoted(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Sums in fp16, added up in fp32 every 64 products: twice the rate of fp32 accumulation on some cards."""
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for start in range(0, a.shape[1], 64):
        total += fp16_accumulation_of_tiles(a[:, start : start + 64], b[start : start + 64]).astype(np.float32)
    return total


def drops_last_k_tile(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return honest(a[:, :-16], b[:-16])


def drops_output_tile(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    c = honest(a, b)
    c[-16:, -16:] = 0
    return c


def one_wrong_element(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    c = honest(a, b)
    c[0, -1] *= 1.01
    return c


def tf32_inputs(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    def cut(x: np.ndarray) -> np.ndarray:
        return (x.astype(np.float32).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)

    return honest(cut(a), cut(b))


def leaves_nan(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    c = honest(a, b)
    c[0, 0] = np.nan
    return c


MUTANTS = [
    zeros,
    constant,
    diagonal_only,
    fp16_accumulation,
    fp16_accumulation_of_tiles,
    fp16_accumulation_promoted,
    drops_last_k_tile,
    drops_output_tile,
    one_wrong_element,
    leaves_nan,
]


@pytest.mark.parametrize("dtype", ["fp16", "fp32"])
@pytest.mark.parametrize("computation", [honest, sequential, truncating])
@pytest.mark.parametrize("k", [16, 272, 2048])
def test_an_honest_computation_passes_every_family(computation: Mutant, dtype: Dtype, k: int) -> None:
    assert list(failed_families(computation, dtype, {"m": 32, "n": 48, "k": k})) == []


@pytest.mark.parametrize("dtype", ["fp16", "fp32"])
@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_fails(mutant: Mutant, dtype: Dtype) -> None:
    assert any(failed_families(mutant, dtype))


@pytest.mark.parametrize("other", ["elementwise", "relative_frobenius"])
@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_fails_each_tolerance_by_itself(mutant: Mutant, other: str) -> None:
    """The other one switched off, and without the families that are compared bit for bit."""
    dims = {"m": 96, "n": 80, "k": 400}
    for family in set(GEMM.families).difference(GEMM.exact):
        inputs = inputs_of(family, "fp16", dims)
        output = mutant(*inputs).astype(np.float16)
        if not GEMM.compare(numerics("fp16", **{other: 1e9}), family, inputs, [output], dims).passed:
            return
    pytest.fail(f"without {other} no family fails it")


def test_fp16_accumulation_fails_on_plain_normal_inputs() -> None:
    assert "normal" in failed_families(fp16_accumulation_of_tiles, "fp16")


@pytest.mark.parametrize("k", [256, 4096])
def test_fp16_sums_that_are_promoted_every_64_products_fail_on_plain_inputs(k: int) -> None:
    assert "uniform" in failed_families(fp16_accumulation_promoted, "fp16", {"m": 96, "n": 80, "k": k})


def test_tf32_inputs_fail_where_fp32_is_asked() -> None:
    assert "normal" in failed_families(tf32_inputs, "fp32")


@pytest.mark.parametrize("family", GEMM.families)
def test_outputs_of_every_family_stay_inside_fp16_at_the_largest_k(family: str) -> None:
    inputs = inputs_of(family, "fp16", {"m": 8, "n": 8, "k": 8192})
    assert abs(honest(*inputs)).max() < 60_000


def sampled(output: np.ndarray, inputs: list[np.ndarray], slots: list[int], dtype: Dtype = "fp16") -> tuple[bool, bool]:
    how, random = numerics(dtype), Random(3)
    chosen = GEMM.choose(random, DIMS, slots)
    copies = GEMM.snapshot(how, [output], chosen)
    rows = GEMM.compare_sampled(how, inputs, copies, chosen, DIMS)
    whole = GEMM.compare_whole(how, inputs, [output], slots=slots, dims=DIMS, random=random)
    return rows.passed, whole.passed


@pytest.fixture
def slots() -> tuple[list[np.ndarray], np.ndarray]:
    """Six slots of fp16 inputs and their honest outputs."""
    each = [inputs_of("normal", "fp16") for _ in range(6)]
    inputs = [np.stack(tensors) for tensors in zip(*each, strict=True)]
    return inputs, honest(*inputs).astype(np.float16)


def test_honest_slots_pass_the_timed_checks(slots: tuple[list[np.ndarray], np.ndarray]) -> None:
    inputs, output = slots
    assert sampled(output, inputs, [4, 0, 5]) == (True, True)


@pytest.mark.parametrize("family", ["normal", "uniform"])
@pytest.mark.parametrize("dtype", ["fp16", "fp32"])
@pytest.mark.parametrize("mutant", [*(each for each in MUTANTS if each is not one_wrong_element), tf32_inputs])
def test_a_mutant_fails_in_one_burst_of_timed_calls(mutant: Mutant, dtype: Dtype, family: str) -> None:
    """With the inputs that timed calls have. One element of one percent is for verifying to find."""
    if mutant is tf32_inputs and dtype == "fp16":
        mutant = fp16_accumulation_of_tiles  # fp16 fits into TF32
    each = []
    for seed in range(4):
        each.append([np.empty(tensor.shape, NUMPY[dtype]) for tensor in GEMM.tensors(DIMS, dtype)[:2]])
        GEMM.fill(np, family, each[-1], DIMS, seed=seed)
    output = np.stack([mutant(*inputs).astype(NUMPY[dtype]) for inputs in each])
    inputs = [np.stack(tensors) for tensors in zip(*each, strict=True)]
    rows, whole = sampled(output, inputs, [0, 1, 2, 3], dtype)
    assert not (rows and whole)


def test_freivalds_sees_one_wrong_element_anywhere(slots: tuple[list[np.ndarray], np.ndarray]) -> None:
    inputs, output = slots
    output[4, 60, 33] += 8
    assert sampled(output, inputs, [0, 4])[1] is False


def test_the_timed_checks_see_nan_and_zeros(slots: tuple[list[np.ndarray], np.ndarray]) -> None:
    inputs, output = slots
    output[2] = 0
    assert sampled(output, inputs, [2]) == (False, False)
    output[2] = np.nan
    assert sampled(output, inputs, [2]) == (False, False)


def test_the_timed_checks_read_launched_slots_only(slots: tuple[list[np.ndarray], np.ndarray]) -> None:
    inputs, output = slots
    output[1] = np.nan
    assert sampled(output, inputs, [0, 2, 3, 4, 5]) == (True, True)


def test_an_unknown_tolerance_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"tolerances\.rtol is not a tolerance of gemm"):
        tolerances_of(GEMM, {"rtol": 1.0})
