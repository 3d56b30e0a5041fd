"""Writing a graph as plain data, the same for the same graph.

    {"graphdock_graph": 1, "producer": "graphdock 0.1.0", "packages": [...], "nodes": [node, ...]}

    node: {"name", "op", "version", "inputs": ["x:0", "^init"], "device", "colocate", "gradient", "attrs": {name:
    {type: value}},
           "input_lengths", "output_shapes"}
    body, the value of a "func" attribute: {"name", "parameters": [...], "captures": [...], "outputs": ["Add:0"],
    "targets": ["group_deps"], "nodes": [...]}

What is empty is left out. Nodes stand in creation order; a reader takes any order. ``output_shapes`` is there only
where ``set_shape`` has said more than the ops do. ``graph_def.schema.json`` beside this file is the JSON Schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import graphdock as _tf
from graphdock.errors import InvalidArgumentError
from graphdock.ops import BodyGraph, Graph, Operation, Tensor
from graphdock.shape import Dims

from graphdock_tensorflow.plain_data.attr_values import attr_type, encode

__all__ = ["DEEPEST", "FORMAT", "Waiting", "as_data", "attr_data", "body_data", "graph_data"]

#: Version of the form of the data.
FORMAT = 1
#: Deepest nesting of bodies that is read.
DEEPEST = 64


def as_data(graph: Graph, exact: bool = False) -> dict[str, Any]:
    """The graph as plain data: dicts, lists, strings, numbers.

    Args:
      exact: for a writer of messages. Tensors stay arrays, each node has the key ``shapes`` with those of its outputs, and a
        Python function is its name.

    Raises:
      InvalidArgumentError: an operation holds a Python function (``py_func``), or bodies deeper than a reader takes; names it.
    """
    return graph_data(graph, partial(_node, exact=exact))


#: A body, and the list that its nodes belong into.
Waiting = list[tuple[Graph, list[dict[str, Any]]]]


def graph_data(graph: Graph, node: Callable[[Operation, Waiting], dict[str, Any]]) -> dict[str, Any]:
    """The graph as plain data, by a function of an operation and of the bodies that wait to be written."""
    return {
        "graphdock_graph": FORMAT,
        "producer": f"graphdock {_tf.__version__}",
        "packages": sorted(_packages(graph.get_operations())),
        "nodes": _nodes(graph, node),
    }


def _packages(ops: Iterable[Operation]) -> set[str]:
    """Import packages that declare the ops."""
    found: set[str] = set()
    stack = [iter(ops)]
    while stack:
        op = next(stack[-1], None)
        if op is None:
            stack.pop()
            continue
        found.add(op.op_def.package)
        stack.extend(iter(body.get_operations()) for body in op.bodies)
    return found


def _nodes(graph: Graph, node: Callable[[Operation, Waiting], dict[str, Any]]) -> list[dict[str, Any]]:
    """The operations of a graph, bodies included."""
    result: list[dict[str, Any]] = []
    waiting: Waiting = [(graph, result)]
    for _ in range(DEEPEST + 1):
        inner: Waiting = []
        for level, nodes in waiting:
            nodes.extend(node(op, inner) for op in level.in_order())
        waiting = inner
    if waiting:
        raise InvalidArgumentError(
            f"bodies are nested deeper than {DEEPEST}, which a GraphDef cannot hold",
            hint="tf.case nests as deep as the logarithm of its branches",
        )
    return result


def _node(op: Operation, waiting: Waiting, exact: bool) -> dict[str, Any]:
    """One operation; a body of it joins those ``waiting``, with the list that its nodes belong into."""
    node: dict[str, Any] = {"name": op.name, "op": op.type, "version": op.op_def.version}
    inputs = [t.name for t in (*op.inputs, *op.later)] + [f"^{c.name}" for c in op.control_inputs]
    if inputs:
        node["inputs"] = inputs
    if sum(a.arity != "one" for a in op.op_def.inputs) > 1:
        node["input_lengths"] = [len(group) for group in op.input_shapes()]
    if op.device:
        node["device"] = op.device
    if op.colocation:
        node["colocate"] = list(op.colocation)
    if op.gradient_type is not None:
        node["gradient"] = op.gradient_type
    attrs: dict[str, Any] = {}
    for name in sorted(op.node_attrs):
        value = op.node_attrs[name]
        if isinstance(value, BodyGraph):
            attrs[name] = {"func": body_data(value)}
            waiting.append((value, attrs[name]["func"]["nodes"]))
        else:
            attrs[name] = attr_data(op, name, value, exact)
    if attrs:
        node["attrs"] = attrs
    shapes = [_dims(t) for t in op.outputs]
    if exact:
        node["shapes"] = shapes
        return node
    if shapes != op.graph.inferred_shapes(op):
        node["output_shapes"] = [None if s is None else list(s) for s in shapes]
    return node


def _dims(tensor: Tensor) -> Dims:
    shape = tensor.shape
    return None if shape.ndims is None else tuple(shape.as_list())


def attr_data(op: Operation, name: str, value: Any, exact: bool = False) -> dict[str, Any]:
    """An attribute that is no body, with its type.

    Raises:
      InvalidArgumentError: the op declares none of that name; a Python function.
    """
    kind = attr_type(op.op_def, name)
    if kind is None:
        raise InvalidArgumentError(
            f"operation {op.name} has an attribute {name!r} that {op.type} does not declare", op=op.name
        )
    if kind != "func":
        return encode(kind, value, exact)
    if exact:
        return {"string": getattr(value, "__qualname__", type(value).__name__)}
    raise InvalidArgumentError(
        f"operation {op.name} ({op.type}) holds a Python function, which a GraphDef cannot",
        op=op.name,
        site=op.site,
        hint="leave it out of the graph that is saved",
    )


def body_data(body: BodyGraph) -> dict[str, Any]:
    """A body as plain data, without its nodes."""
    targets = {"targets": [op.name for op in body.targets]} if body.targets else {}
    return {
        "name": body.name,
        "parameters": [t.op.name for t in body.parameters],
        "captures": [t.op.name for t in body.captures.values()],
        "outputs": [t.name for t in body.outputs],
        **targets,
        "nodes": [],
    }
