"""Gradients of the segment reductions that are no formula."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
import numpy as np
from graphdock import dtypes
from graphdock import ops as _ops

from graphdock_std.array.indexing import gather
from graphdock_std.grad_support import conjugate, static_shape


def _column(ids: Any, values: Any, like: Any) -> Any:
    """``values``, one for each id, shaped so that it broadcasts over the slices of ``like``."""
    lead, dims = static_shape(ids), static_shape(like)
    if lead is not None and dims is not None:
        return _tf.reshape(values, _tf.concat([_ops.shape(ids), np.ones(len(dims) - len(lead), np.int32)], 0))
    ones = _tf.fill(_tf.expand_dims(_tf.rank(like) - _tf.rank(ids), 0), 1)
    return _tf.reshape(values, _tf.concat([_ops.shape(ids), ones], 0))


def segment_mean(op: Any, grad: Any) -> Any:
    """Each row gets its segment's gradient, divided by the number of the segment's rows."""
    data, ids = op.inputs
    counts = _tf.segment_sum(_ops.cast(_ops.ones_like(ids), data.dtype), ids)
    return gather(grad, ids) / _column(ids, gather(counts, ids), data)


def segment_extreme(op: Any, grad: Any) -> Any:
    """The segment's gradient, shared evenly by the elements that equal its maximum or minimum."""
    data, ids = op.inputs
    chosen = _tf.equal(data, gather(op.outputs[0], ids))
    number = _tf.segment_sum(_ops.cast(chosen, data.dtype), ids)
    share = gather(grad / _tf.maximum(number, _ops.constant(1, data.dtype)), ids)
    return _tf.select(chosen, share, _ops.zeros_like(share))


def segment_prod(op: Any, grad: Any) -> Any:
    """The product of the segment's other elements, also where one of them is zero."""
    data, ids = op.inputs
    return _product(
        data, grad, op.outputs[0], lambda x: _tf.segment_sum(x, ids), lambda x: _tf.segment_prod(x, ids), ids
    )


def _product(data: Any, grad: Any, product: Any, total: Any, multiply: Any, ids: Any) -> Any:
    zero = _tf.equal(data, _ops.constant(0, data.dtype))
    zeros = total(_ops.cast(zero, dtypes.int32))
    grad = _tf.select(_tf.greater(zeros, 1), _ops.zeros_like(grad), grad)
    others = _tf.select(zero, _ops.ones_like(data), data)
    without = gather(multiply(others), ids)
    partial = _tf.select(zero, without, gather(product, ids) / others)
    return gather(grad, ids) * conjugate(partial)


def _within(op: Any) -> tuple[Any, Any]:
    """The ids with 0 in place of negative ones, and whether each was not negative, over the slices of data."""
    data, ids, _ = op.inputs
    zero = _ops.zeros_like(ids)
    return _tf.maximum(ids, zero), _column(ids, _tf.greater_equal(ids, zero), data)


def unsorted_segment_extreme(op: Any, grad: Any) -> Any:
    """As for the sorted ones; a dropped slice gets zeros."""
    data, ids, count = op.inputs
    safe, kept = _within(op)
    chosen = _tf.logical_and(_tf.equal(data, gather(op.outputs[0], safe)), kept)
    number = _tf.unsorted_segment_sum(_ops.cast(chosen, data.dtype), ids, count)
    share = gather(grad / _tf.maximum(number, _ops.constant(1, data.dtype)), safe)
    return _tf.select(chosen, share, _ops.zeros_like(share))


def unsorted_segment_prod(op: Any, grad: Any) -> Any:
    data, ids, count = op.inputs
    safe, kept = _within(op)
    found = _product(
        data,
        grad,
        op.outputs[0],
        lambda x: _tf.unsorted_segment_sum(x, ids, count),
        lambda x: _tf.unsorted_segment_prod(x, ids, count),
        safe,
    )
    return _tf.select(kept, found, _ops.zeros_like(found))


def sparse_segment(op: Any, grad: Any) -> Any:
    """The segment's gradient, scaled as the op scales, summed over the places that use a row."""
    data, indices, ids = op.inputs[:3]
    rows = gather(grad, ids)
    if op.type != "SparseSegmentSum":
        counts = _tf.segment_sum(_ops.cast(_ops.ones_like(ids), data.dtype), ids)
        counts = counts if op.type == "SparseSegmentMean" else _tf.sqrt(counts)
        rows = rows / _column(ids, gather(counts, ids), rows)
    found = _tf.unsorted_segment_sum(rows, indices, _ops.shape(data)[0])
    found.set_shape(data.shape)
    return found
