"""How long a revision's processes are waited for in all: each answer may be in time, and their sum without end."""

from __future__ import annotations

from collections.abc import Callable


class Patience:
    """`heard` is called after each answer. One is shared by all launchers of a side."""

    def __init__(self, limit_s: float, heard: Callable[[], None]) -> None:
        self.limit_s = limit_s
        self._left_s, self._heard = limit_s, heard

    def spend(self, seconds: float) -> bool:
        """Whether any is left."""
        self._left_s -= seconds
        self._heard()
        return self._left_s > 0
