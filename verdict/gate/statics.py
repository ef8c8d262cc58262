"""Limits on what the machine code says of itself, architecture by architecture."""

from __future__ import annotations

from collections.abc import Sequence

from contract.devices import DeviceClass
from contract.statics import FunctionStatics, StaticMetric, static_value
from contract.suite import StaticLimit
from verdict.words import percent

_BYTES = {
    "spill_bytes": "spills",
    "spill_store_bytes": "spill stores",
    "spill_load_bytes": "spill loads",
    "stack_bytes": "stack",
    "shared_bytes": "shared memory",
    "static_shared_bytes": "static shared memory",
    "dynamic_shared_bytes": "dynamic shared memory",
    "code_bytes": "code",
}


def applies(limit: StaticLimit, *, device_class: DeviceClass, statics: Sequence[FunctionStatics]) -> bool:
    """Where no classes are named: on those whose machine code is read at all."""
    return device_class in limit.device_classes if limit.device_classes else bool(statics)


def unknown(
    limit: StaticLimit, head: Sequence[FunctionStatics], base: Sequence[FunctionStatics], *, base_label: str | None
) -> str | None:
    """What the limit asks for and nobody said; None where it can be decided. Without a base there is no growth."""
    name, _ = words_of(limit.metric)
    if static_value(head, limit.metric) is None:
        return f"the machine code doesn't say its {name}"
    if limit.growth is not None and base_label is not None and static_value(base, limit.metric) is None:
        return f"{base_label}'s {name} by the same toolchain isn't known, so growth can't be told"
    return None


def excess(limit: StaticLimit, head: Sequence[FunctionStatics], base: Sequence[FunctionStatics]) -> str | None:
    """What is over the limit, in words; None where nothing is, or nothing is known."""
    name, unit = words_of(limit.metric)
    now, before = static_value(head, limit.metric), static_value(base, limit.metric)
    if now is None:
        return None
    if limit.at_most is not None and now > limit.at_most:
        return f"{name}: {now}{unit}, at most {limit.at_most} allowed"
    if limit.growth is not None and before is not None and now > before * (1.0 + limit.growth):
        grown = f"{percent(now / before - 1.0)} more than" if before else "up from"
        allowed = percent(limit.growth) if limit.growth else "no growth"
        return f"{name}: {now}{unit}, {grown} the base's {before} ({allowed} allowed)"
    return None


def words_of(metric: StaticMetric) -> tuple[str, str]:
    """Its name, and its unit after a number."""
    name = _BYTES.get(metric)
    return (name, " bytes") if name else (metric.replace("_", " "), "")
