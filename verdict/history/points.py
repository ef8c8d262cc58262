"""What a history is made of, and what is found in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Point:
    """One revision of a mainline series. `value`: None where the revision failed or was not measured. `segment`: what
    starts a new segment where it changes (driver, CUDA, …), by name. `spread`: the standard deviation of ln(value)
    that its own samples show, where known."""

    key: str
    value: float | None
    segment: Mapping[str, str] = field(default_factory=dict)
    spread: float | None = None


@dataclass(frozen=True, kw_only=True)
class Step:
    """The level changed with `first` at the earliest, after `after`, which was the last one measured before;
    `unmeasured` lie between. Any of them but `after` may be the cause. `perhaps`: other measured points with which it
    may as well begin, as the noise lets no one tell.

    `ratio`: cost after / cost before, over 1 is slower. `before`, `after_value`: medians, in the series' unit.
    `low`, `high`: the ratio's interval at about 95 %. `points`: how many stood at the new level when it was found.
    """

    first: str
    after: str
    unmeasured: tuple[str, ...]
    perhaps: tuple[str, ...] = ()
    ratio: float
    low: float
    high: float
    before_value: float
    after_value: float
    points: int


@dataclass(frozen=True, kw_only=True)
class Outlier:
    """Points away from a level that the next ones returned to."""

    keys: tuple[str, ...]
    ratio: float


@dataclass(frozen=True, kw_only=True)
class SegmentStart:
    """From `key` on other things hold, so that values before and after are not compared. `changed`: name -> (before,
    now)."""

    key: str
    changed: Mapping[str, tuple[str, str]]


Change = Step | Outlier | SegmentStart
