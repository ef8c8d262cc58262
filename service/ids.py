"""Ids: prefixed, URL-safe, and sorted by the time at which they were made."""

import secrets
import time

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32, in ASCII order
_RANDOM_BITS = 78
_LENGTH = 26


def new_id(prefix: str) -> str:
    """`<prefix>_` and 26 characters: 52 bits of microseconds since 1970, then 78 random bits."""
    value = (time.time_ns() // 1000) << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS)
    return f"{prefix}_" + "".join(_ALPHABET[value >> 5 * place & 31] for place in reversed(range(_LENGTH)))
