"""The judge's random numbers, none of which says anything about another.

Much of what is drawn is seen by submissions: guard patterns, poison, the order of slots. From 2.5 kB of Python's own
generator everything that follows can be computed: the inputs of the next burst, the rows that will be compared.
"""

from __future__ import annotations

import hashlib
from random import Random

# A digest of so many bytes serves many small draws: a burst of short calls takes tens of thousands.
_BLOCK_BYTES = 4096


class SecretRandom(Random):
    """SHAKE-256 of a key and a counter, each byte drawn once. All of Random's methods draw from it."""

    def __init__(self, key: int) -> None:
        self._key = key.to_bytes(16, "little")
        self._blocks = 0
        self._block, self._at = b"", 0
        super().__init__(0)

    def random(self) -> float:
        return self.getrandbits(53) / 2**53

    def getrandbits(self, k: int, /) -> int:
        size = (k + 7) // 8
        end = self._at + size
        if end > len(self._block):
            self._blocks += 1
            counted = self._key + self._blocks.to_bytes(8, "little")
            self._block, end = hashlib.shake_256(counted).digest(max(size, _BLOCK_BYTES)), size
            self._at = 0
        drawn = self._block[self._at : end]
        self._at = end
        return int.from_bytes(drawn, "little") >> (8 * size - k)

    def seed(self, *_: object, **__: object) -> None:
        """The key is the seed."""
