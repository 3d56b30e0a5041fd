"""Values of nested lists, tuples and dicts."""

from __future__ import annotations

from collections import namedtuple

from graphdock_std.structures import leaves, mapped

Pair = namedtuple("Pair", "a b")


def test_leaves_in_order_and_the_same_structure_back():
    given = {"b": [1, (2, Pair(3, None))], "a": 4}
    assert list(leaves(given)) == [4, 1, 2, 3, None] and list(leaves(7)) == [7] and list(leaves([])) == []
    made = mapped(lambda v: v and v * 10, given)
    assert made == {"b": [10, (20, Pair(30, None))], "a": 40} and type(made["b"][1][1]) is Pair
