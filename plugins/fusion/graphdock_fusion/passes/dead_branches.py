"""The pass that puts a branch in the place of a Cond whose predicate is known when a plan is made."""

from __future__ import annotations

from graphdock.contracts import PassContext, PlanGraph, PlanNode, Rewriter
from graphdock.contracts.bodies import first_given

__all__ = ["dead_branches", "is_decided"]


def is_decided(node: PlanNode) -> bool:
    """Return whether a node is a branch that a constant decides, and that leaves nothing for a gradient."""
    if node.verb != "branch" or node.guard is not None or node.constant(0) is None:
        return False
    return not any(v.dtype.kind == "V" for v in (*node.inputs, *node.outputs))


def dead_branches(graph: PlanGraph, context: PassContext) -> None:
    """Splice the branches that are taken, and what they hold of decided ones, into the level."""
    while decided := [node for node in graph.holders if is_decided(node)]:
        with Rewriter(graph) as change:
            for node in decided:
                taken = node.bodies[0 if node.constant(0) else 1]
                change.keep(taken.targets)
                change.splice(node, taken, own_names=True, given=node.inputs[first_given(node.opdef) :])
