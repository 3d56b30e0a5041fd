"""A graph as TensorBoard draws it: a GraphDef of TensorFlow, in which bodies stand in scopes of their own.

It is for looking at: a node with bodies reads what they return, so that they are drawn before it, and of a large constant only
dtype and shape are told.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from graphdock.dtypes import DType, as_dtype
from graphdock.messages import make
from graphdock.ops import BodyGraph, Graph, Operation, Tensor
from graphdock_storage.tensor_messages import number_of, shape_proto, tensor_proto

from graphdock_tensorflow.plain_data.attr_values import attr_type

__all__ = ["draw"]

#: Bytes of the largest constant whose elements are told.
_LARGEST = 1024
#: TensorFlow's number of this form of GraphDefs.
_PRODUCER = 134


def draw(graph: Graph) -> Any:
    """The graph, bodies included, with devices, attributes and the shapes of outputs.

    A graph that another thread extends meanwhile is drawn as far as it was.
    """
    made = make("GraphDef", versions={"producer": _PRODUCER})
    waiting: list[tuple[Graph, dict[Tensor, Tensor]]] = [(graph, {})]
    names: dict[Operation, str] = {}
    while waiting:
        level, sources = waiting.pop()
        for op in level.get_operations():
            for body, reads in zip(op.bodies, _reads(op), strict=True):
                waiting.append((body, reads))
            node = made.node.add(name=_name(op, names), op=op.type, device=op.device)
            read = [*op.inputs, *[t for body in op.bodies for t in body.outputs]]
            if op.outputs and op.outputs[0] in sources:
                read.append(sources[op.outputs[0]])
            node.input.extend([_input(t, names) for t in read])
            node.input.extend([f"^{_name(c, names)}" for c in op.control_inputs])
            for key, value in _attrs(op):
                node.attr[key].CopyFrom(value)
    return made


def _reads(op: Operation) -> list[dict[Tensor, Tensor]]:
    """Per body: a placeholder in it -> the tensor around it whose value it has, where that is one."""
    found = []
    for body in op.bodies:
        pairs = {inner: outer for outer, inner in body.captures.items()}
        # the first inputs of a loop are what its variables begin with
        pairs.update(dict(zip(body.parameters, op.inputs, strict=False)))
        found.append(pairs)
    return found


def _name(op: Operation, names: dict[Operation, str]) -> str:
    """Unique over all bodies: the placeholders of a body stand in its scope."""
    found = names.get(op)
    if found is None:
        graph = op.graph
        scoped = not isinstance(graph, BodyGraph) or op.name.startswith(graph.name + "/")
        found = names[op] = op.name if scoped else f"{graph.name}/{op.name}"  # type: ignore[attr-defined]
    return found


def _input(tensor: Tensor, names: dict[Operation, str]) -> str:
    name = _name(tensor.op, names)
    return f"{name}:{tensor.value_index}" if tensor.value_index else name


def _attrs(op: Operation) -> Iterator[tuple[str, Any]]:
    for key in sorted(op.node_attrs):
        kind = attr_type(op.op_def, key)
        if kind is not None and kind != "func":
            yield key, _attr(kind, op.node_attrs[key])
    if op.colocation:
        yield "_class", make("AttrValue", list={"s": op.colocation_groups()})
    if op.outputs:
        yield "_output_shapes", make("AttrValue", list={"shape": [shape_proto(t._dims) for t in op.outputs]})


#: Kind of an attribute -> the field that it has in an AttrValue.
_FIELDS = {"int": "i", "float": "f", "bool": "b", "string": "s", "type": "type", "shape": "shape", "tensor": "tensor"}


def _attr(kind: str, value: Any) -> Any:
    if kind.startswith("list("):
        one = kind[5:-1]
        return make("AttrValue", list={_FIELDS[one]: [_one(one, v) for v in value]})
    return make("AttrValue", **{_FIELDS[kind]: _one(kind, value)})


def _one(kind: str, value: Any) -> Any:
    if kind == "type":
        return number_of(value)
    if kind == "shape":
        return shape_proto(value)
    if kind == "string":
        return value.encode("utf-8", "surrogateescape")
    if kind == "tensor":
        return _constant(value, as_dtype(value.dtype))
    return value


def _constant(value: np.ndarray[Any, Any], dtype: DType) -> Any:
    size = sum(map(len, value.ravel())) if dtype.kind == "S" else value.nbytes
    if size <= _LARGEST:
        return tensor_proto(value, dtype)
    return make("TensorProto", dtype=number_of(dtype), tensor_shape=shape_proto(value.shape))
