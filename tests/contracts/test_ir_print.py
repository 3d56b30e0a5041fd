"""A plan graph as text: one line per node, bodies beneath their node, deep nests without recursion."""

from __future__ import annotations

import numpy as np
from graphdock import dtypes
from graphdock.contracts.ir import PlanGraph
from graphdock.contracts.ir_print import print_graph, print_node
from graphdock.contracts.opdef import OpDef
from graphdock.contracts.rewriter import Builder
from graphdock.device_name import DeviceSpec


def chain(name, depth):
    """A graph of one node per level, each with the next level as its body."""
    graphs = []
    for level in range(depth):
        b = Builder(f"{name}{level}")
        x = b.input("x", dtypes.float32, (2, None))
        bodies = [graphs[-1]] if graphs else []
        (y,) = b.node(OpDef("Op"), "y", [x], {"k": level}, [(dtypes.float32, None)], bodies=bodies)
        b.graph.outputs = [y]
        graphs.append(b.graph)
    return graphs[-1]


def test_a_graph_and_its_bodies():
    assert print_graph(chain("g", 2)) == "\n".join(
        [
            "graph g1(%x: float32[2,?]) {",
            "  %y: float32<unknown> = Op(%x) {k=1}",
            "    graph g0(%x: float32[2,?]) {",
            "      %y: float32<unknown> = Op(%x) {k=0}",
            "      return %y",
            "    }",
            "  return %y",
            "}",
        ]
    )
    assert str(PlanGraph("empty")) == "graph empty() {\n  return\n}"


def test_a_node_shows_attributes_control_and_device():
    b = Builder()
    x = b.input("x", dtypes.int8, ())
    b.node(OpDef("First"), "first", [x], {}, [])
    first = b.graph.nodes[-1]
    attrs = {
        "big": np.zeros((3, 4), np.float32),
        "small": np.arange(2),
        "T": dtypes.bfloat16,
        "list": (dtypes.int8, 3),
        "text": "up",
    }
    b.node(OpDef("Then"), "then", [x], attrs, [], [first], DeviceSpec(type="cpu", index=1))
    assert print_node(first) == "first First(%x)"
    assert print_node(b.graph.nodes[-1]) == (
        "then Then(%x) {T=bfloat16, big=<float32[3,4]>, list=[int8, 3], small=[0, 1], text='up'} after first on cpu:1"
    )


def test_a_deep_nest_is_printed():
    text = print_graph(chain("g", 3000))
    assert text.count("graph g") == 3000
