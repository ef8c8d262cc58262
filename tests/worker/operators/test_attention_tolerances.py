"""The dual-baseline rule of attention: mutants fail it on at least one family, an honest flash computation on none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

import numpy as np
import pytest

from worker.operators.attention import ATTENTION
from worker.operators.base import Numerics
from worker.operators.products import ArrayProducts

Mutant = Callable[..., np.ndarray]


def numerics(**tolerances: float) -> Numerics:
    given = {**ATTENTION.tolerances, **tolerances}
    return Numerics(xp=np, dtype="fp16", work=np.float64, products=ArrayProducts(np.float64), tolerances=given)


HOW = numerics()


def dims_of(*, causal: int, seqlen: int = 128, heads: int = 4) -> dict[str, int]:
    return {
        "batch": 1,
        "heads": heads,
        "kv_heads": heads // 2,
        "seqlen": seqlen,
        "head_dim": 64,
        "causal": causal,
    }


def inputs_of(family: str, dims: dict[str, int]) -> list[np.ndarray]:
    inputs = [np.empty(tensor.shape, np.float16) for tensor in ATTENTION.tensors(dims, "fp16")[:3]]
    ATTENTION.fill(np, family, inputs, dims, seed=11)
    return inputs


def flash(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    *,
    causal: bool,
    tile: int = 64,
    skip_last: bool = False,
    accumulator: type[np.floating] = np.float32,
    repeat_heads: bool = True,
) -> np.ndarray:
    """Online softmax over key tiles: fp32 scores and sums, weights rounded to fp16 before their product with V."""
    batch, seqlen, heads, head_dim = q.shape
    group = heads // k.shape[2]
    out = np.zeros(q.shape, np.float16)
    rows = np.arange(seqlen)[:, None]
    for b in range(batch):
        for h in range(heads):
            at = h // group if repeat_heads else h % k.shape[2]
            queries = q[b, :, h].astype(np.float32) / np.sqrt(np.float32(head_dim))
            highest = np.full((seqlen, 1), -np.inf, np.float32)
            total = np.zeros((seqlen, 1), np.float32)
            acc = np.zeros((seqlen, head_dim), accumulator)
            for start in range(0, seqlen - (tile if skip_last else 0), tile):
                keys = k[b, start : start + tile, at].astype(np.float32)
                scores = queries @ keys.T
                if causal:
                    scores = np.where(np.arange(start, start + keys.shape[0])[None] <= rows, scores, np.float32(-1e30))
                new = np.maximum(highest, scores.max(axis=1, keepdims=True))
                weights = np.exp(scores - new)
                if causal:
                    weights = np.where(scores <= -1e29, np.float32(0), weights)
                shrink = np.where(np.isinf(highest), np.float32(0), np.exp(highest - new))
                total = total * shrink + weights.sum(axis=1, keepdims=True)
                product = weights.astype(np.float16).astype(np.float32) @ v[b, start : start + tile, at].astype(
                    np.float32
                )
                acc = (acc * shrink.astype(accumulator)).astype(accumulator) + product.astype(accumulator)
                highest = new
            out[b, :, h] = (acc / np.maximum(total, np.float32(1e-30))).astype(np.float16)
    return out


def honest(q: np.ndarray, k: np.ndarray, v: np.ndarray, *, causal: bool) -> np.ndarray:
    return flash(q, k, v, causal=causal)


def zeros(q: np.ndarray, k: np.ndarray, v: np.ndarray, *, causal: bool) -> np.ndarray:
    del k, v, causal
    return np.zeros_like(q)


def constant(q: np.ndarray, k: np.ndarray, v: np.ndarray, *, causal: bool) -> np.ndarray:
    del k, causal
    return np.full_like(q, v.mean())


def mean_of_values(q: np.ndarray, k: np.ndarray, v: np.ndarray, *, causal: bool) -> np.ndarray:
    """What a nearly flat softmax would give: a reference property exploited."""
    del k, causal
    mean = v.astype(np.float32).mean(axis=1, keepdims=True)
    return np.broadcast_to(mean.repeat(q.shape[2] // v.shape[2], axis=2), q.shape).astype(np.float16)


def drops_last_tile(q: np.ndarray, k: np.ndarray, v: np.ndarray, *, causal: bool) -> np.ndarray:
    return flash(q, k, v, causal=causal, tile=16, skip_last=True)


def fp16_accumulation(q: np.ndarray, k: np.ndarray, v: np.ndarray, *, causal: bool) -> np.ndarray:
    return flash(q, k, v, causal=causal, tile=16, accumulator=np.float16)


def wrong_heads(q: np.ndarray, k: np.ndarray, v: np.ndarray, *, causal: bool) -> np.ndarray:
    return flash(q, k, v, causal=causal, repeat_heads=False)


def leaves_nan(q: np.ndarray, k: np.ndarray, v: np.ndarray, *, causal: bool) -> np.ndarray:
    out = flash(q, k, v, causal=causal)
    out[0, 5, 1, 3] = np.nan
    return out


def failed_families(
    mutant: Mutant, dims: dict[str, int], families: tuple[str, ...] = ATTENTION.families, how: Numerics = HOW
) -> Iterator[str]:
    """Lazily: one family that fails is enough for a mutant."""
    for family in families:
        inputs = inputs_of(family, dims)
        with np.errstate(over="ignore", invalid="ignore"):
            output = mutant(*inputs, causal=bool(dims["causal"]))
        if not ATTENTION.compare(how, family, inputs, [output], dims).passed:
            yield family


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("seqlen", [64, 192])
def test_an_honest_flash_computation_passes_every_family(causal: int, seqlen: int) -> None:
    assert list(failed_families(honest, dims_of(causal=causal, seqlen=seqlen, heads=2))) == []


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("mutant", [zeros, constant, mean_of_values, drops_last_tile, wrong_heads, leaves_nan])
def test_a_mutant_fails(mutant: Mutant, causal: int) -> None:
    assert any(failed_families(mutant, dims_of(causal=causal)))


@pytest.mark.parametrize("causal", [0, 1])
def test_fp16_accumulation_fails(causal: int) -> None:
    dims = dims_of(causal=causal, seqlen=512, heads=2)
    assert any(failed_families(fp16_accumulation, dims, ("constant_runs", "large_offset")))


def skips_the_mask(q: np.ndarray, k: np.ndarray, v: np.ndarray, *, causal: bool) -> np.ndarray:
    del causal
    return flash(q, k, v, causal=False)


def test_a_skipped_mask_fails() -> None:
    assert any(failed_families(skips_the_mask, dims_of(causal=1)))


@pytest.mark.parametrize("off", ["dual_ratio", "floor"])
@pytest.mark.parametrize(
    "mutant", [zeros, constant, mean_of_values, drops_last_tile, wrong_heads, leaves_nan, skips_the_mask]
)
def test_a_mutant_fails_each_tolerance_by_itself(mutant: Mutant, off: str) -> None:
    """They add up, so that each could hide what the other sees."""
    assert any(failed_families(mutant, dims_of(causal=1), how=numerics(**{off: 0.0})))


def test_neither_tolerance_can_be_much_wider() -> None:
    """fp16 accumulation, the mutant that comes closest, would pass with either of them at ten times its size."""
    dims, families = dims_of(causal=1, seqlen=512, heads=2), ("constant_runs",)
    assert any(failed_families(fp16_accumulation, dims, families))
    for name, default in ATTENTION.tolerances.items():
        assert not any(failed_families(fp16_accumulation, dims, families, numerics(**{name: 10 * default})))


@pytest.mark.parametrize(
    "mutant", [zeros, constant, mean_of_values, drops_last_tile, wrong_heads, leaves_nan, skips_the_mask]
)
def test_a_mutant_fails_in_one_burst_of_timed_calls(mutant: Mutant) -> None:
    dims = dims_of(causal=1, seqlen=96)
    each = [inputs_of("normal", dims) for _ in range(2)]
    inputs = [np.stack(tensors) for tensors in zip(*each, strict=True)]
    output = np.stack([mutant(*tensors, causal=True) for tensors in each])
    chosen = ATTENTION.choose(Random(1), dims, [0, 1])
    copies = ATTENTION.snapshot(HOW, [output], chosen)
    rows = ATTENTION.compare_sampled(HOW, inputs, copies, chosen, dims)
    whole = ATTENTION.compare_whole(HOW, inputs, [output], slots=[0, 1], dims=dims, random=Random(0))
    assert not rows.passed or whole is not None


def test_causal_flop_count_is_half() -> None:
    assert ATTENTION.flops(dims_of(causal=1)) * 2 == ATTENTION.flops(dims_of(causal=0))
    assert ATTENTION.flops(dims_of(causal=0)) == 4 * 4 * 128 * 128 * 64


def test_heads_that_are_no_multiple_of_kv_heads_are_refused() -> None:
    with pytest.raises(ValueError, match="heads = 4 is not a multiple of kv_heads = 3"):
        ATTENTION.tensors({**dims_of(causal=1), "kv_heads": 3}, "fp16")


@pytest.mark.parametrize("causal", [0, 1])
def test_timed_checks_pass_honest_slots_and_catch_a_skipped_mask(causal: int) -> None:
    dims = dims_of(causal=causal, seqlen=96)
    each = [inputs_of("normal", dims) for _ in range(3)]
    inputs = [np.stack(tensors) for tensors in zip(*each, strict=True)]
    chosen = ATTENTION.choose(Random(1), dims, [2, 0])

    def passed(masked: int) -> bool:
        output = np.stack([flash(*tensors, causal=bool(masked)) for tensors in each])
        copies = ATTENTION.snapshot(HOW, [output], chosen)
        return ATTENTION.compare_sampled(HOW, inputs, copies, chosen, dims).passed

    assert passed(causal) is True
    assert passed(1 - causal) is False


def test_the_whole_output_is_searched_for_nan() -> None:
    dims = dims_of(causal=0, seqlen=64)
    inputs = [tensor[None] for tensor in inputs_of("normal", dims)]
    output = flash(*(tensor[0] for tensor in inputs), causal=False)[None]
    assert ATTENTION.compare_whole(HOW, inputs, [output], slots=[0], dims=dims, random=Random(0)) is None
    output[0, 0, 63, 3, 63] = np.nan
    found = ATTENTION.compare_whole(HOW, inputs, [output], slots=[0], dims=dims, random=Random(0))
    assert found is not None
    assert found.nan
