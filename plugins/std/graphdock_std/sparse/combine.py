"""Several sparse tensors in one: sums, extremes, concatenations, ids and values merged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import graphdock as _tf
from graphdock import dtypes, errors
from graphdock import ops as _ops
from graphdock.typing import TensorLike

from graphdock_std.sparse.dense import plus
from graphdock_std.sparse.shape import sparse_reorder, sparse_retain
from graphdock_std.sparse.tensor import SparseTensor, SparseTensorValue, as_sparse


def sparse_add(
    a: Any, b: Any, threshold: TensorLike | None = None, thresh: TensorLike | None = None, name: str | None = None
) -> Any:
    """The sum of two tensors of one shape, of which one or both are sparse.

    Args:
      a, b: two SparseTensors, or one and a Tensor.
      threshold: leave out elements of a sparse sum whose absolute value is smaller; 0 leaves out none. ``thresh`` is its old name.

    Returns:
      A SparseTensor in row-major order of two sparse ones, otherwise a Tensor.
    """
    if threshold is not None and thresh is not None:
        raise errors.InvalidArgumentError("threshold and thresh are the same argument; both were given")
    limit = thresh if threshold is None else threshold
    kinds = (SparseTensor, SparseTensorValue)
    if not isinstance(a, kinds) and not isinstance(b, kinds):
        raise errors.DTypeError("sparse_add: at least one of both must be a SparseTensor")
    with _ops.name_scope(name or "SparseAdd"):
        if not isinstance(b, kinds):
            return plus(as_sparse(a), b)
        if not isinstance(a, kinds):
            return plus(as_sparse(b), a)
        x, y = as_sparse(a, "a"), as_sparse(b, "b")
        indices, order, segments, _ = _union(x, y)
        values = _tf.segment_sum(_tf.gather(_tf.concat([x.values, y.values], 0), order), segments)
        total = x._with_elements(indices, values)
        total._static = x.shape.merge_with(y.shape)
        if limit is None or (isinstance(limit, (int, float)) and limit == 0):
            return total
        size = _tf.abs(values)
        return sparse_retain(total, _tf.greater_equal(size, _ops.convert_to_tensor(limit, size.dtype)))


def _union(a: SparseTensor, b: SparseTensor) -> tuple[Any, Any, Any, Any]:
    """The places of both in row-major order, each once.

    Returns:
      The places; the order of the elements of ``a`` and ``b``, one behind the other; the place of each in that order; the place
      of each in their own.

    Raises:
      ShapeError: shapes that are known to differ; those that turn out to differ are an error of the step.
    """
    if not a.shape.is_compatible_with(b.shape):
        raise errors.ShapeError(f"sparse tensors of shapes {a.shape} and {b.shape}", expected="one shape")
    shape = a.dense_shape
    if not (a.shape.is_fully_defined() and b.shape.is_fully_defined()):
        same = _tf.Assert(_tf.reduce_all(_tf.equal(shape, b.dense_shape)), ["shapes differ:", shape, b.dense_shape])
        with _ops.control_dependencies([same]):
            shape = _ops.identity(shape)
    indices = _tf.concat([a.indices, b.indices], 0)
    count = _tf.range(_tf.size(a.values) + _tf.size(b.values))
    ordered, order = _ops.apply_op("SparseReorder", input_indices=indices, input_values=count, input_shape=shape)
    # tuples are compared, not their row-major numbers: those of a large shape are beyond 64 bits
    begins = _ops.cast(_tf.reduce_any(_tf.not_equal(ordered[1:], ordered[:-1]), 1), count.dtype)
    segments = _tf.cumsum(_tf.concat([_ops.zeros_like(count[:1]), begins], 0))
    places = _tf.gather(ordered, _tf.segment_min(count, segments))
    return places, order, segments, _tf.gather(segments, _tf.invert_permutation(order))


def sparse_maximum(
    sp_a: SparseTensor | SparseTensorValue, sp_b: SparseTensor | SparseTensorValue, name: str | None = None
) -> SparseTensor:
    """The larger elements of two sparse tensors of one shape; where only one has an element the other counts as 0."""
    return _extreme(sp_a, sp_b, _tf.maximum, name or "SparseSparseMaximum")


def sparse_minimum(
    sp_a: SparseTensor | SparseTensorValue, sp_b: SparseTensor | SparseTensorValue, name: str | None = None
) -> SparseTensor:
    """The smaller elements of two sparse tensors of one shape; where only one has an element the other counts as 0."""
    return _extreme(sp_a, sp_b, _tf.minimum, name or "SparseSparseMinimum")


def _extreme(sp_a: Any, sp_b: Any, function: Any, name: str) -> SparseTensor:
    with _ops.name_scope(name):
        a, b = as_sparse(sp_a, "sp_a"), as_sparse(sp_b, "sp_b")
        indices, _, _, places = _union(a, b)
        total, first = _ops.shape(indices)[0], _tf.size(a.values)
        of_a = _tf.unsorted_segment_sum(a.values, places[:first], total)
        of_b = _tf.unsorted_segment_sum(b.values, places[first:], total)
        made = a._with_elements(indices, function(of_a, of_b))
        made._static = a.shape.merge_with(b.shape)
        return made


def sparse_concat(
    axis: int | None = None,
    sp_inputs: Sequence[SparseTensor | SparseTensorValue] | None = None,
    name: str | None = None,
    expand_nonconcat_dim: bool = False,
    concat_dim: int | None = None,
    expand_nonconcat_dims: bool | None = None,
) -> SparseTensor:
    """Sparse tensors of one rank joined along an axis, in row-major order.

    Args:
      axis: the axis, a Python integer; ``concat_dim`` is its old name.
      expand_nonconcat_dims: let the other dims be the largest of each; otherwise they must agree. Also without the s.
    """
    along = concat_dim if axis is None else axis
    expand = expand_nonconcat_dim if expand_nonconcat_dims is None else expand_nonconcat_dims
    if along is None or not isinstance(sp_inputs, (list, tuple)) or not sp_inputs:
        raise errors.InvalidArgumentError("sparse_concat needs an axis and a list of SparseTensors")
    parts = [as_sparse(sp, f"sp_inputs[{i}]") for i, sp in enumerate(sp_inputs)]
    if len(parts) == 1:
        return parts[0]
    with _ops.name_scope(name or "SparseConcat"):
        ranks = [r for r in (sp._rank() for sp in parts) if r is not None]
        if ranks and not -ranks[0] <= along < ranks[0]:
            raise errors.ShapeError(f"axis {along} is out of bounds for rank {ranks[0]}")
        static = _joined_shape([sp.shape for sp in parts], along, expand)
        shapes = [sp.dense_shape for sp in parts]
        at = _tf.floormod(_ops.constant(along), _tf.size(shapes[0]))
        unit = _tf.one_hot(at, _tf.size(shapes[0]), dtype=dtypes.int64)
        whole = shapes[0]
        for shape in shapes[1:]:
            if expand:
                whole = _tf.maximum(whole, shape)
            else:
                same = _tf.Assert(
                    _tf.reduce_all(_tf.logical_or(_tf.equal(whole, shape), _tf.equal(unit, 1))),
                    ["sparse_concat: shapes that differ beside the axis:", whole, shape],
                )
                with _ops.control_dependencies([same]):
                    whole = _ops.identity(whole)
        offset: Any = _ops.constant(0, dtypes.int64)
        moved = []
        for sp in parts:
            moved.append(sp.indices + offset * unit)
            offset = offset + sp.dense_shape[along]
        places, whole = _tf.concat(moved, 0), whole * (1 - unit) + offset * unit
        if ranks:
            places.set_shape([None, ranks[0]])
            whole.set_shape([ranks[0]])
        joined = SparseTensor(places, _tf.concat([sp.values for sp in parts], 0), whole)
        joined._static = static
        return sparse_reorder(joined)


def _joined_shape(shapes: list[Any], along: int, expand: bool) -> Any:
    """The static shape of sparse tensors joined along an axis; None where no rank is known.

    Raises:
      ShapeError: known sizes beside the axis that differ, unless they ``expand``.
    """
    known = [s.as_list() for s in shapes if s.rank is not None]
    if not known:
        return None
    if any(len(dims) != len(known[0]) for dims in known):
        raise errors.ShapeError(f"sparse tensors of shapes {', '.join(map(str, shapes))}", expected="one rank")
    found: list[Any] = []
    for i, sizes in enumerate(zip(*known, strict=True)):
        whole = len(sizes) == len(shapes) and None not in sizes
        given = {d for d in sizes if d is not None}
        if i == along % len(known[0]):
            found.append(sum(sizes) if whole else None)
        elif expand:
            found.append(max(given) if whole else None)
        elif len(given) > 1:
            raise errors.ShapeError(
                f"sparse tensors of shapes {', '.join(map(str, shapes))}", expected=f"one size in dim {i}"
            )
        else:
            found.append(next(iter(given), None))
    return _tf.TensorShape(found)


def sparse_merge(
    sp_ids: Any, sp_values: Any, vocab_size: Any, name: str | None = None, already_sorted: bool = False
) -> SparseTensor:
    """The values of one sparse tensor at the ids that another holds, in place of the last axis.

    Args:
      sp_ids: a SparseTensor of int32 or int64, or a list of them.
      sp_values: a SparseTensor with an element wherever ``sp_ids`` have one.
      vocab_size: number of ids, or a list of as many as there are in ``sp_ids``: size of the new last axes.
      already_sorted: the ids are in ascending order already, and nothing is sorted.

    Raises:
      InvalidArgumentError: lists of different lengths; in the step: an id that is negative or too large.
    """
    if isinstance(sp_ids, (SparseTensor, SparseTensorValue)):
        sp_ids, vocab_size = [sp_ids], [vocab_size]
    if not isinstance(vocab_size, (list, tuple)) or len(vocab_size) != len(sp_ids):
        raise errors.InvalidArgumentError("sparse_merge needs a vocab_size for each of sp_ids")
    with _ops.name_scope(name or "SparseMerge"):
        ids = [as_sparse(sp, "sp_ids") for sp in sp_ids]
        held = as_sparse(sp_values, "sp_values")
        columns = [_tf.expand_dims(_ops.cast(sp.values, dtypes.int64), 1) for sp in ids]
        sizes = [_tf.reshape(_ops.cast(_ops.convert_to_tensor(v), dtypes.int64), [1]) for v in vocab_size]
        merged = SparseTensor(
            _tf.concat([ids[0].indices[:, :-1], *columns], 1),
            held.values,
            _tf.concat([ids[0].dense_shape[:-1], *sizes], 0),
        )
        return merged if already_sorted else sparse_reorder(merged)
