"""worker/operators/products.py on a GPU: every matrix is read once, where it lies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from worker.operators.products import SAMPLED_ROWS

_BLOCK = 256
_WARPS = _BLOCK // 32
_MOST_BLOCKS = 8192
_MAX_GRID_Y = 65_535


class CudaProducts:
    """Kernels of judge_kernels.cu, in the work dtype (float64 where the card is fast at it, else float32)."""

    def __init__(self, cupy: Any, module: Any, work: Any) -> None:
        self._xp, self._work = cupy, cupy.dtype(work)
        suffix = "f64" if self._work == cupy.float64 else "f32"
        self._rows_with_vectors = module.get_function(f"rows_with_vectors_{suffix}")
        self._sampled_rows = module.get_function(f"sampled_rows_{suffix}")

    def with_vectors(self, matrices: Any, slots: Sequence[int], vectors: Any) -> tuple[Any, Any]:
        xp, (_, rows, columns) = self._xp, matrices.shape
        _check(matrices)
        vectors = xp.ascontiguousarray(vectors, dtype=self._work)
        products = xp.empty((len(slots), rows), self._work)
        squares = xp.empty_like(products)
        blocks = min(_MOST_BLOCKS, math.ceil(len(slots) * rows / _WARPS))
        self._rows_with_vectors(
            (blocks,),
            (_BLOCK,),
            (
                xp.uint64(matrices.data.ptr),
                xp.uint64(matrices.strides[0]),
                xp.asarray(slots, dtype=xp.uint32),
                xp.uint32(len(slots)),
                xp.uint32(rows),
                xp.uint32(columns),
                xp.uint32(matrices.itemsize == 2),
                vectors,
                xp.uint64(columns if len(vectors) > 1 else 0),
                products,
                squares,
            ),
        )
        return products, squares

    def of_rows(self, left: Any, right: Any, slots: Sequence[int], rows: Sequence[Sequence[int]]) -> tuple[Any, Any]:
        xp, (_, k, columns) = self._xp, right.shape
        _check(left)
        _check(right)
        chosen = xp.asarray(rows, dtype=xp.uint32)
        if chosen.shape != (len(slots), SAMPLED_ROWS):
            raise ValueError(f"{SAMPLED_ROWS} rows of each slot are compared, not {chosen.shape}")
        products = xp.empty((len(slots), SAMPLED_ROWS, columns), self._work)
        absolutes = xp.empty_like(products)
        self._sampled_rows(
            (math.ceil(columns / _BLOCK), min(len(slots), _MAX_GRID_Y)),
            (_BLOCK,),
            (
                xp.uint64(left.data.ptr),
                xp.uint64(left.strides[0]),
                xp.uint64(right.data.ptr),
                xp.uint64(right.strides[0]),
                xp.asarray(slots, dtype=xp.uint32),
                xp.uint32(len(slots)),
                chosen,
                xp.uint32(k),
                xp.uint32(columns),
                xp.uint32(right.itemsize == 2),
                products,
                absolutes,
            ),
        )
        return products, absolutes


def _check(matrices: Any) -> None:
    _, _, columns = matrices.shape
    if matrices.strides[1:] != (columns * matrices.itemsize, matrices.itemsize):
        raise ValueError("matrices must be dense inside a slot")
