"""Copies of bodies: the same operations in a new body graph, with everything nested in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphdock.graph.body import BodyGraph
from graphdock.graph.graph import Graph
from graphdock.graph.operation import Operation
from graphdock.graph.tensor import Tensor
from graphdock.trampoline import Visit, trampoline

__all__ = ["copy_body", "copy_operation"]


def copy_body(
    body: BodyGraph, name: str, outer: Graph, outer_of: Callable[[Tensor], Tensor]
) -> tuple[BodyGraph, dict[Tensor, Tensor]]:
    """A copy of ``body`` inside ``outer``, and what each of its tensors became.

    Args:
      outer_of: what a tensor captured by ``body`` is in ``outer``.
    """
    return trampoline(_body(body, name, outer, outer_of))


def copy_operation(op: Operation, graph: Graph, became: dict[Tensor, Tensor], name: str) -> Operation:
    """The same operation in ``graph``, over what its inputs ``became``; its control inputs are the caller's affair."""
    return trampoline(_operation(op, graph, became, name))


def _body(
    body: BodyGraph, name: str, outer: Graph, outer_of: Callable[[Tensor], Tensor]
) -> Visit[tuple[BodyGraph, dict[Tensor, Tensor]]]:
    made = BodyGraph(name, outer)
    became: dict[Tensor, Tensor] = {}
    copies: dict[Operation, Operation] = {}
    with made.as_default(), made.name_scope(name + "/"):
        for tensor in body.parameters:
            became[tensor] = made.add_parameter(tensor.op.name, tensor.dtype, tensor._dims)
        for around, inner in body.captures.items():
            became[inner] = made.capture(outer_of(around))
        for op in body.get_operations():
            if op.verb == "feed":
                continue
            copy = yield _operation(op, made, became, op.name.removeprefix(body.name + "/"))
            became.update(zip(op.outputs, copy.outputs, strict=True))
            copies[op] = copy
    for (
        op,
        copy,
    ) in copies.items():  # only now, since a control input may have been added that is younger than its follower
        copy._control = tuple([copies[before] for before in op._control if before in copies])
    made.outputs = [became[t] for t in body.outputs]
    made.targets = [copies[op] for op in body.targets]
    return made, became


def _operation(op: Operation, graph: Graph, became: dict[Tensor, Tensor], name: str) -> Visit[Operation]:
    prefix = graph._scopes.prefix
    copies: dict[int, Any] = {}
    for i, body in enumerate(op.bodies):
        copies[id(body)], _ = yield _body(body, f"{prefix}{name}/{i}", graph, became.__getitem__)
    attrs = {k: copies.get(id(v), v) for k, v in op.node_attrs.items()} if copies else op.node_attrs
    bodies = tuple(copies.values())
    made = graph.add_op(op.op_def, [became[t] for t in op.inputs], attrs, name, op._input_lengths, bodies)
    made._device, made.gradient_type, made._site = op._device, op.gradient_type, op._site
    for before, after in zip(op.outputs, made.outputs, strict=True):
        after._dims = before._dims
    return made
