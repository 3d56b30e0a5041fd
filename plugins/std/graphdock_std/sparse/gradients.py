"""Gradients of the ops over sparse tensors."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock import ops as _ops

from graphdock_std.grad_support import conjugate


def dense_matmul(op: Any, grad: Any) -> list[Any]:
    """Each element gets the product of its row of the gradient and its row of b; b gets the transposed product."""
    indices, values, shape, b = op.inputs
    adjoint_a, adjoint_b = op.get_attr("adjoint_a"), op.get_attr("adjoint_b")
    rows, columns = indices[:, 0], indices[:, 1]
    if adjoint_a:
        rows, columns = columns, rows
    dense = conjugate(_tf.transpose(b)) if adjoint_b else b
    of_values = _tf.reduce_sum(_tf.gather(grad, rows) * conjugate(_tf.gather(dense, columns)), 1)
    of_values = conjugate(of_values) if adjoint_a else of_values
    of_b = _ops.apply_op(
        "SparseTensorDenseMatMul", a_indices=indices, a_values=values, a_shape=shape, b=grad, adjoint_a=not adjoint_a
    )
    return [of_values, conjugate(_tf.transpose(of_b)) if adjoint_b else of_b]


def reorder(op: Any, _: Any, grad: Any) -> Any:
    """The gradient in the first order."""
    if grad is None:
        return None
    indices, values, shape = op.inputs
    numbers = _tf.range(_tf.size(values))
    _, order = _ops.apply_op("SparseReorder", input_indices=indices, input_values=numbers, input_shape=shape)
    return _tf.gather(grad, _tf.invert_permutation(order))


def fill_empty_rows(op: Any, _indices: Any, grad: Any, _empty: Any = None, _map: Any = None) -> list[Any]:
    """Each element gets the gradient of its place, the default the sum of all others."""
    if grad is None:
        return [None, None]
    places = op.outputs[3]
    given = _tf.gather(grad, places)
    other = _tf.tensor_scatter_update(grad, _tf.expand_dims(places, 1), _ops.zeros_like(given))
    return [given, _tf.reduce_sum(other)]
