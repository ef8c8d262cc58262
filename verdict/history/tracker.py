"""The points of one mainline series, one after the other: steps told from outliers and from new segments."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import TypeAdapter

from verdict.history.points import Change, Outlier, Point, SegmentStart, Step
from verdict.history.stream import LEAST_SPREAD, MOST_RETURNS, Finding, Sample, Split, Stream, interval_of

# Stretches kept at a time: nodes take turns, and each has a level of its own.
_MOST_STREAMS = 8
_MOST_UNMEASURED = 200


@dataclass(frozen=True, kw_only=True)
class Pending:
    """The newest points are away from the level since `first`; too few to tell a step from an outlier."""

    first: str
    ratio: float
    points: int


@dataclass
class _State:
    """`streams`: by segment, the one that is under way last. `last`: the newest measured key."""

    streams: dict[str, Stream]
    segment: dict[str, str] | None = None
    last: str | None = None
    unmeasured: list[str] | None = None


_STATE: TypeAdapter[_State] = TypeAdapter(_State)


class Tracker:
    """`better`: which way values improve. `least`: the least change that matters, as a fraction: 0.005 is 0.5 %.

    `add` costs the same for every point. `dump` is the whole state as JSON values, `load` takes it back.
    """

    def __init__(self, *, better: Literal["lower", "higher"] = "lower", least: float = 0.005) -> None:
        self._sign = 1.0 if better == "lower" else -1.0
        self._least = math.log1p(least)
        self._state = _State(streams={})

    @classmethod
    def load(cls, state: Mapping[str, Any], *, better: Literal["lower", "higher"], least: float) -> Tracker:
        tracker = cls(better=better, least=least)
        tracker._state = _STATE.validate_python(state)
        return tracker

    def dump(self) -> dict[str, Any]:
        dumped: dict[str, Any] = _STATE.dump_python(self._state, mode="json")
        return dumped

    @property
    def pending(self) -> Pending | None:
        stream = self._stream
        if stream is None or stream.far == 0:
            return None
        away = stream.samples[-stream.far :]
        distance = sum(each.y for each in away) / len(away) - stream.level
        return Pending(first=away[0].key, ratio=math.exp(distance), points=len(away))

    def add(self, point: Point) -> list[Change]:
        """What this point makes certain, in the order in which it happened."""
        state = self._state
        if state.unmeasured is None:
            state.unmeasured = []
        if point.value is None or not (math.isfinite(point.value) and point.value > 0.0):
            state.unmeasured = [*state.unmeasured, point.key][-_MOST_UNMEASURED:]
            return []
        changes: list[Change] = []
        stream = self._stream
        if stream is None or point.segment != state.segment:
            segment = dict(sorted(point.segment.items()))
            if state.segment is not None:
                changes.append(SegmentStart(key=point.key, changed=changed_fields(state.segment, segment)))
            state.segment = segment
            stream = self._enter(segment)
        sample = Sample(
            y=self._sign * math.log(point.value),
            key=point.key,
            after=state.last or "",
            unmeasured=state.unmeasured,
        )
        state.last, state.unmeasured = point.key, []
        spread = point.spread if point.spread is not None and math.isfinite(point.spread) else 0.0
        found = stream.add(sample, least=self._least, floor=max(spread, LEAST_SPREAD))
        return [*changes, *self._taken(stream, found)]

    @property
    def _stream(self) -> Stream | None:
        return next(reversed(self._state.streams.values()), None)

    def _enter(self, segment: Mapping[str, str]) -> Stream:
        """The stream of the segment, now the newest; going back to an old driver goes on where it was."""
        streams = self._state.streams
        name = "\n".join(f"{key}={value}" for key, value in segment.items())
        stream = streams.pop(name, None) or Stream()
        streams[name] = stream
        while len(streams) > _MOST_STREAMS:
            del streams[next(iter(streams))]
        return stream

    def _taken(self, stream: Stream, found: Finding) -> list[Change]:
        changes: list[Change] = []
        if found.outliers:
            keys = tuple(each.key for each in found.outliers)
            changes.append(Outlier(keys=keys, ratio=math.exp(found.distance)))
        if found.split is not None:
            if stream.returns(found.split) >= MOST_RETURNS:
                stream.absorb()
            else:
                changes.append(self._step(stream, found.split))
                stream.restart(found.split)
        return changes

    def _step(self, stream: Stream, split: Split) -> Step:
        first, before = stream.samples[split.place], stream.samples[split.place - 1]
        low, high = interval_of(split)
        near = stream.samples[max(split.place - split.off, 1) : split.place + split.off + 1]
        # In a stretch that was left and entered again others lie between, which say nothing of this one.
        return Step(
            first=first.key,
            after=before.key,
            unmeasured=tuple(first.unmeasured) if first.after == before.key else (),
            perhaps=tuple(each.key for each in near if each is not first),
            ratio=math.exp(split.after - split.before),
            low=math.exp(low),
            high=math.exp(high),
            before_value=math.exp(self._sign * split.before),
            after_value=math.exp(self._sign * split.after),
            points=len(stream.samples) - split.place,
        )


def changes_of(
    points: Iterable[Point], *, better: Literal["lower", "higher"] = "lower", least: float = 0.005
) -> list[Change]:
    """All changes of a series; what `Tracker.add` gave for one point after the other."""
    tracker = Tracker(better=better, least=least)
    return [change for point in points for change in tracker.add(point)]


def changed_fields(before: Mapping[str, str], now: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Of two segments: name -> what it was, what it is; nothing is said as ""."""
    names = sorted({*before, *now})
    return {
        name: (before.get(name, ""), now.get(name, "")) for name in names if before.get(name, "") != now.get(name, "")
    }
