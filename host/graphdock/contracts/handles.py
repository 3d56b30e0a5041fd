"""Which resource a handle names, anywhere in a plan."""

from __future__ import annotations

from graphdock.contracts.bodies import given
from graphdock.contracts.ir import PlanGraph, Value

__all__ = ["handle_of"]


def handle_of(graph: PlanGraph) -> dict[Value, Value]:
    """Resource value anywhere in the graph or its bodies -> the output of the node that makes the handle.

    Of several such nodes for one resource, which share container and name, the first stands for all.
    """
    table: dict[Value, Value] = {}
    first: dict[tuple[str, str], Value] = {}
    for level in graph.all_graphs():
        for node in level.nodes:
            if node.verb == "handle":
                resource = node.attrs["container"], node.attrs["shared_name"] or node.origin
                table[node.outputs[0]] = first.setdefault(resource, node.outputs[0])
            elif node.verb == "alias" and node.inputs[0] in table:
                table[node.outputs[0]] = table[node.inputs[0]]
            for body in node.bodies:
                for value, inner in zip(given(node), body.inputs, strict=True):
                    if value.dtype.name == "resource" and value in table:
                        table[inner] = table[value]
    return table
