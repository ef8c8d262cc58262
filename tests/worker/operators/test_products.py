import numpy as np

from worker.operators.products import ArrayProducts

RNG = np.random.default_rng(1)


def test_rows_are_multiplied_with_their_slots_vector_and_squared() -> None:
    matrices = RNG.standard_normal((4, 5, 7)).astype(np.float16)
    vectors = RNG.standard_normal((2, 7))
    products, squares = ArrayProducts(np.float64).with_vectors(matrices, (3, 1), vectors)
    wide = matrices.astype(np.float64)
    assert np.allclose(products, [wide[3] @ vectors[0], wide[1] @ vectors[1]], rtol=1e-12)
    assert np.allclose(squares, (wide[[3, 1]] ** 2).sum(axis=-1), rtol=1e-12)


def test_one_vector_serves_all_slots() -> None:
    matrices = RNG.standard_normal((3, 2, 6)).astype(np.float32)
    vector = RNG.standard_normal((1, 6))
    products, _ = ArrayProducts(np.float64).with_vectors(matrices, (2, 0), vector)
    assert np.allclose(products, matrices[[2, 0]].astype(np.float64) @ vector[0], rtol=1e-12)


def test_chosen_rows_are_multiplied_with_and_without_signs() -> None:
    left = RNG.standard_normal((3, 9, 4)).astype(np.float32)
    right = RNG.standard_normal((3, 4, 8)).astype(np.float32)
    rows = ((0, 8, 3, 3), (1, 2, 7, 0))
    products, absolutes = ArrayProducts(np.float64).of_rows(left, right, (2, 0), rows)
    a = np.stack([left[2, list(rows[0])], left[0, list(rows[1])]]).astype(np.float64)
    b = right[[2, 0]].astype(np.float64)
    assert np.allclose(products, a @ b, rtol=1e-12)
    assert np.allclose(absolutes, abs(a) @ abs(b), rtol=1e-12)
