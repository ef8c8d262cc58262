"""Compile a Triton kernel for cards that need not be here; prints the targets that worked."""

from __future__ import annotations

import os
import sys
import tempfile

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit  # type: ignore[untyped-decorator]
def _probe(x, out, n, block: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - Triton reads annotations
    at = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(out + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


def compile_for(capability: int) -> int:
    """Bytes of machine code."""
    signature = {"x": "*fp16", "out": "*fp16", "n": "i32", "block": "constexpr"}
    source = ASTSource(fn=_probe, signature=signature, constexprs={(3,): 128})
    return len(triton.compile(source, target=GPUTarget("cuda", capability, 32)).asm["cubin"])


def main(capabilities: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = folder  # what an earlier run compiled proves nothing
        print(" ".join(f"sm_{capability}" for capability in capabilities if compile_for(int(capability))))


if __name__ == "__main__":
    main(sys.argv[1:])
