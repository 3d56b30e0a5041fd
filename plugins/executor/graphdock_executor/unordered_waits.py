"""Waits of a step that nothing orders: one after the other they might wait for each other for good."""

from __future__ import annotations

from graphdock.contracts.ir import PlanGraph, PlanNode

__all__ = ["unordered_waits"]


def unordered_waits(graph: PlanGraph) -> tuple[PlanNode, PlanNode] | None:
    """Two nodes of one level that may wait, neither of which comes before the other; None where there are none.

    A node waits where its op does, or one in its bodies. Linear: of nodes that wait, in an order that edges allow, each comes after
    the one before it where the longest chain of them that ends in it has them all.
    """
    waiting: set[PlanGraph] = set()
    found: tuple[PlanNode, PlanNode] | None = None
    for level in reversed(list(graph.all_graphs())):  # a body comes before the graph around it
        chain: dict[PlanNode, int] = {}
        last: PlanNode | None = None
        count = 0
        for node in level.nodes:
            before = [v.node for v in node.inputs if v.node is not None]
            length = max([chain.get(n, 0) for n in (*before, *node.control, *node.order)], default=0)
            if "waits" in node.opdef.effects or not waiting.isdisjoint(node.bodies):
                count += 1
                length += 1
                if length < count and last is not None:
                    found = found or (last, node)
                last = node
            chain[node] = length
        if count:
            waiting.add(level)
    return found
