"""Change points of each series of the mainline, kept up to date one point at a time.

Followed are the ratio to the baseline and the absolute value: time, or throughput where there is no time. A step of
the absolute value alone is shown and blames nobody where the ratio says nothing happened: the card did it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, cast

import sqlalchemy as sa
from sqlmodel import Session, col, select

from service.kernels import series_order
from service.machine_code import compilers_of
from service.metrics import OVER_BASELINE, THROUGHPUT
from service.models import Attempt, Comparison, Evaluation, Kernel, Measurement, Revision, Series
from service.regressions.order import Key, key_of
from service.regressions.stepping import Taken, drop_vanished, take_steps
from service.regressions.tables import SeriesChange, SeriesTrack
from service.statics import NO_CASE
from verdict.history import Outlier, Point, SegmentStart, Step, Tracker, changed_fields

_FOLLOWED = (OVER_BASELINE, "time", THROUGHPUT)
_LEAST = 0.01
_PLACE = (col(Revision.id), col(Revision.first_parent_index), col(Revision.position), col(Revision.created_at))
# Environments that values of a series may not be compared across, beside the baseline and the protocol.
_SEGMENT_FIELDS = ("driver", "cuda")


@dataclass(frozen=True, kw_only=True)
class _Value:
    revision: str
    key: Key
    value: float
    segment: Mapping[str, str]


def advance(session: Session, kernel: Kernel, evaluation: Evaluation, *, revision: Revision) -> None:
    """Take the evaluation's values into their series. One that comes after all others costs the same however long the
    series is; one between others makes it stale, for `refresh_stale`."""
    session.flush()
    followed = _followed(session, kernel, device_class=evaluation.device_class)
    values = _values(session, followed, evaluation_id=evaluation.id)
    query = select(SeriesTrack).where(col(SeriesTrack.series_id).in_(values))
    tracks = {track.series_id: track for track in session.exec(query).all()}
    key = list(key_of(revision))
    steps: list[Taken] = []
    with session.no_autoflush:
        for series in followed:
            if series.id not in values:
                continue
            [value] = values[series.id]
            track = tracks.get(series.id)
            if track is None:
                # Its first point; or the series is older than what follows it, and may be long.
                others = _has_others(session, series, evaluation)
                _new_track(session, series, evaluation, stale=others)
                if not others:
                    rebuild(session, kernel, series)
            elif track.stale:
                continue
            elif track.last_key and key <= track.last_key:
                # The revision measured again says nothing new; one from between does.
                track.stale = track.stale or (key != track.last_key and not _known(session, series, evaluation))
            else:
                tracker = _tracker(series, track)
                steps += _steps(session, series, tracker, [value], least=track.least)
                track.state, track.last_key = tracker.dump(), key
    session.flush()
    if steps:
        take_steps(session, kernel, steps)


def rebuild(session: Session, kernel: Kernel, series: Series) -> None:
    """Work a series out from its values. Regressions that its steps are signs of stay what they are."""
    steps = _worked_out(session, series)
    take_steps(session, kernel, steps)
    drop_vanished(session, kernel, series, [each.row for each in steps])
    session.flush()


def rebuild_all(session: Session, kernel: Kernel) -> None:
    """All series of a kernel, their steps in the order of the history: what is a cause over many cases is seen as one
    before any of them is back."""
    classes = session.exec(select(Series.device_class).where(Series.kernel_id == kernel.id).distinct()).all()
    followed = [each for name in classes for each in _followed(session, kernel, device_class=name)]
    found = [(series, _worked_out(session, series)) for series in followed]
    take_steps(session, kernel, [step for _, steps in found for step in steps])
    for series, steps in found:
        drop_vanished(session, kernel, series, [each.row for each in steps])
    session.flush()


def _worked_out(session: Session, series: Series) -> list[Taken]:
    values = _values(session, [series]).get(series.id, [])
    session.execute(sa.delete(SeriesChange).where(col(SeriesChange.series_id) == series.id))
    track = session.get(SeriesTrack, series.id) or SeriesTrack(series_id=series.id, least=_LEAST)
    track.state, track.stale = {}, False
    tracker = _tracker(series, track)
    steps = _steps(session, series, tracker, values, least=track.least)
    track.state = tracker.dump()
    track.last_key = list(values[-1].key) if values else []
    session.add(track)
    session.flush()
    return steps


def stale_series(session: Session, *, limit: int) -> Sequence[str]:
    return session.exec(select(SeriesTrack.series_id).where(col(SeriesTrack.stale).is_(True)).limit(limit)).all()


def refresh_stale(session: Session, series_id: str) -> None:
    track = session.exec(select(SeriesTrack).where(SeriesTrack.series_id == series_id).with_for_update()).first()
    if track is None or not track.stale:
        return
    series = session.get_one(Series, series_id)
    rebuild(session, session.get_one(Kernel, series.kernel_id), series)


def tracker_of(session: Session, series: Series) -> Tracker | None:
    track = session.get(SeriesTrack, series.id)
    return _tracker(series, track) if track else None


def toolchain_changes(session: Session, series: Series) -> list[SeriesChange]:
    """Where another toolchain built the machine code of which the series is: values on either side aren't compared."""
    return [
        _row(series, SegmentStart(key=now.revision, changed=changed_fields(before.segment, now.segment)))
        for before, now in pairwise(_values(session, [series]).get(series.id, []))
        if before.segment != now.segment
    ]


def _steps(
    session: Session, series: Series, tracker: Tracker, values: Sequence[_Value], *, least: float
) -> list[Taken]:
    """What the values make certain is kept as rows; its steps are yet to be taken."""
    steps: list[Taken] = []
    for value in values:
        point = Point(key=value.revision, value=value.value, segment=value.segment)
        for change in tracker.add(point):
            row = _row(series, change)
            session.add(row)
            if isinstance(change, Step):
                steps.append(Taken(series=series, row=row, step=change, least=least))
    return steps


def _row(series: Series, change: Step | Outlier | SegmentStart) -> SeriesChange:
    if isinstance(change, Step):
        return SeriesChange(
            series_id=series.id,
            kind="step",
            revision_id=change.first,
            after_id=change.after,
            ratio=change.ratio,
            low=change.low,
            high=change.high,
            before_value=change.before_value,
            after_value=change.after_value,
        )
    if isinstance(change, Outlier):
        return SeriesChange(
            series_id=series.id,
            kind="outlier",
            revision_id=change.keys[0],
            ratio=change.ratio,
            changed={"revisions": list(change.keys)},
        )
    changed = {name: list(values) for name, values in change.changed.items()}
    return SeriesChange(series_id=series.id, kind="segment", revision_id=change.key, changed=changed)


def _tracker(series: Series, track: SeriesTrack) -> Tracker:
    better = cast("Literal['lower', 'higher']", series.better or "lower")
    if not track.state:
        return Tracker(better=better, least=track.least)
    return Tracker.load(track.state, better=better, least=track.least)


def _new_track(session: Session, series: Series, evaluation: Evaluation, *, stale: bool) -> None:
    allowed = session.exec(
        select(Comparison.allowed_slowdown).where(
            Comparison.evaluation_id == evaluation.id, Comparison.case == series.case
        )
    ).first()
    session.add(SeriesTrack(series_id=series.id, least=allowed or _LEAST, stale=stale))
    session.flush()


def _followed(session: Session, kernel: Kernel, *, device_class: str) -> list[Series]:
    rows = session.exec(
        select(Series).where(
            Series.kernel_id == kernel.id, Series.device_class == device_class, col(Series.metric).in_(_FOLLOWED)
        )
    ).all()
    timed = {row.case for row in rows if row.metric == "time"}
    return [row for row in rows if row.case and not (row.metric == THROUGHPUT and row.case in timed)]


def _has_others(session: Session, series: Series, evaluation: Evaluation) -> bool:
    query = select(Measurement.id).where(Measurement.series_id == series.id, Measurement.evaluation_id != evaluation.id)
    return session.exec(query.limit(1)).first() is not None


def _known(session: Session, series: Series, evaluation: Evaluation) -> bool:
    """Whether the revision has another value in the series."""
    return (
        session.exec(
            select(Measurement.id).where(
                Measurement.series_id == series.id,
                Measurement.revision_id == evaluation.revision_id,
                Measurement.evaluation_id != evaluation.id,
                col(Measurement.trusted).is_(True),
            )
        ).first()
        is not None
    )


def _values(session: Session, of: Sequence[Series], *, evaluation_id: str | None = None) -> dict[str, list[_Value]]:
    """Of each series, by its id: one a mainline revision, in order, by its newest evaluation; or that one's alone."""
    node = (
        sa.select(col(Attempt.node))
        .where(col(Attempt.evaluation_id) == col(Evaluation.id), col(Attempt.end) == "reported")
        .limit(1)
        .scalar_subquery()
    )
    query = (
        sa.select(
            *_PLACE,
            col(Revision.provenance),
            col(Measurement.series_id),
            col(Measurement.value),
            col(Evaluation.environment),
            col(Evaluation.protocol_version),
            col(Comparison.baseline),
            node.label("node"),
        )
        .select_from(Measurement)
        .join(Series, col(Series.id) == col(Measurement.series_id))
        .join(Revision, col(Revision.id) == col(Measurement.revision_id))
        .join(Evaluation, col(Evaluation.id) == col(Measurement.evaluation_id))
        .outerjoin(
            Comparison,
            sa.and_(col(Comparison.evaluation_id) == col(Evaluation.id), col(Comparison.case) == col(Series.case)),
        )
        .where(
            col(Measurement.series_id).in_([series.id for series in of]),
            col(Measurement.trusted).is_(True),
            col(Revision.mainline).is_(True),
        )
        .order_by(*series_order(), col(Evaluation.id))
    )
    if evaluation_id is not None:
        query = query.where(col(Measurement.evaluation_id) == evaluation_id)
    by_id = {series.id: series for series in of}
    found: dict[str, dict[str, _Value]] = {}
    for row in session.execute(query):
        value = _Value(revision=row.id, key=key_of(row), value=row.value, segment=_segment(by_id[row.series_id], row))
        # A newer evaluation of the revision takes the place of an older one's.
        found.setdefault(row.series_id, {})[row.id] = value
    return {series_id: list(values.values()) for series_id, values in found.items()}


def _segment(series: Series, row: Any) -> dict[str, str]:
    """What must be the same for two values of the series to be compared."""
    if series.case == NO_CASE:
        return compilers_of(row.environment)
    where = row.environment or {}
    segment = {name: str(where[name]) for name in _SEGMENT_FIELDS if where.get(name)}
    segment["protocol"] = str(row.protocol_version)
    if row.baseline:
        segment["baseline"] = row.baseline
    if row.provenance:
        segment["provenance"] = row.provenance
    if series.metric != OVER_BASELINE and row.node:
        segment["node"] = row.node
    return segment
