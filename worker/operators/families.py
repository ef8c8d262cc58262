"""Draws that the operators' input families are made of, as float32 arrays."""

from __future__ import annotations

from types import ModuleType
from typing import Any

PLAIN = ("normal", "uniform", "heavy_tailed", "signed_zeros")


def generator(xp: ModuleType, seed: int) -> Any:
    return xp.random.default_rng(seed)


def normal(xp: ModuleType, rng: Any, shape: tuple[int, ...]) -> Any:
    return rng.standard_normal(shape, dtype=xp.float32)


def uniform(xp: ModuleType, rng: Any, shape: tuple[int, ...]) -> Any:
    """[-1, 1)."""
    return 2 * rng.random(shape, dtype=xp.float32) - 1


def heavy_tailed(xp: ModuleType, rng: Any, shape: tuple[int, ...]) -> Any:
    """Normal with log-normal scales, cut off at 64 so that sums of 8192 products stay far inside fp16."""
    return xp.clip(normal(xp, rng, shape) * xp.exp(normal(xp, rng, shape)), -64, 64)


def signed_zeros(xp: ModuleType, rng: Any, shape: tuple[int, ...]) -> Any:
    """Half of the elements are +0 or -0."""
    values = normal(xp, rng, shape)
    keep = rng.random(shape, dtype=xp.float32) < 0.5
    return xp.where(keep, values, xp.copysign(xp.float32(0), values))


def plain(xp: ModuleType, rng: Any, family: str, shape: tuple[int, ...]) -> Any:
    draws = {"normal": normal, "uniform": uniform, "heavy_tailed": heavy_tailed, "signed_zeros": signed_zeros}
    return draws[family](xp, rng, shape)


def row_scales(xp: ModuleType, rng: Any, shape: tuple[int, ...], octaves: int) -> Any:
    """Normal rows (last axis), each scaled by its own power of two from 2^-octaves to 2^octaves."""
    exponents = rng.integers(-octaves, octaves + 1, (*shape[:-1], 1))
    return normal(xp, rng, shape) * xp.exp2(exponents.astype(xp.float32))


def one_hot(xp: ModuleType, rng: Any, shape: tuple[int, ...]) -> Any:
    """One 1 in each row (last axis), at a random place."""
    places = rng.integers(0, shape[-1], (*shape[:-1], 1))
    return (xp.arange(shape[-1]) == places).astype(xp.float32)


def bits(xp: ModuleType, rng: Any, shape: tuple[int, ...]) -> Any:
    return rng.integers(0, 2, shape).astype(xp.float32)
