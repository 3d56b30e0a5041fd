"""Sums, maxima and softmax over axes of sparse tensors."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock import dtypes, errors
from graphdock import ops as _ops
from graphdock.typing import TensorLike

from graphdock_std.sparse.shape import Sparse, sparse_reorder
from graphdock_std.sparse.tensor import SparseTensor, as_sparse


def sparse_reduce_sum(
    sp_input: Sparse,
    axis: TensorLike | None = None,
    keepdims: bool | None = None,
    reduction_axes: TensorLike | None = None,
    keep_dims: bool | None = None,
) -> _ops.Tensor:
    """The sum over axes, a Tensor.

    Args:
      axis: an axis, a list of them or None for all; negative ones count from the end. ``reduction_axes`` is its old name.
      keepdims: keep the reduced dims as 1; ``keep_dims`` is its old name.
    """
    return _dense(sp_input, _one(axis, reduction_axes), _one(keepdims, keep_dims), "sum")


def sparse_reduce_max(
    sp_input: Sparse,
    axis: TensorLike | None = None,
    keepdims: bool | None = None,
    reduction_axes: TensorLike | None = None,
    keep_dims: bool | None = None,
) -> _ops.Tensor:
    """The largest element over axes, of those that are there; 0 where none is. Arguments as for :func:`sparse_reduce_sum`."""
    return _dense(sp_input, _one(axis, reduction_axes), _one(keepdims, keep_dims), "max")


def sparse_reduce_sum_sparse(
    sp_input: Sparse,
    axis: TensorLike | None = None,
    keepdims: bool | None = None,
    reduction_axes: TensorLike | None = None,
    keep_dims: bool | None = None,
) -> SparseTensor:
    """As :func:`sparse_reduce_sum`, a SparseTensor in row-major order."""
    return _sparse(sp_input, _one(axis, reduction_axes), _one(keepdims, keep_dims), "sum")


def sparse_reduce_max_sparse(
    sp_input: Sparse,
    axis: TensorLike | None = None,
    keepdims: bool | None = None,
    reduction_axes: TensorLike | None = None,
    keep_dims: bool | None = None,
) -> SparseTensor:
    """As :func:`sparse_reduce_max`, a SparseTensor in row-major order."""
    return _sparse(sp_input, _one(axis, reduction_axes), _one(keepdims, keep_dims), "max")


def _one(new: Any, old: Any) -> Any:
    if new is not None and old is not None:
        raise errors.InvalidArgumentError("an argument was given under its new and its old name")
    return old if new is None else new


def _numbers(indices: Any, sizes: Any) -> Any:
    """The row-major number of each index tuple."""
    return _tf.reduce_sum(indices * _tf.cumprod(sizes, exclusive=True, reverse=True), [1])


def _kept(sp: SparseTensor, axis: Any) -> tuple[Any, Any, Any]:
    """The axes that are left, their sizes, and the number of each element among them."""
    rank = _tf.size(sp.dense_shape)
    if axis is None:
        kept = _tf.range(0)
    else:
        known = sp._rank()
        for a in [axis] if isinstance(axis, int) else axis if isinstance(axis, (list, tuple)) else []:
            if known is not None and isinstance(a, int) and not -known <= a < known:
                raise errors.ShapeError(f"axis {a} is out of bounds for rank {known}")
        gone = _tf.floormod(_tf.reshape(_ops.cast(_ops.convert_to_tensor(axis), dtypes.int32), [-1]), rank)
        kept = _tf.setdiff1d(_tf.range(rank), gone)[0]
    sizes = _tf.gather(sp.dense_shape, kept)
    return kept, sizes, _numbers(_tf.gather(sp.indices, kept, axis=1), sizes)


def _combined(values: Any, places: Any, count: Any, how: str) -> Any:
    if how == "sum":
        return _tf.unsorted_segment_sum(values, places, count)
    found = _tf.unsorted_segment_max(values, places, count)
    number = _tf.unsorted_segment_sum(_ops.ones_like(places), places, count)
    return _tf.select(_tf.greater(number, 0), found, _ops.zeros_like(found))


def _whole_shape(sp: SparseTensor, kept: Any, sizes: Any) -> Any:
    """The shape with 1 for each axis that is reduced."""
    return _tf.scatter_nd(_tf.expand_dims(kept, 1), sizes - 1, _ops.shape(sp.dense_shape)) + 1


def _static(sp: SparseTensor, axis: Any, keep: bool) -> Any:
    """Return what is known of the result's shape."""
    dims = sp.shape.as_list() if sp.shape.rank is not None else None
    if axis is None:
        return [] if not keep else None if dims is None else [1] * len(dims)
    axes = [axis] if isinstance(axis, int) else axis
    if dims is None or not isinstance(axes, (list, tuple)) or not all(isinstance(a, int) for a in axes):
        return None
    gone = {a % len(dims) for a in axes}
    return [1 if i in gone else d for i, d in enumerate(dims) if keep or i not in gone]


def _dense(sp_input: Sparse, axis: Any, keep: Any, how: str) -> _ops.Tensor:
    sp = as_sparse(sp_input)
    with _ops.name_scope(f"SparseReduce{how.capitalize()}"):
        kept, sizes, places = _kept(sp, axis)
        found = _combined(sp.values, places, _tf.reduce_prod(sizes, [0]), how)
        result = _tf.reshape(found, _whole_shape(sp, kept, sizes) if keep else sizes)
        result.set_shape(_tf.TensorShape(_static(sp, axis, bool(keep))))
        return result


def _sparse(sp_input: Sparse, axis: Any, keep: Any, how: str) -> SparseTensor:
    sp = as_sparse(sp_input)
    with _ops.name_scope(f"SparseReduce{how.capitalize()}Sparse"):
        kept, sizes, places = _kept(sp, axis)
        distinct, at = _tf.unique(places)
        found = _combined(sp.values, at, _tf.size(distinct), how)
        if keep:
            sizes = _whole_shape(sp, kept, sizes)
        return sparse_reorder(SparseTensor(_tf.transpose(_tf.unravel_index(distinct, sizes)), found, sizes))


def sparse_softmax(sp_input: Sparse, name: str | None = None) -> SparseTensor:
    """The softmax over the last axis of the elements that are there; the others stay away.

    Args:
      sp_input: floating, of rank 2 or more.
    """
    sp = as_sparse(sp_input)
    rank = sp._rank()
    if rank is not None and rank < 2:
        raise errors.ShapeError(f"sparse_softmax of shape {sp.shape}", expected="rank 2 or more")
    with _ops.name_scope(name or "SparseSoftmax"):
        distinct, at = _tf.unique(_numbers(sp.indices[:, :-1], sp.dense_shape[:-1]))
        rows = _tf.size(distinct)
        most = _ops.stop_gradient(_tf.gather(_tf.unsorted_segment_max(sp.values, at, rows), at))
        powers = _tf.exp(sp.values - most)
        total = _tf.gather(_tf.unsorted_segment_sum(powers, at, rows), at)
        return sp._with_elements(sp.indices, powers / total)
