"""How many calls a burst has, on how many slots, and how many bursts a round."""

from __future__ import annotations

import math
from dataclasses import dataclass

BURST_US = 20_000.0
# The ratio to the baseline is a metric and no evidence; its calls are captured anew for each burst, by torch.
BASELINE_BURST_US = 5_000.0
# A turn under a power cap, of which the first half is discarded: the governor has settled by then.
CAPPED_TURN_US = 500_000.0
# Between two bursts the card rests for some 40 ms of draws and checks: under a power cap bursts are long, or it
# would hardly be capped.
CAPPED_BURST_US = 100_000.0
CACHES = 4  # a burst's slots together exceed the cache this many times
_MOST_BURSTS = 4
_SPARE = 8  # one slot in so many stays untouched
_LONG_CALL_US = 100_000.0


@dataclass(frozen=True)
class Plan:
    """`calls` of each burst on the slots [0, pool); a throw-away burst of `warm_calls` on [pool, pool + warm_pool).

    bursts: of each side in a round, balanced (ABBA needs an even number; a single one alternates from pair to pair).
    """

    calls: int
    pool: int
    warm_calls: int
    warm_pool: int
    bursts: int

    @property
    def slots(self) -> int:
        return self.pool + self.warm_pool


def plan(
    *,
    fast_us: float,
    slow_us: float,
    slot_bytes: int,
    arena_bytes: int,
    cache_bytes: int,
    burst_us: float = BURST_US,
) -> Plan:
    """For calls of these times (the faster and the slower side's).

    The number of calls is the same for both sides, so that what a burst's start-up costs is the same share: about
    `burst_us` for the faster side, up to three times that for the slower.
    """
    room = arena_bytes // slot_bytes
    most = max(1, (room - 2) * _SPARE // (_SPARE + 2))
    wanted = max(1, round(burst_us / max(fast_us, slow_us / 3)))
    # Every slot is met once, but memory that a burst fits into would still be warm from the draw.
    cold = math.ceil(CACHES * cache_bytes / slot_bytes)
    wanted = max(wanted, min(cold, round(5 * burst_us / slow_us)))
    calls = min(wanted, most)
    pool = min(room, calls + max(1, calls // _SPARE))
    left = room - pool
    warm_calls = 0 if slow_us > burst_us else min(left - 1, max(1, calls // _SPARE))
    warm_calls = max(0, warm_calls)
    short = burst_us / (calls * fast_us)
    bursts = min(_MOST_BURSTS, max(2, 2 * round(short / 2)))
    return Plan(
        calls=calls,
        pool=pool,
        warm_calls=warm_calls,
        warm_pool=warm_calls + 1 if warm_calls else 0,
        bursts=1 if slow_us > _LONG_CALL_US else bursts,
    )
