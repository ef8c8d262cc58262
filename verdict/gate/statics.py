"""Limits on what the machine code says of itself."""

from __future__ import annotations

from collections.abc import Sequence

from contract.devices import DeviceClass
from contract.statics import FunctionStatics
from contract.suite import StaticLimit, StaticMetric
from verdict.words import percent

# These are of each function by itself; the others add up.
_LARGEST: frozenset[StaticMetric] = frozenset({"registers", "stack_bytes", "shared_bytes"})
_NAMES: dict[StaticMetric, tuple[str, str]] = {
    "registers": ("registers", ""),
    "spill_bytes": ("spills", " bytes"),
    "spill_store_bytes": ("spill stores", " bytes"),
    "spill_load_bytes": ("spill loads", " bytes"),
    "stack_bytes": ("stack", " bytes"),
    "shared_bytes": ("shared memory", " bytes"),
    "code_bytes": ("code", " bytes"),
}


def static_value(statics: Sequence[FunctionStatics], metric: StaticMetric) -> int | None:
    """Over all functions: the largest, or the sum; None where no function says it."""
    values = [value for each in statics if (value := _of(each, metric)) is not None]
    if not values:
        return None
    return max(values) if metric in _LARGEST else sum(values)


def _of(statics: FunctionStatics, metric: StaticMetric) -> int | None:
    if metric == "spill_bytes":
        moved = [statics.spill_store_bytes, statics.spill_load_bytes]
        return None if moved == [None, None] else sum(value or 0 for value in moved)
    value: int | None = getattr(statics, metric)
    return value


def applies(limit: StaticLimit, *, device_class: DeviceClass, statics: Sequence[FunctionStatics]) -> bool:
    """Where no classes are named: on those whose machine code is read at all."""
    return device_class in limit.device_classes if limit.device_classes else bool(statics)


def excess(limit: StaticLimit, *, head: int, base: int | None) -> str | None:
    """What is over the limit, in words; None where nothing is. Without a base there is no growth."""
    name, unit = _NAMES[limit.metric]
    if limit.at_most is not None and head > limit.at_most:
        return f"{name}: {head}{unit}, at most {limit.at_most} allowed"
    if limit.growth is not None and base is not None and head > base * (1.0 + limit.growth):
        grown = f"{percent(head / base - 1.0)} more than" if base else "up from"
        allowed = percent(limit.growth) if limit.growth else "no growth"
        return f"{name}: {head}{unit}, {grown} the base's {base} ({allowed} allowed)"
    return None
