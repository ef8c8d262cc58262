"""Items 30 to 35: tolerances against mutants, on the (family, shape) pairs of the suites that ship."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from contract.suite import Case
from tests.cheats.conftest import Judged
from tests.kernels.shipped import suite_of
from tests.worker.operators import test_attention_tolerances as attention
from tests.worker.operators import test_gemm_tolerances as gemm
from worker.operators.attention import ATTENTION
from worker.operators.gemm import GEMM

HGEMM, SGEMM, PREFILL = suite_of("hgemm"), suite_of("sgemm_cpu"), suite_of("attention_prefill")


@pytest.mark.parametrize(
    "entry", ["all_zeros", "lowers_precision", "lowers_precision_where_it_looks_random", "drops_the_last_k"]
)
def test_30_31_32_wrong_numbers_are_incorrect(judged: Judged, entry: str) -> None:
    assert judged(entry, measure=False).reason == "wrong_values"


GEMM_MUTANTS = (
    gemm.zeros,
    gemm.constant,
    gemm.diagonal_only,
    gemm.fp16_accumulation_of_tiles,
    gemm.fp16_accumulation_promoted,
    gemm.drops_last_k_tile,
    gemm.drops_output_tile,
    gemm.one_wrong_element,
)


def gemm_pairs(cases: tuple[Case, ...], dtype: str, mutant: Callable[..., np.ndarray]) -> list[tuple[str, str]]:
    """(family, case) on which the mutant fails; one is enough."""
    for case in sorted(cases, key=lambda case: case.dims["k"], reverse=True):
        for family in GEMM.families:
            inputs = gemm.inputs_of(family, dtype, case.dims)  # type: ignore[arg-type]
            output = mutant(*inputs).astype(gemm.NUMPY[dtype])
            if not GEMM.compare(gemm.numerics(dtype), family, inputs, [output], case.dims).passed:  # type: ignore[arg-type]
                return [(family, case.id)]
    return []


@pytest.mark.parametrize("mutant", GEMM_MUTANTS)
def test_30_31_32_33_a_gemm_mutant_fails_on_hgemms_own_cases(mutant: Callable[..., np.ndarray]) -> None:
    cases = tuple(case for case in HGEMM.verify_cases if case.dims["m"] < 1000)
    assert gemm_pairs(cases, "fp16", mutant)


@pytest.mark.parametrize("mutant", [*GEMM_MUTANTS, gemm.tf32_inputs])
def test_30_31_32_33_a_gemm_mutant_fails_on_sgemm_cpus_own_cases(mutant: Callable[..., np.ndarray]) -> None:
    assert gemm_pairs(SGEMM.verify_cases, "fp32", mutant)


@pytest.mark.parametrize("suite", [HGEMM, SGEMM], ids=lambda suite: suite.kernel)
def test_an_honest_gemm_passes_every_pair_of_the_suites(suite: object) -> None:
    dtype = suite.dtype  # type: ignore[attr-defined]
    cases = tuple(case for case in suite.verify_cases if case.dims["m"] < 1000)  # type: ignore[attr-defined]
    assert gemm_pairs(cases, dtype, gemm.honest) == []


ATTENTION_MUTANTS = (
    attention.zeros,
    attention.constant,
    attention.mean_of_values,
    attention.drops_last_tile,
    attention.fp16_accumulation,
    attention.wrong_heads,
)


def skips_the_mask(q: np.ndarray, k: np.ndarray, v: np.ndarray, *, causal: bool) -> np.ndarray:
    del causal
    return attention.flash(q, k, v, causal=False)


def attention_pairs(mutant: attention.Mutant, families: tuple[str, ...] = ATTENTION.families) -> list[tuple[str, str]]:
    """Of the suite's verified cases, shortest first; the longest would take NumPy seconds a family."""
    for case in sorted(PREFILL.verify_cases, key=lambda case: case.dims["seqlen"]):
        for family in families:
            inputs = attention.inputs_of(family, case.dims)
            with np.errstate(over="ignore", invalid="ignore"):
                output = mutant(*inputs, causal=bool(case.dims["causal"]))
            if not ATTENTION.compare(attention.HOW, family, inputs, [output], case.dims).passed:
                return [(family, case.id)]
    return []


@pytest.mark.parametrize("mutant", [*ATTENTION_MUTANTS, skips_the_mask])
def test_30_31_32_33_35_an_attention_mutant_fails_on_attention_prefills_own_cases(mutant: attention.Mutant) -> None:
    families = ("constant_runs", "large_offset") if mutant is attention.fp16_accumulation else ATTENTION.families
    assert attention_pairs(mutant, families)


def test_34_a_race_that_passes_once_does_not_pass_the_timed_calls(judged: Judged) -> None:
    assert judged("races_now_and_then", verify_cases=()).reason == "wrong_values"
