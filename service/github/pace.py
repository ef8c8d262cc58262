"""How much of the gate's work goes on side by side."""

import time

# Checks and plans of different gates wait for GitHub side by side; GitHub asks for no more than 100 requests at once.
_MOST = 12
_BESIDE_DELIVERIES = 2
_LULL_S = 1.0


class Pace:
    """Less while deliveries come: GitHub waits ten seconds for their answers and for nothing else."""

    def __init__(self) -> None:
        self._came_at = float("-inf")

    def delivery_came(self) -> None:
        self._came_at = time.monotonic()

    @property
    def at_once(self) -> int:
        return _BESIDE_DELIVERIES if time.monotonic() - self._came_at < _LULL_S else _MOST
