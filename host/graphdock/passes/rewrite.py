"""What passes share: making constants, forwarding values, dropping what nobody needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from graphdock.contracts.effects import only_reads
from graphdock.contracts.ir import PlanGraph, PlanNode, Value, replace_value
from graphdock.contracts.opdef import OpDef
from graphdock.dtypes import DType

__all__ = ["constant_node", "forward", "prune"]


def constant_node(like: PlanNode, value: Value, array: np.ndarray[Any, Any], dtype: DType, const: OpDef) -> PlanNode:
    """A Const node, whose OpDef is ``const``, that stands for ``value``, which ``like`` makes."""
    array = np.ascontiguousarray(array).reshape(array.shape)
    array.flags.writeable = False
    node = PlanNode(
        const.name,
        value.name,
        const,
        {"value": array, "dtype": dtype},
        [],
        site_of=like.site_of,
        origins=like.origins,
    )
    node.outputs.append(Value(value.name, dtype, array.shape, node, 0))
    return node


def forward(graph: PlanGraph, replacements: Mapping[Value, Value], dropped: Mapping[PlanNode, PlanNode | None]) -> None:
    """Let readers of each key read its replacement, and drop nodes; who ran after a dropped node runs after its stand-in."""
    if replacements:
        replace_value(graph, replacements)
    if not dropped:
        return

    def stand_in(node: PlanNode) -> PlanNode | None:
        current: PlanNode | None = node
        while current is not None and current in dropped:
            current = dropped[current]
        return current

    kept = []
    for node in graph.nodes:
        if node in dropped:
            continue
        if node.control:
            before = [stand_in(n) for n in node.control]
            node.control = [n for i, n in enumerate(before) if n is not None and n not in before[:i]]
        kept.append(node)
    join_order(graph, set(dropped), dropped)
    graph.nodes = kept
    targets = [stand_in(n) for n in graph.targets]
    graph.targets = [n for i, n in enumerate(targets) if n is not None and n not in targets[:i]]


def prune(graph: PlanGraph) -> None:
    """Drop every node that neither an output nor a target needs."""
    needed: set[PlanNode] = set()
    stack = [v.node for v in graph.outputs if v.node is not None] + list(graph.targets)
    while stack:
        node = stack.pop()
        if node in needed:
            continue
        needed.add(node)
        stack.extend(v.node for v in node.inputs if v.node is not None)
        stack.extend(node.control)
    if len(needed) != len(graph.nodes):
        join_order(graph, {n for n in graph.nodes if n not in needed}, {})
        graph.nodes = [n for n in graph.nodes if n in needed]


def join_order(graph: PlanGraph, gone: set[PlanNode], stand_ins: Mapping[PlanNode, PlanNode | None]) -> None:
    """Lead the order edges around nodes that go: who followed one follows its stand-in and whatever it followed itself.

    Two nodes that only read need no edge between them, so that dropping a write between many reads costs no product.
    """
    around: dict[PlanNode, list[PlanNode]] = {}
    for node in graph.nodes:
        if not node.order or gone.isdisjoint(node.order) and node not in gone:
            continue
        reads = only_reads(node.opdef)
        found: dict[PlanNode, None] = {}
        for before in node.order:
            if before not in gone:
                found[before] = None
                continue
            stand_in = stand_ins.get(before)
            if stand_in is not None and stand_in not in gone:
                found[stand_in] = None
            found.update((n, None) for n in around.get(before, ()) if not (reads and only_reads(n.opdef)))
        if node in gone:
            around[node] = list(found)
        else:
            node.order = list(found)
