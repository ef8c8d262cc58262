"""FlashAttention-2 forward (Dao 2023, arXiv:2307.08691): one program computes a block of queries of one head.

Notes: exp(x) is exp2(x log2 e) in hardware. With log2 e folded into the scale the maximum is kept in base 2, and scale
and subtraction are one multiply-add before the exp2, where there were two multiplications and a subtraction.
"""

import math

import triton
import triton.language as tl

BLOCK_M, BLOCK_N = 64, 64


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
    block = tl.program_id(0)
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


def run(inputs, outputs, params, workspace):
    """inputs: q (batch, seqlen, heads, head_dim), k, v (batch, seqlen, kv_heads, head_dim); outputs: o like q."""
    q, k, v = inputs
    (o,) = outputs
    batch, seqlen, heads, head_dim = q.shape
    grid = (triton.cdiv(seqlen, BLOCK_M), batch * heads)
    attention_forward[grid](
        q, k, v, o, *q.stride(), *k.stride(), *v.stride(), *o.stride(),
        heads, heads // k.shape[2], seqlen, math.log2(math.e) / math.sqrt(head_dim),
        causal=bool(params["causal"]), head_dim=head_dim, block_m=BLOCK_M, block_n=BLOCK_N,
        num_warps=4, num_stages=2,
    )  # fmt: skip
