"""Gradients of the host's structural ops, where a formula does not say it. Of what turns tensors into histories and back each is
the other's."""

from __future__ import annotations

from typing import Any

from graphdock.gradients.indexed_slices import IndexedSlices, dense
from graphdock.graph.operation import Operation
from graphdock.ops.apply import apply_op
from graphdock.ops.core import apply_operator
from graphdock.ops.core import cast as _cast
from graphdock.ops.core import shape as shape_of

__all__ = ["add_n", "cast", "optional_from_value", "optional_get_value", "read_variable", "stack", "unstack"]


def add_n(op: Operation, grad: Any) -> list[Any]:
    """Every addend gets the gradient of the sum."""
    return [grad] * len(op.inputs)


def cast(op: Operation, grad: Any) -> Any:
    """The gradient in the input's dtype, of a complex one for a real input the real part; else none."""
    source = op.inputs[0].dtype
    if not source.is_differentiable or not grad.dtype.is_differentiable:
        return None
    return _cast(grad, source)


def read_variable(op: Operation, grad: Any) -> Any:
    """The gradient by the variable's value; backprop sums it at the handle over all reads."""
    return grad


def optional_from_value(op: Operation, grads: Any) -> Any:
    """The sum of what the gradients' own branches left."""
    x = op.inputs[0]
    found = [apply_op("OptionalGetValue", optional=g, T=x.dtype, shape=x._dims) for g in grads.parts]
    return found[0] if len(found) == 1 else apply_op("AddN", inputs=found)


def optional_get_value(op: Operation, grad: Any) -> Any:
    """The gradient, left for the gradient of the branch."""
    return apply_op("OptionalFromValue", x=dense(grad) if isinstance(grad, IndexedSlices) else grad)


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
        from graphdock.control_flow.scan_loop import zeros_behind

        found = [zeros_behind(rows, value) for rows in found]
    return found[0] if len(found) == 1 else apply_op("AddN", inputs=found)


def stack(op: Operation, grad: Any) -> Any:
    """The rows of the gradient, for the way back of the loop that made the history."""
    rows = dense(grad) if isinstance(grad, IndexedSlices) else grad
    count = apply_operator("__getitem__", shape_of(rows), 0)
    return apply_op("HistoryUnstack", value=rows, count=count, reverse=op.get_attr("reverse"))
