"""FlashAttention-2 forward (Dao 2023, arXiv:2307.08691): one program computes a block of queries of one head.

Notes: scores live in registers, one block of keys at a time, so that no memory grows with seqlen^2. The accumulator is
rescaled when a row's running maximum grows and normalised once, after the loop. Every block of keys is masked here,
also those that lie wholly below the diagonal.
"""

import math

import triton
import triton.language as tl

BLOCK_M, BLOCK_N = 64, 64


@triton.jit
def attention_forward(
    q, k, v, o,
    q_batch, q_row, q_head, q_dim,
    k_batch, k_row, k_head, k_dim,
    v_batch, v_row, v_head, v_dim,
    o_batch, o_row, o_head, o_dim,
    heads, heads_per_kv, seqlen, scale,
    causal: tl.constexpr, head_dim: tl.constexpr, block_m: tl.constexpr, block_n: tl.constexpr,
):  # fmt: skip
    block = tl.program_id(0)
    batch = (tl.program_id(1) // heads).to(tl.int64)
    head = tl.program_id(1) % heads
    kv_head = head // heads_per_kv
    rows = block * block_m + tl.arange(0, block_m)
    cols = tl.arange(0, block_n)
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
    for start in range(0, end, block_n):
        at = start + cols
        keys = tl.load(k + at[None, :] * k_row + dims[:, None] * k_dim, mask=at[None, :] < seqlen, other=0.0)
        scores = tl.dot(queries, keys) * scale
        visible = at[None, :] < seqlen
        if causal:
            visible = visible & (at[None, :] <= rows[:, None])
        scores = tl.where(visible, scores, float("-inf"))
        new_peak = tl.maximum(peak, tl.max(scores, 1))  # finite: key 0 is visible to every row
        weights = tl.exp(scores - new_peak[:, None])
        shrink = tl.exp(peak - new_peak)
        total = total * shrink + tl.sum(weights, 1)
        values = tl.load(v + at[:, None] * v_row + dims[None, :] * v_dim, mask=at[:, None] < seqlen, other=0.0)
        acc = tl.dot(weights.to(values.dtype), values, acc * shrink[:, None])
        peak = new_peak

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
        heads, heads // k.shape[2], seqlen, 1.0 / math.sqrt(head_dim),
        causal=bool(params["causal"]), head_dim=head_dim, block_m=BLOCK_M, block_n=BLOCK_N,
        num_warps=4, num_stages=2,
    )  # fmt: skip
