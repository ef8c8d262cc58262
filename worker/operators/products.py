"""Products of many slots' matrices that a check needs, without copies of the matrices.

NumPy's are here; a GPU has kernels of its own (worker/gpu/products.py), as array expressions would read and write every
matrix several times over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

SAMPLED_ROWS = 4


class Products(Protocol):
    """Matrices are views of shape (slots, rows, columns), fp16 or fp32; results are in the work dtype."""

    def with_vectors(self, matrices: Any, slots: Sequence[int], vectors: Any) -> tuple[Any, Any]:
        """For the chosen slots: each row's product with its slot's vector, and its sum of squares, both (chosen, rows).

        vectors: (chosen, columns), or (1, columns) where all share one.
        """

    def of_rows(self, left: Any, right: Any, slots: Sequence[int], rows: Sequence[Sequence[int]]) -> tuple[Any, Any]:
        """For the chosen slots, SAMPLED_ROWS rows of left @ right and of |left| @ |right|: (chosen, rows, columns)."""


class ArrayProducts:
    """On a CPU, slot by slot: a laptop's cache holds one slot's matrices, not all of them."""

    def __init__(self, work: Any) -> None:
        self._work = work

    def with_vectors(self, matrices: Any, slots: Sequence[int], vectors: Any) -> tuple[Any, Any]:
        shape = (len(slots), matrices.shape[1])
        products, squares = np.empty(shape, self._work), np.empty(shape, self._work)
        for place, slot in enumerate(slots):
            matrix = matrices[slot].astype(self._work)
            products[place] = matrix @ vectors[place if len(vectors) > 1 else 0]
            squares[place] = np.einsum("ij,ij->i", matrix, matrix)
        return products, squares

    def of_rows(self, left: Any, right: Any, slots: Sequence[int], rows: Sequence[Sequence[int]]) -> tuple[Any, Any]:
        shape = (len(slots), len(rows[0]), right.shape[2])
        products, absolutes = np.empty(shape, self._work), np.empty(shape, self._work)
        for place, (slot, chosen) in enumerate(zip(slots, rows, strict=True)):
            some, matrix = left[slot, list(chosen)].astype(self._work), right[slot].astype(self._work)
            products[place] = some @ matrix
            absolutes[place] = abs(some) @ abs(matrix)
        return products, absolutes
