"""FlashAttention-2 forward (Dao 2023, arXiv:2307.08691): one program computes a block of queries of one head.

Notes: tiles, warps and stages by architecture and shape (see `tiles`). Larger ones reuse each key and value for more
queries, and a warpgroup's matrix instruction wants 64 rows for each 4 warps. For causal attention the blocks with the
longest key loops start first, so that none of them is left to run alone at the end.
"""

import math
from typing import NamedTuple

import triton
import triton.language as tl


@triton.jit
def attend(
    acc, total, peak, queries, k, v, k_row, k_dim, v_row, v_dim, rows, first, last, seqlen, scale_log2,
    masked: tl.constexpr, causal: tl.constexpr, head_dim: tl.constexpr, block_n: tl.constexpr,
):  # fmt: skip
    """Online softmax over the keys from `first` to `last`; `masked` where not every query sees every key."""
    cols = tl.arange(0, block_n)
    dims = tl.arange(0, head_dim)
    for start in range(first, last, block_n):
        at = start + cols
        from_k = k + at[None, :] * k_row + dims[:, None] * k_dim
        keys = tl.load(from_k, mask=at[None, :] < seqlen, other=0.0) if masked else tl.load(from_k)
        scores = tl.dot(queries, keys)
        if masked:
            visible = at[None, :] < seqlen
            if causal:
                visible = visible & (at[None, :] <= rows[:, None])
            scores = tl.where(visible, scores, float("-inf"))
        new_peak = tl.maximum(peak, tl.max(scores, 1) * scale_log2)  # finite: key 0 is visible to every row
        weights = tl.math.exp2(scores * scale_log2 - new_peak[:, None])
        shrink = tl.math.exp2(peak - new_peak)
        total = total * shrink + tl.sum(weights, 1)
        from_v = v + at[:, None] * v_row + dims[None, :] * v_dim
        values = tl.load(from_v, mask=at[:, None] < seqlen, other=0.0) if masked else tl.load(from_v)
        acc = tl.dot(weights.to(values.dtype), values, acc * shrink[:, None])
        peak = new_peak
    return acc, total, peak


@triton.jit
def attention_forward(
    q, k, v, o,
    q_batch, q_row, q_head, q_dim,
    k_batch, k_row, k_head, k_dim,
    v_batch, v_row, v_head, v_dim,
    o_batch, o_row, o_head, o_dim,
    heads, heads_per_kv, seqlen, scale_log2,
    causal: tl.constexpr, head_dim: tl.constexpr, block_m: tl.constexpr, block_n: tl.constexpr,
):  # fmt: skip
    block = tl.num_programs(0) - 1 - tl.program_id(0) if causal else tl.program_id(0)
    batch = (tl.program_id(1) // heads).to(tl.int64)
    head = tl.program_id(1) % heads
    kv_head = head // heads_per_kv
    rows = block * block_m + tl.arange(0, block_m)
    dims = tl.arange(0, head_dim)

    q += batch * q_batch + head * q_head
    k += batch * k_batch + kv_head * k_head
    v += batch * v_batch + kv_head * v_head
    o += batch * o_batch + head * o_head
    queries = tl.load(q + rows[:, None] * q_row + dims[None, :] * q_dim, mask=rows[:, None] < seqlen, other=0.0)

    acc = tl.zeros((block_m, head_dim), tl.float32)
    total = tl.zeros((block_m,), tl.float32)
    peak = tl.full((block_m,), float("-inf"), tl.float32)
    end = tl.minimum(seqlen, (block + 1) * block_m) if causal else seqlen
    seen_by_all = tl.minimum(seqlen, block * block_m + 1) if causal else seqlen
    whole = seen_by_all // block_n * block_n
    acc, total, peak = attend(
        acc, total, peak, queries, k, v, k_row, k_dim, v_row, v_dim, rows, 0, whole, seqlen, scale_log2,
        False, causal, head_dim, block_n,
    )  # fmt: skip
    acc, total, peak = attend(
        acc, total, peak, queries, k, v, k_row, k_dim, v_row, v_dim, rows, whole, end, seqlen, scale_log2,
        True, causal, head_dim, block_n,
    )  # fmt: skip

    acc = acc / total[:, None]
    tl.store(o + rows[:, None] * o_row + dims[None, :] * o_dim, acc.to(o.dtype.element_ty), mask=rows[:, None] < seqlen)


class Tiles(NamedTuple):
    block_m: int
    block_n: int
    warps: int
    stages: int


def tiles(architecture: int, seqlen: int, *, causal: bool) -> Tiles:
    """By what fits the shared memory of compute capability `architecture` (89: 99 KiB a block, 90 and up: 227 KiB).

    A short causal sequence has few blocks, most of them cut by the diagonal: smaller ones waste less (H200, seqlen 512:
    40 us against 50 us; at 2048 the larger ones lose 2 % to v2, from 4096 they win).
    """
    if architecture < 90:
        return Tiles(128, 64, 8, 2)
    return Tiles(64, 64, 4, 3) if causal and seqlen <= 1024 else Tiles(128, 128, 8, 3)


def architecture() -> int:
    """Compute capability as Triton's driver says it; 0 in the interpreter, where there is no GPU."""
    try:
        return int(triton.runtime.driver.active.get_current_target().arch)
    except RuntimeError:
        return 0


def run(inputs, outputs, params, workspace):
    """inputs: q (batch, seqlen, heads, head_dim), k, v (batch, seqlen, kv_heads, head_dim); outputs: o like q."""
    q, k, v = inputs
    (o,) = outputs
    batch, seqlen, heads, head_dim = q.shape
    causal = bool(params["causal"])
    tile = tiles(architecture(), seqlen, causal=causal)
    grid = (triton.cdiv(seqlen, tile.block_m), batch * heads)
    attention_forward[grid](
        q, k, v, o, *q.stride(), *k.stride(), *v.stride(), *o.stride(),
        heads, heads // k.shape[2], seqlen, math.log2(math.e) / math.sqrt(head_dim),
        causal=causal, head_dim=head_dim, block_m=tile.block_m, block_n=tile.block_n,
        num_warps=tile.warps, num_stages=tile.stages,
    )  # fmt: skip
