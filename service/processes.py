"""What a chart shows of the processes of a comparison."""

import statistics
from collections.abc import Iterable

from contract.samples import Pair


def process_medians(pairs: Iterable[Pair]) -> list[list[float]]:
    """[median of the base's calls, median of the head's], a pair each; without pairs that have no call on a side."""
    made = []
    for pair in pairs:
        base = [time for each in pair.rounds for time in each.base]
        head = [time for each in pair.rounds for time in each.head]
        if base and head:
            made.append([statistics.median(base), statistics.median(head)])
    return made
