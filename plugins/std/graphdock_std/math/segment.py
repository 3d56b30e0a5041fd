"""Public segment functions that are several ops or take old argument orders: means by unsorted ids, sums of chosen rows."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.typing import TensorLike


def _counts(data: Any, ids: Any, num_segments: Any) -> Any:
    """The number of slices of each segment, at least 1, over the slices of the result."""
    found = _tf.unsorted_segment_sum(_ops.cast(_ops.ones_like(ids), data.dtype), ids, num_segments)
    found = _tf.maximum(found, _ops.constant(1, data.dtype))
    lead, dims = ids.shape.dims, data.shape.dims
    if lead is not None and dims is not None:
        return _tf.reshape(found, [-1] + [1] * (len(dims) - len(lead)))
    ones = _tf.fill(_tf.expand_dims(_tf.rank(data) - _tf.rank(ids), 0), 1)
    return _tf.reshape(found, _tf.concat([[-1], ones], 0))


def unsorted_segment_mean(
    data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = None
) -> _ops.Tensor:
    """Means of the slices of ``data`` that share a segment id; 0 for a segment without any.

    Args:
      data: floating, of a shape that begins with that of ``segment_ids``.
      segment_ids: int32 or int64, below ``num_segments``; a negative one drops its slice.
      num_segments: a scalar.

    Returns:
      A tensor of shape ``[num_segments, *data.shape[rank(segment_ids):]]``.

    Raises:
      InvalidArgumentError, in the step: an id of ``num_segments`` or more.
    """
    with _ops.name_scope(name or "UnsortedSegmentMean"):
        data, ids = _ops.convert_to_tensor(data), _ops.convert_to_tensor(segment_ids)
        counts = _counts(data, ids, num_segments)
        return _tf.unsorted_segment_sum(data, ids, num_segments) / counts


def unsorted_segment_sqrt_n(
    data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = None
) -> _ops.Tensor:
    """Sums of the slices that share a segment id, each divided by the square root of their number. Arguments as for
    :func:`unsorted_segment_mean`.
    """
    with _ops.name_scope(name or "UnsortedSegmentSqrtN"):
        data, ids = _ops.convert_to_tensor(data), _ops.convert_to_tensor(segment_ids)
        counts = _tf.sqrt(_counts(data, ids, num_segments))
        return _tf.unsorted_segment_sum(data, ids, num_segments) / counts


def sparse_segment_sum(
    data: TensorLike,
    indices: TensorLike,
    segment_ids: TensorLike,
    name: str | None = None,
    num_segments: TensorLike | None = None,
) -> _ops.Tensor:
    """``segment_sum(gather(data, indices), segment_ids)`` without the rows in between.

    Args:
      data: a tensor of rank 1 or more.
      indices: a vector of rows of ``data``, int32 or int64.
      segment_ids: a vector of as many segments, 0 or more, each at least the one before it.
      num_segments: number of rows of the result; by default up to the last segment named. Segments without rows are zero.

    Raises:
      InvalidArgumentError, in the step: an index that is no row of ``data``; ids that decrease or reach ``num_segments``.
    """
    return _sparse("SparseSegmentSum", data, indices, segment_ids, num_segments, name)


def sparse_segment_mean(
    data: TensorLike,
    indices: TensorLike,
    segment_ids: TensorLike,
    name: str | None = None,
    num_segments: TensorLike | None = None,
) -> _ops.Tensor:
    """Means of chosen rows, by segment. Arguments as for :func:`sparse_segment_sum`."""
    return _sparse("SparseSegmentMean", data, indices, segment_ids, num_segments, name)


def sparse_segment_sqrt_n(
    data: TensorLike,
    indices: TensorLike,
    segment_ids: TensorLike,
    name: str | None = None,
    num_segments: TensorLike | None = None,
) -> _ops.Tensor:
    """Sums of chosen rows, by segment, each divided by the square root of the number of its rows. Arguments as for
    :func:`sparse_segment_sum`.
    """
    return _sparse("SparseSegmentSqrtN", data, indices, segment_ids, num_segments, name)


def _sparse(op: str, data: Any, indices: Any, ids: Any, count: Any, name: str | None) -> Any:
    return _ops.apply_op(op, data=data, indices=indices, segment_ids=ids, num_segments=count, name=name)
