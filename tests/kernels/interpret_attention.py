"""Run with TRITON_INTERPRET=1, in a process of its own: each revision on small cases, against float64 on the CPU.

Prints one JSON list of {revision, case, error, fp16_error}: largest errors, of the revision and of fp16 attention.
"""

import importlib.util
import json
import math
import sys
from pathlib import Path

import torch


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool) -> torch.Tensor:
    q, k, v = (tensor.transpose(1, 2) for tensor in (q, k, v))
    k, v = (tensor.repeat_interleave(q.shape[1] // k.shape[1], 1) for tensor in (k, v))
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), float("-inf"))
    return (scores.softmax(-1) @ v).transpose(1, 2)


def main() -> None:
    folders, cases = json.loads(sys.argv[1])
    found = []
    for folder in folders:
        spec = importlib.util.spec_from_file_location("revision", Path(folder) / "kernel.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for dims in cases:
            torch.manual_seed(dims["seqlen"])
            shape = (dims["batch"], dims["seqlen"], dims["heads"], dims["head_dim"])
            kv_shape = (dims["batch"], dims["seqlen"], dims["kv_heads"], dims["head_dim"])
            q, k, v = (torch.randn(s).half() for s in (shape, kv_shape, kv_shape))
            o = torch.full_like(q, float("nan"))
            module.run((q, k, v), (o,), dims, None)
            causal = bool(dims["causal"])
            exact = attention(q.double(), k.double(), v.double(), causal=causal)
            fp16 = attention(q, k, v, causal=causal)
            found.append(
                {
                    "revision": Path(folder).name,
                    "case": dims,
                    "error": (o.double() - exact).abs().max().item(),
                    "fp16_error": (fp16.double() - exact).abs().max().item(),
                }
            )
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
