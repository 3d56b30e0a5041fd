"""Streams that a node's kernel is given."""

from __future__ import annotations

from graphdock.contracts import Builder, OpDef, StreamName, print_node, streams_of
from graphdock.contracts.ir import copy_node
from graphdock.dtypes import float32

DRAWN, PLAIN = OpDef("Draw", effects=frozenset({"random"})), OpDef("Plain")


def a_node(opdef, **attrs):
    b = Builder()
    b.node(opdef, "scope/it", [], attrs, [(float32, (2,))], origins=("users", "others"))
    return b.graph.nodes[-1]


def test_a_node_that_draws_has_a_stream_of_its_own_by_the_users_name_and_its_seeds():
    assert streams_of(a_node(DRAWN, seed=3, seed2=4)) == (StreamName("users", 3, 4),)
    assert streams_of(a_node(DRAWN)) == (StreamName("users"),)
    assert streams_of(a_node(PLAIN, seed=3)) == ()


def test_a_node_that_stands_for_others_draws_from_theirs_and_so_do_its_copies():
    node = a_node(DRAWN, seed=3)
    node.streams = StreamName("a", 1), StreamName("b", 2)
    assert print_node(node).endswith(" {seed=3} draws from a, b")
    assert streams_of(node) == streams_of(copy_node(node, [])) == (StreamName("a", 1), StreamName("b", 2))
