"""Resources that handles name, anywhere in a plan; and a check that ops get handles of the kinds they take."""

from __future__ import annotations

from collections.abc import Mapping

from graphdock.contracts.bodies import given
from graphdock.contracts.ir import PlanGraph, PlanNode, Value, arg_of
from graphdock.contracts.resource import VARIABLE
from graphdock.errors import InvalidArgumentError

__all__ = ["check_handles", "handle_of", "resource_name"]


def resource_name(node: PlanNode) -> tuple[str, str]:
    """Container and name of the resource that a node of the verb ``handle`` names."""
    attrs = node.attrs
    return attrs.get("container", ""), attrs.get("shared_name", "") or node.origin


def handle_of(graph: PlanGraph) -> dict[Value, Value]:
    """Resource value anywhere in the graph or its bodies -> the output of the node that makes the handle.

    Of several such nodes for one resource, which share kind, container and name, the first stands for all.
    """
    table: dict[Value, Value] = {}
    first: dict[tuple[str | None, str, str], Value] = {}
    for level in graph.all_graphs():
        for node in level.nodes:
            if node.verb == "handle":
                resource = node.opdef.resource, *resource_name(node)
                table[node.outputs[0]] = first.setdefault(resource, node.outputs[0])
            elif node.verb == "alias":
                if node.inputs[0] in table:
                    table[node.outputs[0]] = table[node.inputs[0]]
            elif node.bodies:
                for which, body in enumerate(node.bodies):
                    for value, inner in zip(given(node, which), body.inputs, strict=True):
                        if value.dtype.name == "resource" and value in table:
                            table[inner] = table[value]
    return table


def check_handles(graph: PlanGraph, handles: Mapping[Value, Value] | None = None) -> None:
    """See that every op which takes a handle gets one, of the kind that its spec says.

    Args:
      handles: what :func:`handle_of` answers for the graph, where it is known.

    Raises:
      InvalidArgumentError: names the op, and what it got.
    """
    table = handle_of(graph) if handles is None else handles
    for level in graph.all_graphs():
        for node in level.nodes:
            taken = [i for i, value in enumerate(node.inputs) if value.dtype.kind == "R"]
            if not taken or node.bodies or node.verb == "alias":
                continue
            args = arg_of(node)
            for i in taken:
                _check(node, node.inputs[i], args[i].resource or VARIABLE.name, table)


def _check(node: PlanNode, value: Value, wanted: str, table: Mapping[Value, Value]) -> None:
    owner = table[value].node if value in table else None
    if owner is None:
        made = "is fed" if value.node is None else f"is made by a {value.node.op}"
        raise InvalidArgumentError(
            f"{node.op} takes a handle to a {wanted}, and {value.name} {made}",
            op=node.origin,
            site=node.site,
            hint="only ops that execute as handle make handles",
        )
    if owner.opdef.resource != wanted:
        raise InvalidArgumentError(
            f"{node.op} takes a handle to a {wanted}",
            op=node.origin,
            site=node.site,
            got=f"{owner.origin}, a handle to a {owner.opdef.resource or 'kind that its op does not name'}",
        )
