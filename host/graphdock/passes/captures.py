"""What bodies capture: constants move inside, and what no body reads is not captured at all."""

from __future__ import annotations

from graphdock.contracts.bodies import carried, first_given
from graphdock.contracts.ir import PlanGraph, PlanNode, Value, make_node
from graphdock.contracts.rewriter import Rewriter
from graphdock.passes.rewrite import Tools

__all__ = ["captures", "drop_captures"]


def captures(graph: PlanGraph, tools: Tools) -> None:
    """Give every body of this level's nodes its own copy of a captured constant, then drop captures nobody reads."""
    for node in graph.nodes:
        if node.bodies:
            _sink(node)
    drop_captures(graph)


def drop_captures(graph: PlanGraph) -> None:
    """Let each node of this level capture only what one of its bodies reads."""
    with Rewriter(graph) as change:
        for node in graph.nodes:
            if node.bodies:
                _drop(node, change)


def _fixed(node: PlanNode) -> tuple[int, int]:
    """(inputs before the captures, of which also in the bodies)."""
    inside = carried(node.opdef, node.attrs)
    return first_given(node.opdef) + inside, inside


def _sink(node: PlanNode) -> None:
    outside, inside = _fixed(node)
    constants = [
        (i, v.node, v.shape)
        for i, v in enumerate(node.inputs[outside:])
        if v.node is not None and v.node.verb == "constant"
    ]
    if not constants:
        return
    for body in node.bodies:
        with Rewriter(body) as change:
            for i, source, shape in constants:
                parameter = body.inputs[inside + i]
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
    outside, inside = _fixed(node)
    read = [_read(body) for body in node.bodies]
    keep = [
        i
        for i in range(len(node.inputs) - outside)
        if any(body.inputs[inside + i] in values for body, values in zip(node.bodies, read, strict=True))
    ]
    if len(keep) == len(node.inputs) - outside:
        return
    for body in node.bodies:
        with Rewriter(body) as inner:
            inner.takes([*body.inputs[:inside], *[body.inputs[inside + i] for i in keep]])
    change.rebind(node, inputs=[*node.inputs[:outside], *[node.inputs[outside + i] for i in keep]])


def _read(body: PlanGraph) -> set[Value]:
    """The values that the body's nodes and outputs read."""
    found = set(body.outputs)
    for node in body.nodes:
        found.update(node.inputs)
    return found
