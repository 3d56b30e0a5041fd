"""TensorArrays of TensorFlow's files: a resource, and a flow that orders what is done with it. Here the flow is the list itself.

So what reads and writes takes the flow alone, and all that hands a flow on hands a list on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphdock_tensorflow.graphs.convert import constant
from graphdock_tensorflow.graphs.nodes import Level, Node, op_of
from graphdock_tensorflow.graphs.values import dims_of, dtype_name

__all__ = ["make_arrays"]

#: What hands on what it is given: control flow, and other names.
_HANDS_ON = frozenset("Switch Merge Enter Exit NextIteration Identity".split())


def make_arrays(level: Level) -> None:
    """Replace the operations on TensorArrays of a level."""
    found = [n for n in level.values() if n.op in _RULES and n.why == "op"]
    if not found:
        return
    shapes = {n.name: _shape(n, "element_shape") for n in found if n.op == "TensorArrayV3"}
    flows = {f"{name}:1": f"{name}:0" for name in shapes}
    level.replace_inputs(flows)
    for node in found:
        _RULES[node.op](level, node, shapes.get(_array(level, node)))
        node.raw, node.why = None, ""
    _spread(level, [n.name for n in found if n.op in _GIVES_A_LIST])


def _array(level: Level, node: Node) -> str:
    """The name of the node that made the array, or of that at which its handle is lost."""
    name, seen = op_of(node.inputs[0]), {node.name}
    while name not in seen and name in level and level[name].op in _HANDS_ON and level[name].inputs:
        seen.add(name)
        name = op_of(level[name].inputs[0])
    return name


def _spread(level: Level, names: list[str]) -> None:
    """Say of what hands lists on that it does."""
    readers, seen = level.readers(), set(names)
    while names:
        for name in readers.get(names.pop(), ()):
            node = level[name]
            if node.op in _HANDS_ON and name not in seen and (node.op != "Switch" or op_of(node.inputs[0]) in seen):
                seen.add(name)
                names.append(name)
                node.attrs = {**node.attrs, "T": {"type": "variant"}}


def _shape(node: Node, attr: str) -> list[int | None] | None:
    if attr not in node.raw.attr:
        return None
    return dims_of(node.raw.attr[attr].shape, f"node {node.name!r}: {attr}")


def _dims(level: Level, node: Node, dims: list[int | None] | None) -> str:
    """A constant that says a shape."""
    said: Any = -1 if dims is None else [-1 if d is None else d for d in dims]
    return constant(level, "element_shape", np.array(said, np.int32), "int32", node)


def _dtype(node: Node, attr: str = "dtype") -> dict[str, Any]:
    return {"element_dtype": {"type": dtype_name(node.raw.attr[attr].type, f"node {node.name!r}: {attr}")}}


def _make(level: Level, node: Node, known: Any) -> None:
    flags = ("dynamic_size", "clear_after_read", "identical_element_shapes")
    # a file leaves out what is as TensorFlow's default
    given = {f: node.raw.attr[f].b if f in node.raw.attr else f == "clear_after_read" for f in flags}
    name = node.raw.attr["tensor_array_name"].s.decode("utf-8", "replace")
    attrs = _dtype(node) | {f: {"bool": v} for f, v in given.items()}
    attrs |= {"write_once": {"bool": True}, "array_name": {"string": name}}
    inputs = [_dims(level, node, known or _shape(node, "element_shape")), node.inputs[0]]
    node.op, node.inputs, node.attrs = "TensorListReserve", inputs, attrs


def _write(level: Level, node: Node, known: Any) -> None:
    _, index, value, flow = node.inputs
    node.op, node.inputs, node.attrs = "TensorListSetItem", [flow, index, value], _dtype(node, "T")


def _read(level: Level, node: Node, known: Any) -> None:
    _, index, flow = node.inputs
    node.inputs, node.attrs = [flow, index, _dims(level, node, known)], _dtype(node)
    node.op = "TensorListGetItem"


def _gather(level: Level, node: Node, known: Any) -> None:
    _, indices, flow = node.inputs
    node.inputs = [flow, indices, _dims(level, node, _shape(node, "element_shape") or known)]
    node.op, node.attrs = "TensorListGather", _dtype(node)


def _scatter(level: Level, node: Node, known: Any) -> None:
    _, indices, value, flow = node.inputs
    node.op, node.inputs, node.attrs = (
        "TensorListScatterIntoExistingList",
        [flow, value, indices],
        _dtype(node, "T"),
    )


def _concat(level: Level, node: Node, known: Any) -> None:
    rest = _shape(node, "element_shape_except0")
    dims = _dims(level, node, None if rest is None else [None, *rest])
    leading = constant(level, "leading_dims", np.zeros(0, np.int64), "int64", node)
    node.op, node.inputs, node.attrs = "TensorListConcatV2", [node.inputs[1], dims, leading], _dtype(node)


def _split(level: Level, node: Node, known: Any) -> None:
    _, value, lengths, flow = node.inputs
    node.op, node.inputs, node.attrs = "GraphdockTensorListSplit", [flow, value, lengths], _dtype(node, "T")


def _size(level: Level, node: Node, known: Any) -> None:
    node.op, node.inputs, node.attrs = "TensorListLength", [node.inputs[1]], {}


def _close(level: Level, node: Node, known: Any) -> None:
    node.op, node.inputs, node.attrs = "GraphdockTensorListClose", [node.inputs[0]], {}


_RULES: dict[str, Callable[[Level, Node, Any], None]] = {
    "TensorArrayV3": _make,
    "TensorArrayWriteV3": _write,
    "TensorArrayReadV3": _read,
    "TensorArrayGatherV3": _gather,
    "TensorArrayScatterV3": _scatter,
    "TensorArrayConcatV3": _concat,
    "TensorArraySplitV3": _split,
    "TensorArraySizeV3": _size,
    "TensorArrayCloseV3": _close,
}
_GIVES_A_LIST = frozenset(
    "TensorListReserve TensorListSetItem TensorListScatterIntoExistingList GraphdockTensorListSplit".split()
)
