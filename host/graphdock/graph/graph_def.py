"""GraphDef: a graph as plain data and as readable JSON, the same bytes for the same graph.

    {"graphdock_graph": 1, "producer": "graphdock 0.1.0", "packages": [...], "nodes": [node, ...]}

    node: {"name", "op", "version", "inputs": ["x:0", "^init"], "device", "colocate", "gradient", "attrs": {name:
    {type: value}},
           "input_lengths", "output_shapes"}
    body, the value of a "func" attribute: {"name", "parameters": [...], "captures": [...], "outputs": ["Add:0"],
    "nodes": [...]}

What is empty is left out. Nodes stand in creation order; a reader takes any order. ``output_shapes`` is there only
where ``set_shape`` has said more than the ops do. ``graph_def.schema.json`` beside this file is the JSON Schema.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from graphdock.errors import InvalidArgumentError
from graphdock.graph.attr_values import attr_type, encode
from graphdock.graph.body import BodyGraph
from graphdock.graph.graph import Graph
from graphdock.graph.import_graph import FORMAT, import_graph_def, register_upgrade
from graphdock.graph.operation import Operation
from graphdock.opdef.shape_rule import rule_for

__all__ = ["FORMAT", "as_graph_def", "from_json", "import_graph_def", "register_upgrade", "to_json"]

_WIDTH = 120


def as_graph_def(graph: Graph) -> dict[str, Any]:
    """The graph as plain data: dicts, lists, strings, numbers.

    Raises:
      InvalidArgumentError: an operation holds a Python function (``py_func``); names it.
    """
    import graphdock

    ops = graph.get_operations()
    return {
        "graphdock_graph": FORMAT,
        "producer": f"graphdock {graphdock.__version__}",
        "packages": sorted(_packages(ops)),
        "nodes": [_node(op) for op in ops],
    }


def to_json(graph: Graph | dict[str, Any]) -> str:
    """The JSON text of a graph, or of what :func:`as_graph_def` returned."""
    return _pretty(as_graph_def(graph) if isinstance(graph, Graph) else graph) + "\n"


def from_json(text: str | bytes) -> dict[str, Any]:
    """The plain data of a JSON text. Raises InvalidArgumentError with line and column when it is not JSON."""
    from graphdock.graph.import_graph import parse

    return parse(text)


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


def _node(op: Operation) -> dict[str, Any]:
    node: dict[str, Any] = {"name": op.name, "op": op.type, "version": op.op_def.version}
    inputs = [t.name for t in op.inputs] + [f"^{c.name}" for c in op._control]
    if inputs:
        node["inputs"] = inputs
    if op._input_lengths is not None and sum(a.arity != "one" for a in op.op_def.inputs) > 1:
        node["input_lengths"] = list(op._input_lengths)
    if op.device:
        node["device"] = op.device
    if op._colocation:
        node["colocate"] = list(op._colocation)
    if op._gradient_type is not None:
        node["gradient"] = op._gradient_type
    attrs = {name: _attr(op, name, op.node_attrs[name]) for name in sorted(op.node_attrs)}
    if attrs:
        node["attrs"] = attrs
    shapes = [t._dims for t in op.outputs]
    if shapes != rule_for(op.op_def).infer(op.node_attrs, op.input_shapes(), lambda i: op.graph._known(op.inputs[i])):
        node["output_shapes"] = [None if s is None else list(s) for s in shapes]
    return node


def _attr(op: Operation, name: str, value: Any) -> dict[str, Any]:
    kind = attr_type(op.op_def, name)
    if kind is None:
        raise InvalidArgumentError(
            f"operation {op.name} has an attribute {name!r} that {op.type} does not declare", op=op.name
        )
    if kind != "func":
        return encode(kind, value)
    if not isinstance(value, BodyGraph):
        raise InvalidArgumentError(
            f"operation {op.name} ({op.type}) holds a Python function, which a GraphDef cannot",
            op=op.name,
            site=op.site,
            hint="leave it out of the graph that is saved",
        )
    return {"func": _body(value)}


def _body(body: BodyGraph) -> dict[str, Any]:
    return {
        "name": body.name,
        "parameters": [t.op.name for t in body.parameters],
        "captures": [t.op.name for t in body.captures.values()],
        "outputs": [t.name for t in body.outputs],
        "nodes": [_node(op) for op in body.get_operations()],
    }


def _pretty(value: Any, indent: int = 0) -> str:
    """JSON with each list and object on one line where it fits."""
    flat = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if not isinstance(value, (dict, list)) or not value or indent + len(flat) <= _WIDTH:
        return flat
    pad = " " * (indent + 1)
    if isinstance(value, dict):
        items = [f"{json.dumps(k, ensure_ascii=False)}: {_pretty(v, indent + 1)}" for k, v in value.items()]
        return "{\n" + ",\n".join(pad + item for item in items) + "\n" + " " * indent + "}"
    if all(isinstance(v, (int, float)) for v in value):
        return _wrapped([json.dumps(v) for v in value], pad, indent)
    return "[\n" + ",\n".join(pad + _pretty(v, indent + 1) for v in value) + "\n" + " " * indent + "]"


def _wrapped(items: list[str], pad: str, indent: int) -> str:
    lines, line = [], pad
    for i, item in enumerate(items):
        piece = item + ("," if i + 1 < len(items) else "")
        if len(line) + len(piece) + 1 > _WIDTH and line != pad:
            lines.append(line.rstrip())
            line = pad
        line += piece + " "
    return "[\n" + "\n".join([*lines, line.rstrip()]) + "\n" + " " * indent + "]"
