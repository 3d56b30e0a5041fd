"""What bodies capture: constants move inside, and what no body reads is not captured at all."""

from __future__ import annotations

from graphdock.contracts.bodies import captures as captured
from graphdock.contracts.ir import PlanGraph, PlanNode, Value, make_node
from graphdock.contracts.passes import PassContext
from graphdock.contracts.rewriter import Rewriter

__all__ = ["captures"]


def captures(graph: PlanGraph, context: PassContext) -> None:
    """Give every body of this level's nodes its own copy of a captured constant, then drop captures nobody reads."""
    for node in graph.holders:
        _sink(node)
    with Rewriter(graph) as change:
        for node in graph.holders:
            _drop(node, change)


def _sink(node: PlanNode) -> None:
    constants = [
        (v.node, v.shape, inside) for _, v, inside in captured(node) if v.node is not None and v.node.verb == "constant"
    ]
    if not constants:
        return
    for which, body in enumerate(node.bodies):
        with Rewriter(body) as change:
            for source, shape, inside in constants:
                parameter = inside[which]
                copy = make_node(
                    source.opdef,
                    f"{parameter.name}/const",
                    [],
                    source.attrs,
                    [(parameter.dtype, shape)],
                    site_of=source.site_of,
                    origins=source.origins,
                )
                change.insert(copy, before=body.nodes[0] if body.nodes else None)
                change.redirect(parameter, copy.outputs[0])


def _drop(node: PlanNode, change: Rewriter) -> None:
    read = {v for body in node.bodies for v in _read(body)}
    unread = [(p, inside) for p, _, inside in captured(node) if read.isdisjoint(inside)]
    if not unread:
        return
    for which, body in enumerate(node.bodies):
        gone = {inside[which] for _, inside in unread}
        with Rewriter(body) as inner:
            inner.takes([v for v in body.inputs if v not in gone])
    positions = {p for p, _ in unread}
    change.rebind(node, inputs=[v for p, v in enumerate(node.inputs) if p not in positions])


def _read(body: PlanGraph) -> set[Value]:
    """The values that the body's nodes and outputs read."""
    found = set(body.outputs)
    for node in body.nodes:
        found.update(node.inputs)
    return found
