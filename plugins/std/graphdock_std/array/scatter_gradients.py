"""Gradients of the ops that write at index tuples."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock import ops as _ops

from graphdock_std.grad_support import static_shape, sum_to


def update_gradient(op: Any, grad: Any) -> Any:
    """Each update gets the gradient of its place, if a later one did not take the place over."""
    tensor, indices, updates = op.inputs
    shape = _ops.shape(indices)[:-1]
    numbers = _tf.reshape(_tf.range(1, _tf.reduce_prod(shape) + 1), shape)
    depth = static_shape(indices)
    known = depth is not None and depth[-1] is not None
    space = _ops.shape(tensor)[: depth[-1] if known else _ops.shape(indices)[-1]]
    owner = _tf.gather_nd(_tf.tensor_scatter_update(_tf.fill(space, 0), indices, numbers), indices)
    mine = _tf.equal(owner, numbers)
    rows = _tf.gather_nd(grad, indices)
    ones = _tf.fill(_tf.expand_dims(_tf.rank(rows) - _tf.rank(mine), 0), 1)
    mine = _tf.reshape(mine, _tf.concat([_ops.shape(mine), ones], 0))
    return _tf.select(mine, rows, _ops.zeros_like(updates))


def sparse_to_dense_gradient(op: Any, grad: Any) -> list[Any]:
    """Each value gets the gradient of its place, the default the sum of all others."""
    places, _, values, default = op.inputs
    dims = static_shape(places)
    depth = _tf.reshape(_ops.shape(op.inputs[1]), [1]) if dims is None else [1]
    tuples = places if dims is not None and len(dims) == 2 else _tf.reshape(places, _tf.concat([[-1], depth], 0))
    picked = _tf.gather_nd(grad, tuples)
    blank = _tf.sparse_to_dense(
        places,
        op.inputs[1],
        _tf.constant(0, values.dtype),
        _tf.constant(1, values.dtype),
        op.get_attr("validate_indices"),
    )
    return [sum_to(picked, values), _tf.reduce_sum(grad * blank)]
