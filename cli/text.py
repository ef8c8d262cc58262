"""Numbers and names as people read them. Pure functions: no terminal, no Rich."""

from __future__ import annotations

import math

from contract.text import one_line


def decimals(value: float, low: float | None, high: float | None) -> int:
    """Digits after the point that the interval supports: half its width has one digit left, the value at least one.

    Without an interval four significant digits are shown.
    """
    leading = math.floor(math.log10(abs(value))) if value and math.isfinite(value) else 0
    if low is None or high is None or not 0 < high - low < math.inf:
        return max(0, min(6, 3 - leading)) if value and math.isfinite(value) else 0
    one_digit = float(f"{(high - low) / 2:.0e}")
    return max(0, min(6, max(-math.floor(math.log10(one_digit)), -leading)))


def number(value: float | None, low: float | None = None, high: float | None = None) -> str:
    if value is None:
        return ""
    return f"{value:.{decimals(value, low, high)}f}"


def ratio_with_interval(ratio: float | None, interval: tuple[float, float] | None) -> str:
    """`0.9852 [0.9845, 0.9859]`: time_head / time_base."""
    if ratio is None:
        return ""
    if interval is None:
        return number(ratio)
    low, high = interval
    places = max(1, decimals(ratio, low, high))
    return f"{ratio:.{places}f} [{low:.{places}f}, {high:.{places}f}]"


def case_name(case: str) -> str:
    """`m=1024,n=1024,k=1024` as `1024^3`; an id of no known operator stays as it is."""
    pairs = dict(part.split("=", 1) for part in case.split(",") if "=" in part)
    match pairs:
        case {"m": m, "n": n, "k": k, **rest} if not rest:
            return f"{m}^3" if m == n == k else f"{m}x{n}x{k}"
        case {
            "batch": batch,
            "heads": heads,
            "kv_heads": kv_heads,
            "seqlen": seqlen,
            "head_dim": head_dim,
            "causal": causal,
        }:
            grouped = heads if heads == kv_heads else f"{heads}/{kv_heads}"
            return f"b{batch} h{grouped} s{seqlen} d{head_dim}" + (" causal" if causal == "1" else "")
    return one_line(case)


def duration(seconds: float) -> str:
    if seconds < 0.0995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 99.5:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min"


def file_size(size: float) -> str:
    """`32 KiB`, `9.1 KiB`, `512 B`."""
    if size < 1024:
        return f"{size:.0f} B"
    for unit in ("KiB", "MiB", "GiB"):
        size /= 1024
        if size < 1024 or unit == "GiB":
            return f"{size:.1f}".removesuffix(".0") + f" {unit}"
    raise AssertionError


def many(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
