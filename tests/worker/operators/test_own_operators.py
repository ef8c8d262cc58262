"""An operator that a suite brings: rmsnorm's own rule against mutants, and what a broken operator is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from tests.kernels.shipped import suite_of
from worker.operators import OPERATORS, operator_of, operator_of_suite
from worker.operators.base import Numerics
from worker.operators.own import OwnOperator, OwnOperatorFailed
from worker.operators.products import ArrayProducts

Mutant = Callable[[np.ndarray, np.ndarray], np.ndarray]
SUITE = suite_of("rmsnorm")
RMSNORM = operator_of_suite(SUITE)
SHAPES = sorted((case.dims["rows"], case.dims["columns"]) for case in SUITE.verify_cases)
EPSILON = 1e-5


def numerics(work: type[np.floating] = np.float64, **tolerances: float) -> Numerics:
    given = {**RMSNORM.tolerances, **tolerances}
    return Numerics(xp=np, dtype="fp16", work=work, products=ArrayProducts(work), tolerances=given)


def inputs_of(family: str, dims: dict[str, int], seed: int = 5) -> list[np.ndarray]:
    inputs = [np.full(tensor.shape, np.nan, np.float16) for tensor in RMSNORM.tensors(dims, "fp16")[:2]]
    RMSNORM.fill(np, family, inputs, dims, seed)
    return inputs


def honest(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    wide = x.astype(np.float32)
    scale = 1 / np.sqrt((wide * wide).mean(axis=-1, keepdims=True) + np.float32(EPSILON))
    return wide * scale * weight.astype(np.float32)


def sequential(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """One running sum in fp32, the order with the largest error."""
    wide = x.astype(np.float32)
    total = np.zeros((x.shape[0], 1), np.float32)
    for column in range(x.shape[1]):
        total += wide[:, column : column + 1] * wide[:, column : column + 1]
    return wide / np.sqrt(total / np.float32(x.shape[1]) + np.float32(EPSILON)) * weight.astype(np.float32)


def zeros(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    return np.zeros_like(honest(x, weight))


def constant(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    return np.full_like(honest(x, weight), honest(x, weight).mean())


def copies_its_input(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """On plain normal inputs the root mean square is about one."""
    return x.astype(np.float32) * weight.astype(np.float32)


def without_epsilon(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    wide = x.astype(np.float32)
    return wide / np.sqrt(np.maximum((wide * wide).mean(axis=-1, keepdims=True), 1e-30)) * weight.astype(np.float32)


def without_weight(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    return honest(x, np.ones_like(weight))


def takes_the_mean_away(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    wide = x.astype(np.float32)
    return honest(wide - wide.mean(axis=-1, keepdims=True), weight)


def scaled_like_another_length(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The last block left out of the sum of squares, as a wrong mask does."""
    wide = x.astype(np.float32)
    kept = wide[:, : max(1, x.shape[1] - 16)]
    scale = 1 / np.sqrt((kept * kept).sum(axis=-1, keepdims=True) / x.shape[1] + np.float32(EPSILON))
    return wide * scale * weight.astype(np.float32)


def sums_in_half(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    total = np.zeros((x.shape[0], 1), np.float16)
    with np.errstate(over="ignore"):
        for column in range(x.shape[1]):
            total += x[:, column : column + 1] * x[:, column : column + 1]
    wide = x.astype(np.float32)
    scale = 1 / np.sqrt(total.astype(np.float32) / x.shape[1] + np.float32(EPSILON))
    return wide * scale * weight.astype(np.float32)


def scale_in_half(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    wide = x.astype(np.float32)
    scale = 1 / np.sqrt((wide * wide).mean(axis=-1, keepdims=True) + np.float32(EPSILON))
    return wide * scale.astype(np.float16).astype(np.float32) * weight.astype(np.float32)


def rounds_on_the_way(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """To half before the weight: twice the rounding that the result needs."""
    ones = np.ones_like(weight)
    return honest(x, ones).astype(np.float16).astype(np.float32) * weight.astype(np.float32)


def first_row_for_all(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    return np.broadcast_to(honest(x[:1], weight), x.shape)


def leaves_the_tail(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    output = honest(x, weight).copy()
    output[-1, -1] = np.nan
    return output


def one_wrong_element(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    output = honest(x, weight).copy()
    output[0, -1] = output[0, -1] * 1.01 + 1e-3
    return output


MUTANTS = (
    zeros,
    constant,
    copies_its_input,
    without_epsilon,
    without_weight,
    takes_the_mean_away,
    scaled_like_another_length,
    sums_in_half,
    scale_in_half,
    rounds_on_the_way,
    first_row_for_all,
    leaves_the_tail,
    one_wrong_element,
)


def failures(mutant: Mutant, how: Numerics, shapes: list[tuple[int, int]] = SHAPES) -> Iterator[tuple[str, str]]:
    """(family, what fails) of the suite's own verified cases, lazily: one is enough."""
    for rows, columns in shapes:
        dims = {"rows": rows, "columns": columns}
        for family in RMSNORM.families:
            inputs = inputs_of(family, dims)
            output = mutant(*inputs).astype(np.float16)
            compared = RMSNORM.compare(how, family, inputs, [output], dims)
            if not compared.passed:
                yield family, compared.what


@pytest.mark.parametrize("work", [np.float64, np.float32])
@pytest.mark.parametrize("computation", [honest, sequential])
def test_an_honest_computation_passes_every_pair_of_its_suite(computation: Mutant, work: type[np.floating]) -> None:
    assert list(failures(computation, numerics(work))) == []


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_fails_on_its_suite_s_own_cases(mutant: Mutant) -> None:
    assert next(failures(mutant, numerics()), None) is not None


@pytest.mark.parametrize(
    ("mutant", "other", "seen_by"),
    [
        (sums_in_half, "elementwise", "Frobenius norm"),
        (scale_in_half, "elementwise", "Frobenius norm"),
        (one_wrong_element, "relative_frobenius", "single element"),
        (rounds_on_the_way, "relative_frobenius", "single element"),
    ],
)
def test_each_tolerance_fails_a_mutant_by_itself(mutant: Mutant, other: str, seen_by: str) -> None:
    without_the_other = numerics(**{other: 1e9})
    assert {what for _, what in failures(mutant, without_the_other, [(9, 4096)])} == {seen_by}


def slots_of(mutant: Mutant, count: int, rows: int = 64, columns: int = 48) -> tuple[Any, Any, dict[str, int]]:
    dims = {"rows": rows, "columns": columns}
    each = [inputs_of("normal", dims, seed) for seed in range(count)]
    inputs = [np.stack(tensors) for tensors in zip(*each, strict=True)]
    return inputs, np.stack([mutant(*one).astype(np.float16) for one in each]), dims


def timed(operator: Any, inputs: Any, output: Any, dims: dict[str, int], slots: list[int]) -> tuple[bool, bool]:
    how, random = numerics(), Random(2)
    chosen = operator.choose(random, dims, slots)
    copies = operator.snapshot(how, [output], chosen)
    rows = operator.compare_sampled(how, inputs, copies, chosen, dims)
    whole = operator.compare_whole(how, inputs, [output], slots=slots, dims=dims, random=random)
    return rows.passed, whole.passed


def test_timed_calls_are_checked_by_rows_and_as_a_whole() -> None:
    assert timed(RMSNORM, *slots_of(honest, 5), [4, 1, 3]) == (True, True)
    assert timed(RMSNORM, *slots_of(without_weight, 5), [4, 1, 3]) == (False, False)


def test_poison_is_seen_in_any_slot_that_was_launched_and_in_no_other() -> None:
    inputs, output, dims = slots_of(honest, 70)
    output[66, 63, 47] = np.nan
    launched = list(range(70))
    assert timed(RMSNORM, inputs, output, dims, launched)[1] is False
    launched.remove(66)
    assert timed(RMSNORM, inputs, output, dims, launched) == (True, True)


def test_where_rows_depend_on_each_other_a_whole_slot_is_compared() -> None:
    source = str(SUITE.operator_source).replace('BY_ROWS = ("x",)', "BY_ROWS = ()")
    whole = operator_of("rmsnorm", source)
    assert timed(whole, *slots_of(honest, 3), [2, 0]) == (True, True)
    assert timed(whole, *slots_of(one_wrong_element, 3), [2, 0]) == (False, False)


def test_rows_are_compared_by_blocks_that_fit_into_memory() -> None:
    how = replace(numerics(), scratch_bytes=8 * 48 * 8 * 10)
    inputs, output, dims = slots_of(honest, 1)
    output[0, 61] *= 1.5
    assert not RMSNORM.compare(how, "", [each[0] for each in inputs], [output[0]], dims).passed
    output[0, 61] = honest(inputs[0][0], inputs[1][0])[61]
    assert RMSNORM.compare(how, "", [each[0] for each in inputs], [output[0]], dims).passed


def test_flop_and_bytes_are_what_the_file_says() -> None:
    dims = {"rows": 3, "columns": 5}
    assert RMSNORM.flops(dims) == 60
    assert RMSNORM.bytes_moved(dims, "fp16") == 2 * (15 + 5 + 15)


GEMM_LIKE = """
DIMS = ("m", "n", "k")
INPUTS = {"a": ("m", "k"), "b": ("k", "n")}
OUTPUTS = {"c": ("m", "n")}
FLOP = "2 * m * n * k"
BYTES = "2 * m * n"
TERMS = "k"


def reference(xp, inputs, dims):
    return inputs[0] @ inputs[1]


def magnitude(xp, inputs, dims):
    return abs(inputs[0]) @ abs(inputs[1])


def baseline(torch, inputs, outputs, dims): ...
"""


def test_with_its_magnitude_a_product_is_judged_like_gemm() -> None:
    own, gemm = operator_of("mine", GEMM_LIKE), OPERATORS["gemm"]
    dims = {"m": 24, "n": 16, "k": 400}
    assert own.bytes_moved(dims, "fp16") == 768
    inputs = [np.empty(tensor.shape, np.float16) for tensor in own.tensors(dims, "fp16")[:2]]
    own.fill(np, "uniform", inputs, dims, 3)
    output = (inputs[0].astype(np.float32) @ inputs[1].astype(np.float32)).astype(np.float16)
    ours, theirs = (operator.compare(numerics(), "uniform", inputs, [output], dims) for operator in (own, gemm))
    assert (ours.error, ours.bound) == (theirs.error, theirs.bound)


@pytest.mark.parametrize(
    ("gives", "says"),
    [
        ("1 / 0", "reference raised ZeroDivisionError"),
        ("[0]", "reference gave None instead of (4, 4)"),
        ("(inputs[0], inputs[1])", "reference gave (4, 4), (4, 4) instead of (4, 4)"),
        ("inputs[0] @ inputs[1] * xp.inf", "reference is not finite everywhere"),
    ],
)
def test_an_operator_that_fails_says_so_and_blames_no_kernel(gives: str, says: str) -> None:
    operator = OwnOperator("mine", GEMM_LIKE.replace("return inputs[0] @ inputs[1]", f"return {gives}"))
    dims = {"m": 4, "n": 4, "k": 4}
    inputs = [np.ones(tensor.shape, np.float16) for tensor in operator.tensors(dims, "fp16")[:2]]
    with pytest.raises(OwnOperatorFailed) as failed:
        operator.compare(numerics(), "normal", inputs, [np.zeros((4, 4), np.float16)], dims)
    assert says in str(failed.value)


def test_what_is_left_unfilled_is_the_operators_fault() -> None:
    source = str(SUITE.operator_source).replace("    weight[...] = draw.normal(weight.shape)\n", "")
    operator = OwnOperator("rmsnorm", source)
    inputs = [np.full((2, 3), np.nan, np.float16), np.full(3, np.nan, np.float16)]
    with pytest.raises(OwnOperatorFailed, match="large_offset are not all finite"):
        operator.fill(np, "large_offset", inputs, {"rows": 2, "columns": 3}, 1)


def test_its_tensors_are_known_without_running_it() -> None:
    operator = OwnOperator("mine", f"{GEMM_LIKE}\nraise SystemExit(3)\n")
    assert operator.tensors({"m": 2, "n": 3, "k": 4}, "fp16")[2].shape == (2, 3)
    assert operator.flops({"m": 2, "n": 3, "k": 4}) == 48
