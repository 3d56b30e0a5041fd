"""Rows of an embedding table, combined by the rows of a sparse tensor of ids; edit distances of sparse sequences."""

from __future__ import annotations

from typing import Any, Literal

import graphdock as _tf
from graphdock import dtypes, errors
from graphdock import ops as _ops

from graphdock_std.grad_support import static_shape
from graphdock_std.sparse.shape import Sparse, sparse_fill_empty_rows, sparse_reshape, sparse_retain
from graphdock_std.sparse.tensor import SparseTensor, as_sparse

Combiner = Literal["sum", "mean", "sqrtn"]


def embedding_lookup_sparse(
    params: Any,
    sp_ids: Sparse,
    sp_weights: Sparse | None,
    partition_strategy: Literal["mod", "div"] = "mod",
    name: str | None = None,
    combiner: Combiner | None = None,
    max_norm: Any = None,
) -> _ops.Tensor:
    """For each row of ids the rows of a table that they name, combined in one.

    Args:
      params: the table ``[rows, *dims]``, or a list of its shards, as for :func:`tf.nn.embedding_lookup`.
      sp_ids: int32 or int64 ids, ``[batch, any]``, in row-major order.
      sp_weights: None, which weighs all alike; or floating weights with the places of ``sp_ids``.
      combiner: ``sum``; ``mean``, the default, divides it by the sum of the weights, ``sqrtn`` by the root of the sum of their
        squares.
      max_norm: make rows of the table whose Euclidean norm is above it shorter.

    Returns:
      A tensor of shape ``[batch, *dims]``, as far as the last row that has ids; a row without ids is zero.
    """
    combiner = "mean" if combiner is None else combiner
    if combiner not in ("sum", "mean", "sqrtn"):
        raise errors.InvalidArgumentError("unknown combiner", expected="'sum', 'mean' or 'sqrtn'", got=repr(combiner))
    sp = as_sparse(sp_ids, "sp_ids")
    weights = None if sp_weights is None else as_sparse(sp_weights, "sp_weights")
    with _ops.name_scope(name or "embedding_lookup_sparse"):
        segments = sp.indices[:, 0]
        ids, at = _tf.unique(sp.values)
        rows = _tf.nn.embedding_lookup(params, ids, partition_strategy, max_norm=max_norm)
        if weights is None:
            reduce = {
                "sum": _tf.sparse_segment_sum,
                "mean": _tf.sparse_segment_mean,
                "sqrtn": _tf.sparse_segment_sqrt_n,
            }[combiner]
            return reduce(rows, at, segments)
        scale = _ops.cast(weights.values, rows.dtype)
        rows = _tf.gather(rows, at)
        total = _tf.segment_sum(rows * _beside(scale, rows), segments)
        if combiner == "sum":
            return total
        if combiner == "mean":
            return _tf.div_no_nan(total, _beside(_tf.segment_sum(scale, segments), total))
        return _tf.div_no_nan(total, _beside(_tf.sqrt(_tf.segment_sum(_tf.square(scale), segments)), total))


def _beside(vector: Any, rows: Any) -> Any:
    """A vector in a shape that broadcasts over the elements of rows."""
    dims = static_shape(rows)
    if dims is not None:
        return _tf.reshape(vector, [-1] + [1] * (len(dims) - 1))
    ones = _tf.fill(_tf.expand_dims(_tf.rank(rows) - 1, 0), 1)
    return _tf.reshape(vector, _tf.concat([[-1], ones], 0))


def safe_embedding_lookup_sparse(
    embedding_weights: Any,
    sparse_ids: Sparse,
    sparse_weights: Sparse | None = None,
    combiner: Combiner = "mean",
    default_id: int | None = None,
    name: str | None = None,
    partition_strategy: Literal["mod", "div"] = "div",
    max_norm: Any = None,
) -> _ops.Tensor:
    """As :func:`embedding_lookup_sparse`, for ids that may be missing or invalid.

    Negative ids are left out, and, unless the combiner is ``sum``, those whose weight is not positive. A row without any gets the
    row ``default_id`` of the table, or zeros.

    Args:
      sparse_ids: ids of shape ``[*batch, any]``, of rank 2 or more. sparse_weights: of the dtype of the table.

    Returns:
      A tensor of shape ``[*batch, *dims]``.

    Raises:
      DTypeError: weights of another dtype than a Variable or tensor of the table.
    """
    with _ops.name_scope(name or "safe_embedding_lookup_sparse"):
        given = as_sparse(sparse_ids, "sparse_ids")
        lead = given.dense_shape[:-1]
        flat = _tf.stack([_tf.reduce_prod(lead, [0]), given.dense_shape[-1]])
        ids = sparse_reshape(given, flat)
        weights = None
        keep = _tf.greater_equal(ids.values, 0)
        if sparse_weights is not None:
            weights = SparseTensor(ids.indices, as_sparse(sparse_weights, "sparse_weights").values, ids.dense_shape)
            several = isinstance(embedding_weights, (list, tuple, _tf.PartitionedVariable))
            parts = list(embedding_weights) if several else [embedding_weights]
            embedding_weights = [_of_dtype(part, weights.dtype) for part in parts]
            if combiner != "sum":
                keep = _tf.logical_and(keep, _tf.greater(weights.values, 0))
            weights = sparse_retain(weights, keep)
        ids = sparse_retain(ids, keep)
        ids, empty = sparse_fill_empty_rows(ids, default_id or 0)
        if weights is not None:
            weights, _ = sparse_fill_empty_rows(weights, 1.0)
        found = embedding_lookup_sparse(
            embedding_weights, ids, weights, partition_strategy, combiner=combiner, max_norm=max_norm
        )
        if default_id is None:
            found = _tf.select(_beside(empty, found), _ops.zeros_like(found), found)
        result = _tf.reshape(found, _tf.concat([_ops.cast(lead, dtypes.int32), _ops.shape(found)[1:]], 0))
        dims, batch = static_shape(found), given.shape
        if dims is not None and batch.rank is not None:
            result.set_shape([*batch.as_list()[:-1], *dims[1:]])
        return result


def _of_dtype(part: Any, dtype: dtypes.DType) -> Any:
    if not isinstance(part, (_tf.Variable, _tf.Tensor)):
        return _ops.convert_to_tensor(part, dtype)
    if part.dtype.base_dtype is not dtype:
        raise errors.DTypeError("sparse_weights must be of the table's dtype", expected=str(part.dtype), got=str(dtype))
    return part


def edit_distance(
    hypothesis: Sparse, truth: Sparse, normalize: bool = True, name: str = "edit_distance"
) -> _ops.Tensor:
    """The Levenshtein distances of sequences, which are the last axis of two sparse tensors.

    Args:
      hypothesis, truth: SparseTensors of one dtype and rank, in row-major order.
      normalize: divide by the length of the truth, which gives infinity where only the truth is empty.

    Returns:
      float32, of their shapes without the last axis, the larger dim of both.
    """
    a, b = as_sparse(hypothesis, "hypothesis"), as_sparse(truth, "truth")
    return _ops.apply_op(  # type: ignore[no-any-return]
        "EditDistance",
        hypothesis_indices=a.indices,
        hypothesis_values=a.values,
        hypothesis_shape=a.dense_shape,
        truth_indices=b.indices,
        truth_values=b.values,
        truth_shape=b.dense_shape,
        normalize=normalize,
        name=name,
    )
