"""Answers kept while the history that they were made of stays as it is.

Exact, not timed: every transaction that adds to or reorders a kernel's history on a class gives its standing a new
version (service.standings), which is part of the key. Each process keeps its own.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

from sqlmodel import Session, col, select

from service.models import Standing

_Value = TypeVar("_Value")


class Kept(Generic[_Value]):
    """The `most` values that were used last, or as many as together weigh no more than that."""

    def __init__(self, most: int, *, weigh: Callable[[_Value], int] = lambda _value: 1) -> None:
        self._most = most
        self._weigh = weigh
        self._weight = 0
        self._values: OrderedDict[Hashable, _Value] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable) -> _Value | None:
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def put(self, key: Hashable, value: _Value) -> None:
        with self._lock:
            if key in self._values:
                self._weight -= self._weigh(self._values.pop(key))
            self._values[key] = value
            self._weight += self._weigh(value)
            while self._weight > self._most:
                self._weight -= self._weigh(self._values.popitem(last=False)[1])


def version_of(session: Session, *, kernel_id: str, device_class: str) -> str | None:
    """None where the mainline has no result yet: then nothing is to be kept. Read before what is kept is made: what
    changes in between leaves a new version and an answer that nobody asks for again."""
    query = select(Standing.version).where(
        col(Standing.kernel_id) == kernel_id, col(Standing.device_class) == device_class
    )
    return session.exec(query).first()
