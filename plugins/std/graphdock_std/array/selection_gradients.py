"""Gradients of the ops that choose or count elements."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
import numpy as np
from graphdock import dtypes
from graphdock import ops as _ops

from graphdock_std.grad_support import static_shape


def unique(op: Any, grad: Any, *_: Any) -> Any:
    """Each distinct element is a copy of the first that equals it."""
    if grad is None:
        return None
    x, idx = op.inputs[0], op.outputs[1]
    count = _tf.size(x)
    first = _tf.unsorted_segment_min(_tf.range(count), idx, _tf.size(op.outputs[0]))
    found = _tf.unsorted_segment_sum(grad, first, count)
    found.set_shape(x.shape)
    return found


def top_k(op: Any, grad: Any, _: Any = None) -> Any:
    """Each chosen element gets the gradient of its place; the others get zero."""
    x, indices = op.inputs[0], op.outputs[1]
    if grad is None:
        return None
    shape = _ops.shape(x)
    width = shape[-1]
    count = _ops.cast(op.inputs[1], dtypes.int32)
    rows = _tf.range(_tf.size(indices)) // _tf.maximum(count, 1) * width
    places = rows + _tf.reshape(_ops.cast(indices, dtypes.int32), [-1])
    sums = _tf.unsorted_segment_sum(_tf.reshape(grad, [-1]), places, _tf.size(x))
    found = _tf.reshape(sums, shape)
    found.set_shape(x.shape)
    return found


def nth_element(op: Any, grad: Any) -> Any:
    """The gradient, shared evenly by the elements of the row that equal the one chosen."""
    x = op.inputs[0]
    equal = _ops.cast(_tf.equal(x, _tf.expand_dims(op.outputs[0], -1)), x.dtype)
    dims = static_shape(x)
    axis: Any = np.array([-1 if dims is None else len(dims) - 1], np.int32)
    number = _tf.reduce_sum(equal, axis, keepdims=True)
    return _tf.expand_dims(grad, -1) * equal / number


def bincount(op: Any, grad: Any) -> Any:
    """The gradient of its bin for each weight; zero for one that was dropped."""
    arr, size, weights = op.inputs
    if static_shape(weights) == (0,):
        return _ops.zeros_like(weights)
    margin = _tf.pad(grad, [[0, 1]])
    found = _tf.gather(margin, _tf.minimum(arr, size))
    return _tf.reshape(_tf.slice(_tf.reshape(found, [-1]), [0], [_tf.size(weights)]), _ops.shape(weights))
