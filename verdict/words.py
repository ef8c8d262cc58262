"""Ratios (time_head / time_base) said in words, with the digits that the interval supports."""

from __future__ import annotations

import math

# Per cent; beyond it nobody asks for the digits.
_MOST = 1000


def ratio_in_words(ratio: float | None, interval: tuple[float, float] | None = None) -> str:
    """'1.5 % faster' (takes 1.5 % less time), '12 % slower', 'the same'; 'unknown' without a ratio."""
    if ratio is None or not math.isfinite(ratio):
        return "unknown"
    change = 100.0 * (ratio - 1.0)
    text = f"{abs(change):.{_decimals(change, interval)}f}"
    if float(text) == 0.0:
        return "the same"
    return f"{text} % {'slower' if change > 0 else 'faster'}"


def span_in_words(low: float, high: float) -> str:
    """'0.2 % faster to 0.7 % slower': an interval of ratios, ends rounded outwards to a digit of its width."""
    width = 100.0 * (high - low)
    decimals = min(max(math.ceil(-math.log10(width)), 0), 3) if width > 0 else 3
    step = 10.0**decimals
    ends = [math.floor(100.0 * (low - 1.0) * step) / step, math.ceil(100.0 * (high - 1.0) * step) / step]
    numbers = [f"{abs(end):.{decimals}f}" if end <= _MOST else f"over {_MOST}" for end in ends]
    signs = ["faster" if end < 0 else "slower" for end in ends]
    if signs[0] == signs[1]:
        return f"{numbers[0]} to {numbers[1]} % {signs[1]}"
    return f"{numbers[0]} % {signs[0]} to {numbers[1]} % {signs[1]}"


def percent(fraction: float) -> str:
    """'0.5 %', '12 %': a fraction to two digits."""
    value = 100.0 * fraction
    if abs(value) >= 10.0:
        return f"{value:.0f} %"
    return f"{float(f'{value:.2g}'):g} %"


def _decimals(change: float, interval: tuple[float, float] | None) -> int:
    """The last digit is worth at least half the interval's width; without an interval, two digits."""
    if interval is None:
        return 0 if abs(change) >= 10.0 else 1
    half = 50.0 * (interval[1] - interval[0])
    if not math.isfinite(half):
        return 0
    return min(max(math.floor(-math.log10(half)), 0), 2) if half > 0 else 2
