"""Column types that mean the same on SQLite and PostgreSQL, and the ids' and times' defaults."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import DateTime, Dialect
from sqlalchemy.types import TypeDecorator
from sqlmodel import Field

from service.ids import new_id


class UtcDateTime(TypeDecorator[datetime]):
    """An aware datetime in UTC. SQLite keeps no time zone: taken off on the way in, put back on the way out."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a time needs its time zone")
        moment = value.astimezone(UTC)
        return moment.replace(tzinfo=None) if dialect.name == "sqlite" else moment

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        del dialect
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def now() -> datetime:
    return datetime.now(UTC)


def _make_id(prefix: str) -> Callable[[], str]:
    return lambda: new_id(prefix)


def id_field(prefix: str) -> Any:
    return Field(default_factory=_make_id(prefix), primary_key=True, max_length=40)


def reference(target: str, *, index: bool = True) -> Any:
    return Field(foreign_key=target, index=index, max_length=40)


def optional_reference(target: str, *, index: bool = True) -> Any:
    return Field(default=None, foreign_key=target, index=index, max_length=40)


def time_field() -> Any:
    return Field(default_factory=now, sa_type=UtcDateTime, nullable=False)


def optional_time_field() -> Any:
    return Field(default=None, sa_type=UtcDateTime, nullable=True)
