"""Cutter: a region keeps what leads to it from outside, costs its own size, and no two regions wait for each other."""

from __future__ import annotations

from typing import Any

import pytest
from graphdock.contracts import ArgDef, Builder, Cutter, DeviceSpec, OpDef, PlanGraph, PlanNode, check, print_graph
from graphdock.dtypes import float32
from graphdock.errors import PlanError

F = (float32, (2,))
CPU = DeviceSpec.parse("/device:cpu:0")
OP = OpDef("Op")


def build(*rows: tuple[Any, ...], outputs: str = "") -> tuple[PlanGraph, dict[str, PlanNode]]:
    """Rows of (name, inputs, control, order), names in one text each; ``x`` is fed."""
    b = Builder()
    values = {"x": b.input("x", *F)}
    nodes: dict[str, PlanNode] = {}
    for name, inputs, *more in rows:
        control, order = (*more, "", "")[:2]
        values[name] = b.node(
            OP,
            name,
            [values[i] for i in inputs.split()],
            {},
            [F],
            [nodes[n] for n in control.split()],
            order=[nodes[n] for n in order.split()],
        )[0]
        nodes[name] = b.graph.nodes[-1]
    return b.finish([values[o] for o in outputs.split()]), nodes


def chain(size: int) -> PlanGraph:
    b = Builder()
    value = b.input("x", *F)
    for i in range(size):
        (value,) = b.node(OP, f"n{i}", [value], {}, [F])
    return b.finish([value])


def test_control_and_order_from_outside_are_kept_apart_from_those_inside() -> None:
    graph, nodes = build(
        ("c", "x"),
        ("o", "x"),
        ("a", "x", "c", "o"),
        ("b", "a", "a", "a o"),
        ("after", "x", "b", "b"),
        outputs="b after",
    )
    before = print_graph(graph)
    region = Cutter(graph).cut([nodes["b"], nodes["a"]], CPU)
    check(region.graph)
    assert [n.name for n in region.control] == ["c"] and [n.name for n in region.order] == ["o"]
    first, second = region.graph.nodes
    assert (first.control, first.order) == ((), ())
    assert (second.control, second.order) == ((first,), (first,))
    assert [region.source[n] for n in region.graph.nodes] == [nodes["a"], nodes["b"]]
    assert print_graph(graph) == before


def test_the_cost_of_a_cut_is_the_regions_size() -> None:
    visited = []
    for size in (100, 10_000):
        graph = chain(size)
        cutter = Cutter(graph)
        cutter.cut(graph.nodes[50:55], CPU)
        visited.append(cutter.visited)
    assert visited[0] == visited[1] <= 10


def test_cutting_a_level_into_pieces_is_linear() -> None:
    graph = chain(2000)
    cutter = Cutter(graph)
    for i in range(0, 2000, 10):
        cutter.cut(graph.nodes[i : i + 10], CPU)
        cutter.take(graph.nodes[i : i + 10])
    assert cutter.visited <= 3 * 2000


@pytest.mark.parametrize("edge", ["data", "control", "order"])
def test_a_way_out_and_back_is_refused_whatever_edges_it_takes(edge: str) -> None:
    between = {"data": ("m", "a"), "control": ("m", "x", "a"), "order": ("m", "x", "", "a")}[edge]
    back = {"data": ("b", "a m"), "control": ("b", "a", "m"), "order": ("b", "a", "", "m")}[edge]
    graph, nodes = build(("a", "x"), between, back, outputs="b m")
    with pytest.raises(PlanError, match="a region with b needs m, which depends on the region and is not in it"):
        Cutter(graph).cut([nodes["a"], nodes["b"]], CPU)


def test_two_regions_may_not_wait_for_each_other() -> None:
    """a1 -> b1 and b2 -> a2: each pair could be one node, but not both."""
    graph, nodes = build(("a1", "x"), ("b1", "a1"), ("b2", "x"), ("a2", "b2"), outputs="b1 a2")
    for first, second in (("a", "b"), ("b", "a")):
        cutter = Cutter(graph)
        pair = [nodes[f"{first}1"], nodes[f"{first}2"]]
        cutter.cut(pair, CPU)
        cutter.take(pair)
        with pytest.raises(PlanError, match="which depends on the region and is not in it"):
            cutter.cut([nodes[f"{second}1"], nodes[f"{second}2"]], CPU)
        with pytest.raises(PlanError, match=f"{first}1 is in another region already"):
            cutter.cut(pair, CPU)


def test_a_value_that_is_wanted_on_the_host_and_on_the_device_enters_twice() -> None:
    both = OpDef("Both", inputs=(ArgDef("x", "float32"), ArgDef("n", "float32", memory="host")))
    b = Builder()
    x = b.input("x", *F)
    b.node(both, "y", [x, x], {}, [F])
    graph = b.finish([b.graph.nodes[0].outputs[0]])
    region = Cutter(graph).cut(graph.nodes, CPU)
    assert region.entering == (x, x)
    assert [v.name for v in region.graph.inputs] == ["x", "x/host"]
