"""Graphs as they travel between tasks: graphdock's own JSON on one line, and its large constants beside it, by their digests.

('{"graphdock_graph":1,...,"attrs":{"value":{"tensor":{"digest":"5f1c..."}}}...}', {"5f1c...": array})
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from graphdock.contracts import GraphFormat, GraphRead, OpDef
from graphdock.dtypes import as_dtype
from graphdock.errors import DataLossError, InvalidArgumentError
from graphdock.ops import BodyGraph, Operation

from graphdock_tensorflow.plain_data.attr_values import attr_type, shown
from graphdock_tensorflow.plain_data.format import JsonGraphs
from graphdock_tensorflow.plain_data.writing import Waiting, attr_data, body_data, graph_data

__all__ = ["LARGE", "FramedGraphs", "digest_of"]

#: Bytes above which a constant stands beside the text.
LARGE = 1024
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
#: Attributes whose values are JSON's own.
_PLAIN = frozenset({"int", "bool", "string"})


def digest_of(array: np.ndarray[Any, Any]) -> str:
    """128 bits, as hexadecimal digits, of a tensor's dtype, shape and elements."""
    found = hashlib.blake2b(f"{as_dtype(array.dtype).name}{array.shape}".encode(), digest_size=16)
    found.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return found.hexdigest()


class FramedGraphs(GraphFormat):
    """Pairs of a text and of arrays by their digests. Arrays that no constant names are left alone."""

    name = "frames"
    summary = "graphdock's own JSON on one line, and large constants beside it"

    def accepts(self, value: Any) -> bool:
        return isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], dict)

    def read(self, value: Any, ops: Any, mapped: Collection[str] = (), outputs: Sequence[str] = ()) -> GraphRead:
        text, arrays = value
        found = JsonGraphs().read(text, ops, mapped, outputs)
        if '"digest"' in text:
            _put_back(found.data, arrays)
        return found

    def write(self, graph: Any, add_shapes: bool = False) -> tuple[str, dict[str, Any]]:
        writer = _Writer()
        try:
            return _encode(graph_data(graph, writer.node)), writer.arrays
        except RecursionError:
            raise InvalidArgumentError("a graph in frames: its bodies are nested too deep here") from None


class _Writer:
    """Makes nodes of one graph plain data. Attributes: ``arrays``: digest -> large constant."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray[Any, Any]] = {}
        self._kinds: dict[str, dict[str, str | None]] = {}

    def node(self, op: Operation, waiting: Waiting) -> dict[str, Any]:
        """One operation; a body of it joins those ``waiting``, with the list that its nodes belong into."""
        op_def = op.op_def
        node: dict[str, Any] = {"name": op.name, "op": op.type, "version": op_def.version}
        inputs = [t.name for t in (*op.inputs, *op.later)]
        if op._control:
            inputs += [f"^{c.name}" for c in op._control]
        if inputs:
            node["inputs"] = inputs
        if not op_def.plain and sum(a.arity != "one" for a in op_def.inputs) > 1:
            node["input_lengths"] = [len(group) for group in op.input_shapes()]
        if op._device:
            node["device"] = op.device
        if op.colocation:
            node["colocate"] = op.colocation
        if op.gradient_type is not None:
            node["gradient"] = op.gradient_type
        if op.node_attrs:
            node["attrs"] = self._attrs(op, op_def, waiting)
        node["output_shapes"] = [t._dims for t in op.outputs]
        return node

    def _attrs(self, op: Operation, op_def: OpDef, waiting: Waiting) -> dict[str, Any]:
        kinds = self._kinds.get(op.type)
        if kinds is None:
            kinds = self._kinds[op.type] = {}
        attrs: dict[str, Any] = {}
        for name, value in op.node_attrs.items():
            if name not in kinds:
                kinds[name] = attr_type(op_def, name)
            kind = kinds[name]
            if kind == "type":
                attrs[name] = {"type": value.name}
            elif kind in _PLAIN or kind == "shape":
                attrs[name] = {kind: value}
            elif kind == "tensor" and value.nbytes > LARGE and value.dtype.kind != "O":
                digest = digest_of(value)
                self.arrays[digest] = value
                attrs[name] = {kind: {"digest": digest}}
            elif isinstance(value, BodyGraph):
                attrs[name] = {"func": body_data(value)}
                waiting.append((value, attrs[name]["func"]["nodes"]))
            else:
                attrs[name] = attr_data(op, name, value)
        return attrs


def _put_back(data: Any, arrays: Mapping[str, Any]) -> None:
    """Replace the digests of a graph's data by the arrays of these digests.

    Raises:
      InvalidArgumentError: there is none. DataLossError: it has another digest.
    """
    for attr in _attrs_of(data):
        tensor = attr.get("tensor")
        if not isinstance(tensor, dict) or "digest" not in tensor:
            continue
        digest = tensor["digest"]
        found = arrays.get(digest) if isinstance(digest, str) else None
        if not isinstance(found, np.ndarray):
            raise InvalidArgumentError("GraphDef: a constant is not beside the graph", got=shown(digest))
        if found.dtype.kind == "O" or digest_of(found) != digest:
            raise DataLossError(f"GraphDef: the constant {digest} is damaged: it has another digest")
        attr["tensor"] = found


def _attrs_of(data: Any) -> Iterator[dict[str, Any]]:
    """The attributes of a graph's nodes, those in bodies included, as far as the data is what it should be."""
    stack = [data]
    while stack:
        graph = stack.pop()
        nodes = graph.get("nodes") if isinstance(graph, dict) else None
        for node in nodes if isinstance(nodes, list) else ():
            attrs = node.get("attrs") if isinstance(node, dict) else None
            for attr in attrs.values() if isinstance(attrs, dict) else ():
                if isinstance(attr, dict):
                    yield attr
                    stack.append(attr.get("func"))
