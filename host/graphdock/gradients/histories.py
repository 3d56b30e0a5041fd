"""Gradients of the ops that turn tensors into histories and back: each is the other's."""

from __future__ import annotations

from typing import Any

from graphdock.gradients.indexed_slices import IndexedSlices, dense
from graphdock.graph.operation import Operation
from graphdock.ops.apply import apply_op
from graphdock.ops.core import shape as shape_of
from graphdock.ops.operators import apply_operator

__all__ = ["stack", "unstack"]


def unstack(op: Operation, grads: Any) -> Any:
    """The sum of what the way back of each loop that read the history made of its elements."""
    value = op.inputs[0]
    dims = shape_of(value)
    found = [
        apply_op("HistoryStack", history=part, dims=dims, T=value.dtype, reverse=op.get_attr("reverse"))
        for part in grads.parts
    ]
    return found[0] if len(found) == 1 else apply_op("AddN", inputs=found)


def stack(op: Operation, grad: Any) -> Any:
    """The rows of the gradient, for the way back of the loop that made the history."""
    rows = dense(grad) if isinstance(grad, IndexedSlices) else grad
    count = apply_operator("__getitem__", shape_of(rows), 0)
    return apply_op("HistoryUnstack", value=rows, count=count, reverse=op.get_attr("reverse"))
