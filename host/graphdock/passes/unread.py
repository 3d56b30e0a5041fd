"""What a step need not do: outputs of conds that nobody reads, such as those that only a gradient that is not fetched would
need; captures that no body reads; and whatever only those would need.

This is no optimisation but decides which updates run, and so it is done in every plan, whatever passes are on.
"""

from __future__ import annotations

from graphdock.contracts.ir import PlanGraph, PlanNode, Value
from graphdock.contracts.rewriter import Rewriter
from graphdock.passes.captures import drop_captures
from graphdock.passes.rewrite import prune

__all__ = ["drop_unneeded", "unread"]


def drop_unneeded(graph: PlanGraph) -> None:
    """Drop unread outputs and captures at every level, and the nodes that nobody needs then."""
    prune(graph)
    before = -1
    while (count := sum(len(level.nodes) for level in graph.all_graphs())) != before:
        before = count
        levels = list(graph.all_graphs())
        if len(levels) == 1:
            return
        for level in levels:
            unread(level)
            prune(level)
        for level in reversed(levels):  # innermost first
            drop_captures(level)
            prune(level)


def unread(graph: PlanGraph) -> None:
    """Drop unread outputs of this level's branches, and what only they needed inside."""
    if not any(node.verb == "branch" for node in graph.nodes):
        return
    read: set[Value] = set(graph.outputs)
    for node in graph.nodes:
        read.update(node.inputs)
    with Rewriter(graph) as change:
        for node in graph.nodes:
            if node.verb == "branch" and not all(v in read for v in node.outputs):
                _keep(node, [i for i, v in enumerate(node.outputs) if v in read], change)


def _keep(node: PlanNode, kept: list[int], change: Rewriter) -> None:
    for body in node.bodies:
        with Rewriter(body) as inner:
            inner.returns([body.outputs[i] for i in kept])
    change.rebind(node, outputs=kept, attrs={**node.attrs, "Tout": tuple(node.outputs[i].dtype for i in kept)})
