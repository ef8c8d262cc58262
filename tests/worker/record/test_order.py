from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.record.order import linear_order


def test_nodes_without_edges_keep_the_order_of_their_creation():
    assert linear_order(4, []) == [0, 1, 2, 3]


def test_a_fork_and_join_becomes_one_line():
    assert linear_order(4, [(3, 1), (3, 0), (1, 2), (0, 2)]) == [3, 0, 1, 2]


def test_an_edge_given_twice_counts_once():
    assert linear_order(2, [(1, 0), (1, 0)]) == [1, 0]


def test_a_cycle_is_an_error():
    with pytest.raises(ValueError, match="cycle"):
        linear_order(3, [(0, 1), (1, 2), (2, 1)])


@given(st.permutations(range(12)), st.sets(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=30))
def test_every_edge_points_forward(numbers, pairs):
    edges = [(numbers[min(a, b)], numbers[max(a, b)]) for a, b in pairs if a != b]
    order = linear_order(12, edges)
    assert sorted(order) == list(range(12))
    assert all(order.index(first) < order.index(second) for first, second in edges)
