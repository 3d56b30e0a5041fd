"""The pass that drops waits between what only computes: gates around the gradients of an operation, mostly.

An optimizer gates the gradients of each operation by default, so that none is used before all are there. In a plan that changes no
result: reads are snapshots, and order edges keep each before the writes that come later. But it keeps other passes from seeing
what is the same, or could be summed at once.
"""

from __future__ import annotations

import operator
from typing import Any

from graphdock.contracts import PassContext, PlanGraph, PlanNode, Rewriter

__all__ = ["prune_control_edges"]

_MAKER = operator.attrgetter("node")


def prune_control_edges(graph: PlanGraph, context: PassContext) -> None:
    """Drop the control edges of nodes that only compute to nodes that only compute and that the plan needs anyway."""
    waited: dict[PlanNode, frozenset[PlanNode] | None] = {}
    dropped: dict[PlanNode, list[PlanNode]] = {}
    for node in graph.nodes:
        if node.control and _computes(node):
            found = []
            for before in node.control:
                if (waited[before] if before in waited else _behind(before, waited)) is not None:
                    found.append(before)
            if found:
                dropped[node] = found
    if not dropped:
        return
    needed = _needed(graph, dropped)
    with Rewriter(graph) as change:
        for node, found in dropped.items():
            left = [b for b in node.control if b not in found or not needed.issuperset(waited[b] or ())]
            if len(left) < len(node.control):
                change.rebind(node, control=left)


def _computes(node: PlanNode) -> bool:
    """Return whether all that the node does is to compute its outputs."""
    return not node.opdef.is_stateful and not node.bodies and node.guard is None and node.verb != "none"


def _behind(node: PlanNode, known: dict[PlanNode, frozenset[PlanNode] | None]) -> frozenset[PlanNode] | None:
    """The nodes that one who waits for ``node`` waits for, looking through those that hold control edges only.

    None where any of them does more than compute.
    """
    stack = [node]
    while stack:
        at = stack[-1]
        if at in known:
            stack.pop()
        elif at.verb != "none" or at.outputs:
            known[stack.pop()] = frozenset([at]) if _computes(at) else None
        else:
            open_ = [before for before in at.control if before not in known]
            if open_:
                stack.extend(open_)
                continue
            inside = [known[before] for before in at.control]
            known[at] = None if None in inside else frozenset().union(*[n for n in inside if n is not None])
            stack.pop()
    return known[node]


def _needed(graph: PlanGraph, dropped: dict[PlanNode, list[PlanNode]]) -> set[PlanNode]:
    """The nodes that the level's outputs and targets need without those edges."""
    needed: set[Any] = {*graph.targets, *map(_MAKER, graph.outputs)}
    for node in reversed(graph.nodes):  # whoever needs a node stands behind it
        if node in needed:
            needed.update(map(_MAKER, node.inputs))
            if node.control:
                gone = dropped.get(node, ())
                needed.update([before for before in node.control if before not in gone])
    return needed
