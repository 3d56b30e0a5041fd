"""GraphDef: a graph as plain data and as readable JSON, the same bytes for the same graph.

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

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
from graphdock.errors import InvalidArgumentError
from graphdock.graph.body import BodyGraph
from graphdock.graph.graph import Graph
from graphdock.graph.operation import Operation
from graphdock.opdef.shape_rule import rule_for
from graphdock.trampoline import Visit, trampoline

from graphdock_tensorflow.plain_data.attr_values import attr_type, encode, encode_tensor
from graphdock_tensorflow.plain_data.reading import DEEPEST, FORMAT, import_graph_def, register_upgrade

__all__ = ["FORMAT", "as_data", "as_graph_def", "from_json", "import_graph_def", "register_upgrade", "to_json"]

_WIDTH = 120


def as_graph_def(graph: Graph, add_shapes: bool = False, form: str = "GraphDef") -> Any:
    """The graph in the form of a plugin, by default as a GraphDef with TensorFlow's fields, in TensorFlow's terms.

    Args:
      add_shapes: give each node the attribute ``_output_shapes``.
      form: name of a :class:`graphdock.contracts.GraphFormat`.

    Raises:
      InvalidArgumentError: bodies are deeper than a reader takes. UnavailableError: no installed plugin has such a form.
    """
    return graph.host.graph_formats.find(form).write(as_data(graph, exact=True), graph.host.ops, add_shapes)


def as_data(graph: Graph, exact: bool = False) -> dict[str, Any]:
    """The graph as plain data: dicts, lists, strings, numbers.

    Args:
      exact: for a writer of messages. Tensors stay arrays, each node has the key ``shapes`` with those of its outputs, and a
        Python function is its name.

    Raises:
      InvalidArgumentError: an operation holds a Python function (``py_func``), or bodies deeper than a reader takes; names it.
    """
    import graphdock

    return {
        "graphdock_graph": FORMAT,
        "producer": f"graphdock {graphdock.__version__}",
        "packages": sorted(_packages(graph.get_operations())),
        "nodes": _nodes(graph, exact),
    }


def _in_order(graph: Graph) -> list[Operation]:
    """The operations in order of creation; one that was made to stand before another stands there."""
    return sorted(graph.get_operations(), key=lambda op: op._id)


def to_json(graph: Graph | dict[str, Any]) -> str:
    """The JSON text of a graph, or of its plain data."""
    return trampoline(_pretty(as_data(graph) if isinstance(graph, Graph) else graph))[0] + "\n"


def from_json(text: str | bytes) -> dict[str, Any]:
    """The plain data of a JSON text. Raises InvalidArgumentError with line and column when it is not JSON."""
    from graphdock_tensorflow.plain_data.reading import parse

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


def _nodes(graph: Graph, exact: bool) -> list[dict[str, Any]]:
    """The operations of a graph, bodies included."""
    result: list[dict[str, Any]] = []
    waiting: list[tuple[Graph, list[dict[str, Any]]]] = [(graph, result)]
    for _ in range(DEEPEST + 1):
        inner: list[tuple[Graph, list[dict[str, Any]]]] = []
        for level, nodes in waiting:
            nodes.extend(_node(op, inner, exact) for op in _in_order(level))
        waiting = inner
    if waiting:
        raise InvalidArgumentError(
            f"bodies are nested deeper than {DEEPEST}, which a GraphDef cannot hold",
            hint="tf.case nests as deep as the logarithm of its branches",
        )
    return result


def _node(op: Operation, waiting: list[tuple[Graph, list[dict[str, Any]]]], exact: bool) -> dict[str, Any]:
    """One operation; a body of it joins those ``waiting``, with the list that its nodes belong into."""
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
    attrs: dict[str, Any] = {}
    for name in sorted(op.node_attrs):
        value = op.node_attrs[name]
        if isinstance(value, BodyGraph):
            attrs[name] = {"func": _body(value)}
            waiting.append((value, attrs[name]["func"]["nodes"]))
        else:
            attrs[name] = _attr(op, name, value, exact)
    if attrs:
        node["attrs"] = attrs
    shapes = [t._dims for t in op.outputs]
    if exact:
        node["shapes"] = shapes
        return node
    if shapes != rule_for(op.op_def).infer(op.node_attrs, op.input_shapes(), lambda i: op.graph._known(op.inputs[i])):
        node["output_shapes"] = [None if s is None else list(s) for s in shapes]
    return node


def _attr(op: Operation, name: str, value: Any, exact: bool) -> dict[str, Any]:
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


def _body(body: BodyGraph) -> dict[str, Any]:
    targets = {"targets": [op.name for op in body.targets]} if body.targets else {}
    return {
        "name": body.name,
        "parameters": [t.op.name for t in body.parameters],
        "captures": [t.op.name for t in body.captures.values()],
        "outputs": [t.name for t in body.outputs],
        **targets,
        "nodes": [],
    }


def _leaf(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _pretty(value: Any, indent: int = 0) -> Visit[tuple[str, bool]]:
    """JSON with each list and object on one line where it fits; and whether it is one line."""
    if isinstance(value, np.ndarray):
        value = encode_tensor(value)
    if not _nested(value):
        return _leaf(value), True
    pad = " " * (indent + 1)
    short = True
    if not any(map(_nested, value.values() if isinstance(value, dict) else value)):
        flat = _leaf(value)
        if indent + len(flat) <= _WIDTH:
            return flat, True
        if isinstance(value, list) and all(isinstance(v, (int, float)) for v in value):
            return _wrapped([_leaf(v) for v in value], pad, indent), False
        short = False
    begin, end = "{}" if isinstance(value, dict) else "[]"
    labelled = [(f"{_leaf(k)}: ", v) for k, v in value.items()] if isinstance(value, dict) else [("", v) for v in value]
    items: list[str] = []
    for label, item in labelled:
        text, one_line = (yield _pretty(item, indent + 1)) if _nested(item) else (_leaf(item), True)
        items.append(label + text)
        short = short and one_line
    if short:
        flat = begin + ", ".join(items) + end
        if indent + len(flat) <= _WIDTH:
            return flat, True
    return f"{begin}\n" + ",\n".join(pad + item for item in items) + "\n" + " " * indent + end, False


def _nested(value: Any) -> bool:
    return isinstance(value, np.ndarray) or (isinstance(value, (dict, list)) and bool(value))


def _wrapped(items: list[str], pad: str, indent: int) -> str:
    lines, line = [], pad
    for i, item in enumerate(items):
        piece = item + ("," if i + 1 < len(items) else "")
        if len(line) + len(piece) + 1 > _WIDTH and line != pad:
            lines.append(line.rstrip())
            line = pad
        line += piece + " "
    return "[\n" + "\n".join([*lines, line.rstrip()]) + "\n" + " " * indent + "]"
