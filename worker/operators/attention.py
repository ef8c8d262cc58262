"""attention: O = softmax(Q K^T / sqrt(head_dim)) V, fp16, prefill; Q, O (batch, seqlen, heads, head_dim); K, V the same
with kv_heads, which divides heads (GQA): query head h reads key head h // (heads / kv_heads). Causal: query i sees keys
up to i.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from types import ModuleType
from typing import Any

from contract.layout import Dtype, Role, TensorSpec
from worker.operators import families
from worker.operators.base import Compared, Dims, Numerics, ratio

BLOCK = 16  # queries
BLOCKS_A_BURST = 64  # at least, over all launched slots
SPECIAL = ("large_offset", "row_scales", "one_hot", "dominating_key", "constant_runs")


@dataclass(frozen=True)
class Blocks:
    """Query blocks: block i is queries [starts[i], starts[i] + size) of one batch and head of one slot."""

    slots: tuple[int, ...]
    batches: tuple[int, ...]
    heads: tuple[int, ...]
    starts: tuple[int, ...]
    size: int


class Attention:
    """Tolerances: `dual_ratio`: the largest error may be this many times that of PyTorch's own fp16 computation, plus
    `floor` times the largest change of adding and taking away 0.3 to the reference in fp16 (flash-attention's tests:
    tests/test_flash_attn.py, rtol 2 and fwd_atol 2).
    """

    name = "attention"
    families: tuple[str, ...] = (*families.PLAIN, *SPECIAL)
    exact: tuple[str, ...] = ()
    tolerances: Mapping[str, float] = {"dual_ratio": 2.0, "floor": 2.0}
    backends: Mapping[str, tuple[str, ...]] = {"cpu": ("default",), "cuda": ("flash", "cudnn")}
    baseline_writes_output = False

    def tensors(self, dims: Dims, dtype: Dtype) -> tuple[TensorSpec, ...]:
        if dims["heads"] % dims["kv_heads"]:
            raise ValueError(f"heads = {dims['heads']} is not a multiple of kv_heads = {dims['kv_heads']}")
        queries = (dims["batch"], dims["seqlen"], dims["heads"], dims["head_dim"])
        keys = (dims["batch"], dims["seqlen"], dims["kv_heads"], dims["head_dim"])
        return (
            TensorSpec(name="q", role=Role.INPUT, dtype=dtype, shape=queries),
            TensorSpec(name="k", role=Role.INPUT, dtype=dtype, shape=keys),
            TensorSpec(name="v", role=Role.INPUT, dtype=dtype, shape=keys),
            TensorSpec(name="o", role=Role.OUTPUT, dtype=dtype, shape=queries),
        )

    def flops(self, dims: Dims) -> float:
        """Two products of seqlen^2 head_dim; causal counted as half."""
        whole = 4.0 * dims["batch"] * dims["heads"] * dims["seqlen"] ** 2 * dims["head_dim"]
        return whole / 2 if dims["causal"] else whole

    def bytes_moved(self, dims: Dims, dtype: Dtype) -> float:
        return float(sum(tensor.bytes for tensor in self.tensors(dims, dtype)))

    def fill(self, xp: ModuleType, family: str, inputs: Sequence[Any], dims: Dims, seed: int) -> None:
        del dims  # the tensors have them all
        rng = families.generator(xp, seed)
        q, k, v = inputs
        if family in families.PLAIN:
            for tensor in inputs:
                tensor[...] = families.plain(xp, rng, family, tensor.shape)
        elif family == "large_offset":
            for tensor, offset in ((q, 2), (k, 2), (v, 8)):
                tensor[...] = families.normal(xp, rng, tensor.shape) + offset
        elif family == "row_scales":
            for tensor, octaves in ((q, 2), (k, 2), (v, 6)):
                tensor[...] = families.row_scales(xp, rng, tensor.shape, octaves)
        elif family == "one_hot":
            q[...] = 8 * families.one_hot(xp, rng, q.shape)
            k[...] = 8 * families.one_hot(xp, rng, k.shape)
            v[...] = families.normal(xp, rng, v.shape)
        elif family == "dominating_key":
            self._dominating_key(xp, rng, inputs)
        elif family == "constant_runs":
            self._constant_runs(xp, rng, inputs)
        else:
            raise ValueError(f"{family} is not an input family of attention")

    def _dominating_key(self, xp: ModuleType, rng: Any, inputs: Sequence[Any]) -> None:
        """Queries share a direction; one key a head lies along it, and takes nearly all the weight where it is seen."""
        q, k, v = inputs
        batch, seqlen, kv_heads, head_dim = k.shape
        direction = xp.sign(families.normal(xp, rng, (head_dim,)))
        q[...] = direction + families.normal(xp, rng, q.shape) / 4
        k[...] = families.normal(xp, rng, k.shape) / 4
        v[...] = families.normal(xp, rng, v.shape)
        places = rng.integers(0, seqlen, (batch, kv_heads))
        k[xp.arange(batch)[:, None], places, xp.arange(kv_heads)[None, :]] = (2 * direction).astype(k.dtype)

    def _constant_runs(self, xp: ModuleType, rng: Any, inputs: Sequence[Any]) -> None:
        """Equal keys have equal weights: long sums of the same term, which a short accumulator gets wrong."""
        q, *others = inputs
        q[...] = families.normal(xp, rng, q.shape)
        for tensor in others:
            batch, seqlen, heads, head_dim = tensor.shape
            places = xp.arange(seqlen) // max(1, seqlen // 4)
            values = families.normal(xp, rng, (batch, int(places[-1]) + 1, heads, head_dim))
            tensor[...] = values[:, places]

    def compare(
        self, how: Numerics, family: str, inputs: Sequence[Any], outputs: Sequence[Any], dims: Dims
    ) -> Compared:
        del family
        xp, (q, k, v), (o,) = how.xp, inputs, outputs
        group, seqlen = dims["heads"] // dims["kv_heads"], dims["seqlen"]
        step = max(1, how.scratch_bytes // (4 * group * seqlen * xp.dtype(how.work).itemsize))
        errors = []
        for batch in range(dims["batch"]):
            for kv_head in range(dims["kv_heads"]):
                heads = slice(kv_head * group, (kv_head + 1) * group)
                for start in range(0, seqlen, step):
                    rows = slice(start, min(start + step, seqlen))
                    queries = q[batch, rows, heads].transpose(1, 0, 2)
                    output = o[batch, rows, heads].transpose(1, 0, 2)
                    # Causal: no query of the block sees a key past its last one.
                    seen = slice(0, rows.stop if dims["causal"] else seqlen)
                    positions = xp.arange(start, rows.stop)[None] if dims["causal"] else None
                    found = _errors(
                        how,
                        queries=queries,
                        keys=k[batch, seen, kv_head],
                        values=v[batch, seen, kv_head],
                        output=output,
                        positions=positions,
                    )
                    errors.append(found)
        return _judged(errors, how)

    def choose(self, random: Random, dims: Dims, slots: Sequence[int]) -> Blocks:
        each = max(1, BLOCKS_A_BURST // max(1, len(slots)))
        chosen = [slot for slot in slots for _ in range(each)]
        size = min(BLOCK, dims["seqlen"])
        return Blocks(
            slots=tuple(chosen),
            batches=tuple(random.randrange(dims["batch"]) for _ in chosen),
            heads=tuple(random.randrange(dims["heads"]) for _ in chosen),
            starts=tuple(random.randrange(dims["seqlen"] - size + 1) for _ in chosen),
            size=size,
        )

    def snapshot(self, how: Numerics, outputs: Sequence[Any], chosen: Blocks) -> Any:
        return self._gather(how.xp, outputs[0], chosen)

    def compare_sampled(
        self, how: Numerics, inputs: Sequence[Any], snapshot: Any, chosen: Blocks, dims: Dims
    ) -> Compared:
        xp, (q, k, v) = how.xp, inputs
        group = dims["heads"] // dims["kv_heads"]
        queries = self._gather(xp, q, chosen)
        slots, batches = xp.asarray(chosen.slots), xp.asarray(chosen.batches)
        kv_heads, starts = xp.asarray(chosen.heads) // group, xp.asarray(chosen.starts)
        itemsize = xp.dtype(how.work).itemsize
        each = dims["seqlen"] * itemsize * (4 * chosen.size + 4 * dims["head_dim"])
        step = max(1, how.scratch_bytes // each)
        errors = []
        for at in range(0, len(chosen.slots), step):
            part = slice(at, at + step)
            keys, values = (tensor[slots[part], batches[part], :, kv_heads[part]] for tensor in (k, v))
            positions = starts[part, None] + xp.arange(chosen.size)[None] if dims["causal"] else None
            found = _errors(
                how, queries=queries[part], keys=keys, values=values, output=snapshot[part], positions=positions
            )
            errors.append(found)
        return _judged(errors, how)

    def _gather(self, xp: ModuleType, tensor: Any, chosen: Blocks) -> Any:
        """(blocks, size, head_dim) of a (slots, batch, seqlen, heads, head_dim) tensor, copied."""
        slots, batches, heads, starts = (
            xp.asarray(places)[:, None] for places in (chosen.slots, chosen.batches, chosen.heads, chosen.starts)
        )
        return tensor[slots, batches, starts + xp.arange(chosen.size)[None], heads]

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
        """A row of the output is a mean of rows of V: none is longer than the longest of them, and none is NaN."""
        del random
        xp, head_dim = how.xp, dims["head_dim"]
        ignored = xp.zeros((1, head_dim), how.work)
        lengths = []
        for view in (inputs[2], outputs[0]):
            _, squares = how.products.with_vectors(view.reshape(view.shape[0], -1, head_dim), slots, ignored)
            lengths.append(xp.sqrt(squares.max(axis=1)))
        longest, found = lengths
        # Each element is rounded once.
        bounds = longest * (1 + 2 * how.unit_roundoff) + math.sqrt(head_dim) * 2.0**-24
        share = float((found / bounds).max())
        if share <= 1.0:
            return None
        return Compared(
            error=float(found.max()),
            bound=float(bounds.max()),
            of_bound=math.inf,
            nan=math.isnan(share),
            what="a row longer than the longest value",
        )

    def baseline(self, torch: Any, backend: str, dims: Dims) -> Callable[[Sequence[Any], Sequence[Any]], None] | None:
        attend = torch.nn.functional.scaled_dot_product_attention
        causal, grouped = bool(dims["causal"]), dims["heads"] != dims["kv_heads"]

        def call(inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
            """SDPA has no `out`: its answer stays in torch's memory, and no copy is timed."""
            del outputs
            q, k, v = (tensor.transpose(1, 2) for tensor in inputs)
            with kernels(named):
                attend(q, k, v, is_causal=causal, enable_gqa=grouped)

        kernels = torch.nn.attention.sdpa_kernel
        named = {
            "flash": torch.nn.attention.SDPBackend.FLASH_ATTENTION,
            "cudnn": torch.nn.attention.SDPBackend.CUDNN_ATTENTION,
            "default": torch.nn.attention.SDPBackend.MATH,
        }[backend]
        return call


def _errors(how: Numerics, *, queries: Any, keys: Any, values: Any, output: Any, positions: Any) -> Any:
    """Largest errors of a block, as an array: of the kernel, of PyTorch's fp16 computation, and of rounding near the
    reference. Queries and output (..., r, d), keys and values (..., s, d); positions (..., r) where causal."""
    xp, work = how.xp, how.work
    visible = None if positions is None else xp.arange(keys.shape[-2]) <= positions[..., None]
    scale = 1 / math.sqrt(queries.shape[-1])
    keys_t, values = keys.astype(work).swapaxes(-1, -2), values.astype(work)
    exact = _softmax(xp, (queries.astype(work) * scale) @ keys_t, visible) @ values
    # PyTorch in fp16: products accumulate in fp32, every intermediate result is rounded to fp16.
    half, single = xp.float16, xp.float32
    scaled = (queries * half(scale)).astype(half)
    scores = (scaled.astype(work) @ keys_t).astype(half)
    weights = _softmax(xp, scores.astype(single), visible).astype(half)
    rounded = (weights.astype(work) @ values).astype(half)
    near = exact.astype(half)
    moved = ((near + half(0.3)).astype(half) - half(0.3)).astype(half)
    differences = (output.astype(work) - exact, rounded.astype(work) - exact, moved.astype(work) - near.astype(work))
    return xp.stack([abs(difference).max() for difference in differences])


def _softmax(xp: ModuleType, scores: Any, visible: Any) -> Any:
    if visible is not None:
        scores = xp.where(visible, scores, scores.dtype.type(-math.inf))
    scores = scores - scores.max(axis=-1, keepdims=True)
    weights = xp.exp(scores)
    return weights / weights.sum(axis=-1, keepdims=True)


def _judged(errors: list[Any], how: Numerics) -> Compared:
    # Read once: a GPU need not wait for each block.
    output, fp16, floor = zip(*how.xp.stack(errors).tolist(), strict=True)
    nan = any(math.isnan(error) for error in output)
    error = math.inf if nan else max(output)
    own = max((each for each in fp16 if not math.isnan(each)), default=0.0)
    bound = how.tolerances["dual_ratio"] * own + how.tolerances["floor"] * max(floor)
    return Compared(
        error=error, bound=bound, of_bound=ratio(error, bound), nan=nan, what="against PyTorch's own fp16 error"
    )


ATTENTION = Attention()
