"""Dropping what nobody needs."""

from __future__ import annotations

from graphdock.contracts.ir import PlanGraph
from graphdock.contracts.rewriter import Rewriter

__all__ = ["prune"]


def prune(graph: PlanGraph) -> None:
    """Drop every node that neither an output nor a target needs."""
    if _is_tight(graph):
        return
    needed = set(graph.targets)
    read = set(graph.outputs)
    with Rewriter(graph) as change:
        for node in reversed(graph.nodes):  # whoever needs a node stands behind it
            if node in needed or not read.isdisjoint(node.outputs):
                needed.update(node.control)
                read.update(node.inputs)
            else:
                change.erase(node)


def _is_tight(graph: PlanGraph) -> bool:
    """Whether every node is read or followed by another, or wanted itself. The last of nodes that nobody needs would not be."""
    read = set(graph.outputs).union(*[n.inputs for n in graph.nodes])
    followed = set(graph.targets).union(*[n.control for n in graph.nodes])
    return followed.issuperset([n for n in graph.nodes if read.isdisjoint(n.outputs)])
