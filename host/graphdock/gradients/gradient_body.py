"""The body of a gradient node: sees the forward body's tensors, and turns each into an input of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphdock.dtypes import DType
from graphdock.graph.body import BodyGraph
from graphdock.graph.graph import Graph
from graphdock.graph.tensor import Tensor
from graphdock.ops.apply import apply_op
from graphdock.ops.convert import constant_of
from graphdock.ops.core import zeros_like
from graphdock.shape import Dims, size

__all__ = ["GradientBody", "zeros", "zeros_of"]

#: Zeros of at most so many elements are a constant.
_SMALL = 1024


class GradientBody(BodyGraph):
    """A body in which gradients of ``forward`` are built. A tensor of the forward body that is used in here becomes an input.

    Attributes:
      forward: the forward body.
      needed: tensor of the forward body -> its placeholder in here; captures and constants are not among them.
    """

    def __init__(self, name: str, outer: Graph, forward: BodyGraph) -> None:
        super().__init__(name, outer)
        self.forward = forward
        self.needed: dict[Tensor, Tensor] = {}
        self._here: dict[Tensor, Tensor] = {}
        self._outer_of: dict[Tensor, Tensor] = {inner: around for around, inner in forward.captures.items()}

    def capture(self, tensor: Tensor) -> Tensor:
        if tensor.op.graph is not self.forward:
            return super().capture(tensor)
        if tensor in self._outer_of:
            return self.capture(self._outer_of[tensor])
        if tensor not in self._here:
            if tensor.op.verb == "constant":
                attrs = tensor.op.node_attrs
                self._here[tensor] = constant_of(attrs["value"], attrs["dtype"], graph=self)
            else:
                self._here[tensor] = self._fetch(tensor)
        return self._here[tensor]

    def _fetch(self, tensor: Tensor) -> Tensor:
        """What stands in here for a value that the forward body computes."""
        found = self.needed[tensor] = self._placeholder(tensor.op.name.rpartition("/")[2], tensor.dtype, tensor._dims)
        return found


def zeros_of(tensor: Tensor) -> Tensor:
    """Zeros like a tensor, or like the value of the variable behind a handle; in the default graph."""
    if tensor.dtype.name != "resource":
        return zeros_like(tensor)
    attrs = (tensor.op._original or tensor.op).node_attrs
    dims, dtype = attrs["shape"], attrs["dtype"]
    if dims is not None and None not in dims:
        return zeros(dims, dtype)
    return zeros_like(apply_op("ReadVariableOp", resource=tensor, dtype=dtype))


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
