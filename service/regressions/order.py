"""Revisions in the order of their kernel's history."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol

import sqlalchemy as sa
from sqlmodel import Session, col, select

from service.kernels import LAST, series_order
from service.models import Measurement, Revision

Key = tuple[int, int, str, str]


class Placed(Protocol):
    """A revision, or a row with these columns of one."""

    @property
    def id(self) -> str: ...
    @property
    def first_parent_index(self) -> int | None: ...
    @property
    def position(self) -> int | None: ...
    @property
    def created_at(self) -> datetime: ...


def key_of(revision: Placed) -> Key:
    """Comparable, and the same as JSON: (first-parent index, position, time, id), None last."""
    return (
        LAST if revision.first_parent_index is None else revision.first_parent_index,
        LAST if revision.position is None else revision.position,
        revision.created_at.isoformat(timespec="microseconds"),
        revision.id,
    )


def unmeasured_between(
    session: Session, *, after: Revision, until: Revision, series_ids: Sequence[str]
) -> list[Revision]:
    """Revisions of the mainline strictly between the two that have no value in any of the series, in order. None is of
    another provenance than `until`: such histories have no order among each other."""
    measured = (
        sa.select(col(Measurement.id))
        .where(
            col(Measurement.revision_id) == col(Revision.id),
            col(Measurement.series_id).in_(series_ids),
            col(Measurement.trusted).is_(True),
        )
        .exists()
    )
    place: Any = sa.tuple_(*series_order())
    query = (
        select(Revision)
        .where(
            Revision.kernel_id == until.kernel_id,
            col(Revision.mainline).is_(True),
            col(Revision.provenance).is_not_distinct_from(until.provenance),
            place > _bound(after),
            place < _bound(until),
            sa.not_(measured),
        )
        .order_by(*series_order())
        .limit(200)
    )
    return list(session.exec(query).all())


def _bound(revision: Revision) -> tuple[Any, ...]:
    return (*key_of(revision)[:2], revision.created_at, revision.id)
