"""A long line thinned to what a screen can show. M4 (Jugel et al., VLDB 2014): of each bucket of the axis the first,
the last, the least and the greatest value stay, which draws the same line on as many columns as there are buckets."""

from collections.abc import Sequence

_PER_BUCKET = 4


def thin(values: Sequence[float | None], *, kept: Sequence[bool], points: int) -> list[int]:
    """Places of `values` to show, in order: at most about `points` of those that have a value, and all that are `kept`.

    Buckets are equally wide stretches of places, gaps included. A None that isn't kept is dropped; where everything
    fits, nothing else is.
    """
    count = len(values)
    if count <= points:
        return [place for place in range(count) if kept[place] or values[place] is not None]
    buckets = max(1, points // _PER_BUCKET)
    shown: list[int] = []
    for bucket in range(buckets):
        places = range(bucket * count // buckets, (bucket + 1) * count // buckets)
        chosen = {place for place in places if kept[place]}
        known = [(value, place) for place in places if (value := values[place]) is not None]
        if known:
            chosen.update((known[0][1], known[-1][1], min(known)[1], max(known)[1]))
        shown += sorted(chosen)
    return shown
