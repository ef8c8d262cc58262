"""Keyset pages: a page ends with the key that the next one comes after, and a row more than was asked for tells whether
there is one."""

from collections.abc import Callable, Sequence
from typing import Annotated, TypeVar

from fastapi import Query

_Row = TypeVar("_Row")

Limit = Annotated[int, Query(ge=1, le=200)]
After = Annotated[str | None, Query(max_length=100, description="the `next` of the page before")]


def cut(rows: Sequence[_Row], limit: int, key: Callable[[_Row], str]) -> tuple[Sequence[_Row], str | None]:
    """The page, and the `after` of the next one. `rows` were read with a limit of one more."""
    return rows[:limit], key(rows[limit - 1]) if len(rows) > limit else None
