"""Outputs of conds that nobody reads, such as those that only a gradient that is not fetched would need."""

from __future__ import annotations

from graphdock.contracts.ir import PlanGraph, PlanNode, Value

__all__ = ["unread"]


def unread(graph: PlanGraph) -> None:
    """Drop unread outputs of this level's Cond nodes, and what only they needed inside the branches."""
    if not any(node.op == "Cond" for node in graph.nodes):
        return
    read: set[Value] = set(graph.outputs)
    for node in graph.nodes:
        read.update(node.inputs)
    for node in graph.nodes:
        if node.op == "Cond" and not all(v in read for v in node.outputs):
            _keep(node, [i for i, v in enumerate(node.outputs) if v in read])


def _keep(node: PlanNode, kept: list[int]) -> None:
    node.outputs = [node.outputs[i] for i in kept]
    for index, value in enumerate(node.outputs):
        value.index = index
    for body in node.bodies:
        body.outputs = [body.outputs[i] for i in kept]
    node.attrs = {**node.attrs, "Tout": tuple(v.dtype for v in node.outputs)}
