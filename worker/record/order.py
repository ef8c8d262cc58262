"""A captured graph as one linear order."""

from __future__ import annotations

import heapq
from collections.abc import Iterable


def linear_order(count: int, edges: Iterable[tuple[int, int]]) -> list[int]:
    """Nodes 0..count-1 so that every edge (before, after) points forward; ties in the order of creation.

    Branches that could have run beside each other run one after the other. Raises ValueError for a cycle.
    """
    after: list[list[int]] = [[] for _ in range(count)]
    waiting = [0] * count
    for first, second in set(edges):
        after[first].append(second)
        waiting[second] += 1
    ready = [node for node in range(count) if not waiting[node]]
    order = []
    while ready:
        node = heapq.heappop(ready)
        order.append(node)
        for successor in after[node]:
            waiting[successor] -= 1
            if not waiting[successor]:
                heapq.heappush(ready, successor)
    if len(order) != count:
        raise ValueError("the graph has a cycle")
    return order
