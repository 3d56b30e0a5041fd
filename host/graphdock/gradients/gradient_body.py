"""The body of a gradient node: sees the forward body's tensors, and turns each into an input of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from graphdock.dtypes import DType, variant
from graphdock.graph.body import BodyGraph, captured
from graphdock.graph.graph import Graph
from graphdock.graph.operation import Operation
from graphdock.graph.tensor import Tensor
from graphdock.ops.apply import apply_op
from graphdock.ops.convert import constant_of
from graphdock.ops.core import zeros_like
from graphdock.shape import Dims, size

__all__ = ["GradientBody", "value_dims", "value_in", "zeros", "zeros_of"]

#: Zeros of at most so many elements are a constant.
_SMALL = 1024
#: Verbs of ops that give the same in any body.
_NAMED = frozenset({"constant", "handle"})


class GradientBody(BodyGraph):
    """A body in which gradients of ``forward``, a body of ``op``, are built.

    A tensor of the forward body that is used in here is computed once more if that surely gives the same value and the forward node
    stands in a loop or is one: what no iteration changes would be kept once per iteration otherwise. Any other becomes ``needed``.

    Attributes:
      needed: tensor of the forward body -> the placeholder in here for what the forward node hands out.
      repeated: whether the forward body runs once per iteration of some loop that is differentiated too.
      written: variables that something in the loop writes, by :func:`_key`.
    """

    def __init__(self, name: str, outer: Graph, op: Operation, forward: BodyGraph) -> None:
        super().__init__(name, outer)
        self.op = op
        self.forward = forward
        self.needed: dict[Tensor, Tensor] = {}
        around: GradientBody | None = outer if isinstance(outer, GradientBody) and outer.repeated else None
        self.repeated: bool = op.verb == "loop" or around is not None
        self.written = _written(op.bodies) if self.repeated else set()
        if op.verb != "loop" and around is not None:
            self.written |= around.written
        self._around = around
        self._here: dict[Tensor, Tensor] = {}
        self._outer_of: dict[Tensor, Tensor] = {inner: outside for outside, inner in forward.captures.items()}
        self._varies: dict[Operation, bool] = {}

    def capture(self, tensor: Tensor) -> Tensor:
        if tensor.op.graph is not self.forward:
            return super().capture(tensor)
        if tensor in self._outer_of:
            return self.capture(self._outer_of[tensor])
        found = self._here.get(tensor)
        if found is None:
            with self.as_default(), self.control_dependencies(None):
                if tensor.op.verb in _NAMED or self.repeated and not self.is_varying(tensor):
                    self._compute(tensor)
                else:
                    self._here[tensor] = self._fetch(tensor)
            found = self._here[tensor]
        return found

    def _fetch(self, tensor: Tensor) -> Tensor:
        """Return what stands in here for a tensor that the forward body computes and hands out."""
        name = tensor.op.name.rpartition("/")[2]
        if self.op.verb == "loop":
            self.needed[tensor] = self._placeholder(name, tensor.dtype, tensor._dims)
            return self.needed[tensor]
        slot = self.needed[tensor] = self._placeholder(name, variant, ())
        if tensor.dtype.kind == "V":
            return slot
        found: Tensor = apply_op("OptionalGetValue", optional=slot, T=tensor.dtype, shape=tensor._dims)
        return found

    def is_varying(self, tensor: Tensor) -> bool:
        """Return whether a tensor of the forward body may have another value in another iteration, or if it is computed again."""
        if not self._varies:
            for op in self.forward.get_operations():
                self._varies[op] = self._may_vary(op)
        return self._known_to_vary(tensor.op)

    def _known_to_vary(self, op: Operation) -> bool:
        found = self._varies.get(op)  # one that was added meanwhile reads a variable, or takes a shape
        return self._may_vary(op) if found is None else found

    def _may_vary(self, op: Operation) -> bool:
        if op.verb == "feed":
            outside = self._outer_of.get(op.outputs[0])
            if outside is None:
                return True  # a loop variable, or an element of a history
            return self.op.verb != "loop" and self._around is not None and _varies_in(self._around, outside)
        if op.verb == "read":
            return op.inputs[0] not in self._outer_of or _key(op.inputs[0]) in self.written
        if op.bodies or op.op_def.is_stateful:
            return True
        return any(self._known_to_vary(t.op) for t in op.inputs)

    def _compute(self, tensor: Tensor) -> None:
        """Compute a tensor once more, from captures, constants and what variables held when the forward node ran."""
        ops: set[Operation] = set()
        stack = [tensor.op]
        while stack:
            op = stack.pop()
            if op not in ops:
                ops.add(op)
                if op.verb != "read":
                    stack.extend(t.op for t in op.inputs if t not in self._here and t not in self._outer_of)
        for op in sorted(ops, key=lambda o: o._id):
            if op.verb == "read":
                self._here[op.outputs[0]] = self.capture(_read_before(self.op, self._outer_of[op.inputs[0]], op))
                continue
            inputs = [self.capture(t) for t in op.inputs]
            attrs = op.node_attrs
            if op.verb == "handle":
                attrs = {**attrs, "shared_name": attrs["shared_name"] or op.name}
            copy = self.add_op(op.op_def, inputs, attrs, op.name.rpartition("/")[2], op._input_lengths)
            copy._device, copy.gradient_type, copy._site = op._device, op.gradient_type, op._site
            for before, after in zip(op.outputs, copy.outputs, strict=True):
                after._dims = before._dims
                self._here[before] = after


def _varies_in(around: GradientBody, tensor: Tensor) -> bool:
    """Return whether a tensor outside of a forward body varies in the loop around it."""
    if tensor.op.graph is not around.forward:
        return False
    return around.is_varying(tensor)


def _read_before(op: Operation, handle: Tensor, like: Operation) -> Tensor:
    """The value that a variable has when ``op`` begins to run: a read that stands directly before it, like one in its body."""
    graph = op.graph
    with graph._lock:
        found = (op._companions or {}).get(handle)
        if found is None:
            with graph.control_dependencies(None), graph.name_scope(op.name + "/"):
                found = graph.add_op(like.op_def, [handle], like.node_attrs, like.name.rpartition("/")[2])
            found._device, found.colocation, found._site = like._device, like.colocation, like._site
            found.outputs[0]._dims = like.outputs[0]._dims
            op._add_companion(handle, found)
    return found.outputs[0]


def _key(handle: Tensor) -> Any:
    """Return what tells the variable behind a handle from others."""
    op = _handle(handle)
    attrs = op.node_attrs
    if op.verb != "handle":
        return op
    return attrs["container"], attrs["shared_name"] or op.name


def _written(bodies: Iterable[BodyGraph]) -> set[Any]:
    """The variables that something in the bodies writes."""
    found: set[Any] = set()
    stack = list(bodies)
    while stack:
        for op in stack.pop().get_operations():
            stack.extend(op.bodies)
            args: Sequence[Any] = op.op_def.inputs
            if any(a.access in ("writes", "uses") for a in args):
                found.update(_key(t) for t in op.inputs if t.dtype.kind == "R")
    return found


def zeros_of(tensor: Tensor, graph: Graph) -> Tensor:
    """Zeros like a tensor, or like the value of the variable behind a handle; of a list a list of nothing.

    They are made in ``graph``, which is the default graph.
    """
    dims = value_dims(tensor)
    if tensor.dtype is variant:
        nothing: Tensor = apply_op("OptionalNone")
        return nothing
    if dims is not None and None not in dims:
        return zeros(dims, _handle(tensor).node_attrs["dtype"] if tensor.dtype.kind == "R" else tensor.dtype)
    return zeros_like(value_in(graph, tensor))


def value_in(graph: Graph, tensor: Tensor) -> Tensor:
    """A tensor, or the value of the variable behind a handle, as ops of ``graph`` read it, which is the default graph."""
    inside = captured(graph, tensor)
    if inside.dtype.kind == "R":
        inside = apply_op("ReadVariableOp", resource=inside, dtype=_handle(tensor).node_attrs["dtype"])
    return inside


def value_dims(tensor: Tensor) -> Dims:
    """Static shape of a tensor, or of the value of the variable behind a handle."""
    if tensor.dtype.kind != "R":
        return tensor._dims
    dims: Dims = _handle(tensor).node_attrs["shape"]
    return dims


def _handle(tensor: Tensor) -> Operation:
    """The op that makes a handle, also one that a body captures."""
    return tensor.op._original or tensor.op


def zeros(dims: Dims, dtype: DType) -> Tensor:
    """Zeros of a static shape; an unknown dim counts as 0, an unknown rank as a scalar."""
    shape = tuple(d or 0 for d in dims or ())
    count = size(shape)
    if dtype.kind not in "biuf" or (count is not None and count <= _SMALL):
        fill: Any = b"" if dtype.kind == "S" else 0
        return constant_of(np.full(shape, fill, dtype.np), dtype, "zeros")
    import graphdock as tf

    made: Tensor = tf.zeros(shape, dtype)
    return made
