"""Gradients of the ops that turn tensors into histories and back: each is the other's."""

from __future__ import annotations

from typing import Any

from graphdock.control_flow.scan_loop import zeros_behind
from graphdock.gradients.indexed_slices import IndexedSlices, dense
from graphdock.graph.operation import Operation
from graphdock.ops.apply import apply_op
from graphdock.ops.core import shape as shape_of
from graphdock.ops.operators import apply_operator

__all__ = ["stack", "unstack"]


def unstack(op: Operation, grads: Any) -> Any:
    """The sum of what the way back of each loop that read the history made of its elements."""
    value, partial = op.inputs[0], op.get_attr("partial")
    dims = shape_of(value)
    if partial:
        import graphdock as tf

        dims = tf.concat([[-1], dims[1:]], 0)
    found = [
        apply_op("HistoryStack", history=part, dims=dims, T=value.dtype, reverse=op.get_attr("reverse"))
        for part in grads.parts
    ]
    if partial:
        found = [zeros_behind(rows, value) for rows in found]
    return found[0] if len(found) == 1 else apply_op("AddN", inputs=found)


def stack(op: Operation, grad: Any) -> Any:
    """The rows of the gradient, for the way back of the loop that made the history."""
    rows = dense(grad) if isinstance(grad, IndexedSlices) else grad
    count = apply_operator("__getitem__", shape_of(rows), 0)
    return apply_op("HistoryUnstack", value=rows, count=count, reverse=op.get_attr("reverse"))
