"""What bodies capture: constants move inside, and what no body reads is not captured at all."""

from __future__ import annotations

from graphdock.contracts.bodies import carried, first_given
from graphdock.contracts.ir import PlanGraph, PlanNode, Value, replace_value

__all__ = ["captures", "drop_captures"]


def captures(graph: PlanGraph) -> None:
    """Give every body of this level's nodes its own copy of a captured constant, then drop captures nobody reads."""
    for node in graph.nodes:
        if node.bodies:
            _sink(node)
            drop_captures(node)


def _fixed(node: PlanNode) -> tuple[int, int]:
    """(inputs before the captures, of which also in the bodies)."""
    inside = carried(node.opdef, node.attrs)
    return first_given(node.opdef) + inside, inside


def _sink(node: PlanNode) -> None:
    outside, inside = _fixed(node)
    for position in range(outside, len(node.inputs)):
        source = node.inputs[position].node
        if source is None or source.verb != "constant":
            continue
        for body in node.bodies:
            parameter = body.inputs[position - outside + inside]
            copy = PlanNode(
                source.op,
                f"{parameter.name}/const",
                source.opdef,
                source.attrs,
                [],
                site_of=source.site_of,
                origins=source.origins,
            )
            copy.outputs.append(Value(copy.name, parameter.dtype, node.inputs[position].shape, copy, 0))
            replace_value(body, {parameter: copy.outputs[0]})
            body.nodes.insert(0, copy)


def drop_captures(node: PlanNode) -> None:
    """Let a node capture only what one of its bodies reads."""
    outside, inside = _fixed(node)
    keep = []
    for position in range(outside, len(node.inputs)):
        index = position - outside + inside
        if any(_reads(body, body.inputs[index]) for body in node.bodies):
            keep.append(position)
    if len(keep) == len(node.inputs) - outside:
        return
    for body in node.bodies:
        body.inputs = body.inputs[:inside] + [body.inputs[p - outside + inside] for p in keep]
    node.inputs = node.inputs[:outside] + [node.inputs[p] for p in keep]


def _reads(body: PlanGraph, value: Value) -> bool:
    return value in body.outputs or any(value in n.inputs for n in body.nodes)
