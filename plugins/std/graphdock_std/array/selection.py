"""Public functions that choose, sort and count elements; arguments and defaults are TensorFlow 1's."""

from __future__ import annotations

from typing import Any, Literal

import graphdock as _tf
import numpy as np
from graphdock import dtypes, errors
from graphdock import ops as _ops
from graphdock.typing import DTypeLike, TensorLike

from graphdock_std.grad_support import static_shape


def setdiff1d(x: TensorLike, y: TensorLike, index_dtype: DTypeLike = dtypes.int32, name: str | None = None) -> Any:
    """The elements of the vector ``x`` that the vector ``y`` does not hold, in their order.

    Returns:
      A pair ``(out, idx)``: what is left, and its places in ``x``, of ``index_dtype``.
    """
    return _ops.apply_op("ListDiff", x=x, y=y, out_idx=dtypes.as_dtype(index_dtype), name=name)


def listdiff(x: TensorLike, y: TensorLike, out_idx: DTypeLike | None = None, name: str | None = None) -> Any:
    """The old name of :func:`setdiff1d`."""
    return setdiff1d(x, y, dtypes.int32 if out_idx is None else out_idx, name)


def top_k(
    input: TensorLike,
    k: TensorLike = 1,
    sorted: bool = True,
    name: str | None = None,
    index_type: DTypeLike = dtypes.int32,
) -> Any:
    """The ``k`` largest elements of each row (the last axis) and where they stand.

    Args:
      input: of rank 1 or more, with rows of ``k`` elements or more.
      k: a scalar.
      sorted: taken for TensorFlow's sake; they always come sorted, the largest first, of equal ones the first.

    Returns:
      A pair ``(values, indices)`` of shape ``input.shape[:-1] + [k]``. The gradient of the values goes to the elements chosen.
    """
    return _ops.apply_op("TopKV2", input=input, k=k, sorted=sorted, index_type=dtypes.as_dtype(index_type), name=name)


def in_top_k(predictions: TensorLike, targets: TensorLike, k: TensorLike, name: str | None = None) -> _ops.Tensor:
    """Return whether fewer than ``k`` classes have a larger prediction than the target.

    Args:
      predictions: float32, ``[batch, classes]``.
      targets: int32 or int64, ``[batch]``; one that is no class gives False, as does a row that is not finite.

    Returns:
      bool, ``[batch]``.
    """
    ids = _ops.convert_to_tensor(targets, preferred_dtype=dtypes.int32)
    count = _ops.cast(_ops.convert_to_tensor(k, preferred_dtype=ids.dtype), ids.dtype)
    return _ops.apply_op("InTopKV2", predictions=predictions, targets=ids, k=count, name=name)


def searchsorted(
    sorted_sequence: TensorLike,
    values: TensorLike,
    side: Literal["left", "right"] = "left",
    out_type: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> _ops.Tensor:
    """Return where each value could be put into its sorted row: before equal elements (``left``) or behind them (``right``).

    Args:
      sorted_sequence: ``[*batch, n]``, each row ascending.
      values: ``[*batch, m]``.

    Returns:
      A tensor of the shape of ``values`` and dtype ``out_type``.
    """
    if side not in ("left", "right"):
        raise errors.InvalidArgumentError(f"side is {side!r}", expected="'left' or 'right'")
    with _ops.name_scope(name or "searchsorted"):
        rows = _ops.convert_to_tensor(sorted_sequence)
        wanted = _ops.convert_to_tensor(values, rows.dtype)
        flat = [_tf.reshape(t, _tf.stack([_batch(t), _ops.shape(t)[-1]])) for t in (rows, wanted)]
        op = "LowerBound" if side == "left" else "UpperBound"
        found = _ops.apply_op(op, sorted_inputs=flat[0], values=flat[1], out_type=dtypes.as_dtype(out_type))
        return _tf.reshape(found, _ops.shape(wanted))


def _batch(x: Any) -> Any:
    """The number of rows of a tensor."""
    dims = static_shape(x)
    if dims is not None and None not in dims[:-1]:
        return int(np.prod(dims[:-1], dtype=np.int64))
    return _tf.reduce_prod(_ops.shape(x)[:-1])


def histogram_fixed_width(
    values: TensorLike,
    value_range: TensorLike,
    nbins: TensorLike = 100,
    dtype: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> _ops.Tensor:
    """Return how many values fall into each of ``nbins`` equal parts of a range; those outside count for its first or last part,
    NaN for none.

    Args:
      values: numbers of any shape.
      value_range: both ends, of the dtype of ``values``, the first below the second.
      dtype: int32 or int64, of the result.
    """
    x = _ops.convert_to_tensor(values)
    ends = _ops.convert_to_tensor(value_range, x.dtype)
    return _ops.apply_op(
        "HistogramFixedWidth",
        values=x,
        value_range=ends,
        nbins=nbins,
        dtype=dtypes.as_dtype(dtype),
        name=name or "histogram_fixed_width",
    )


def histogram_fixed_width_bins(
    values: TensorLike,
    value_range: TensorLike,
    nbins: TensorLike = 100,
    dtype: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> _ops.Tensor:
    """The part of :func:`histogram_fixed_width` that each value falls into, in the shape of ``values``.

    It is int32 for any ``dtype``, as TensorFlow's is.
    """
    with _ops.name_scope(name or "histogram_fixed_width_bins"):
        x = _ops.convert_to_tensor(values)
        ends = _ops.convert_to_tensor(value_range, x.dtype)
        fractions = _tf.truediv(x - ends[0], ends[1] - ends[0])
        parts = _tf.floor(fractions * _ops.cast(nbins, fractions.dtype))
        last = _ops.cast(_ops.convert_to_tensor(nbins, dtypes.int32) - 1, fractions.dtype)
        return _ops.cast(_tf.clip_by_value(parts, _ops.zeros_like(last), last), dtypes.int32)


def bincount(
    arr: TensorLike,
    weights: TensorLike | None = None,
    minlength: TensorLike | None = None,
    maxlength: TensorLike | None = None,
    dtype: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> _ops.Tensor:
    """Return how often each integer occurs, from 0 to the largest; or the sums of the weights of each.

    Args:
      arr: int32, not negative, any shape.
      weights: a number for each; the result is then of their dtype.
      minlength: the least size of the result, filled with zeros.
      maxlength: the most; larger integers are not counted.
      dtype: of the counts without weights.
    """
    with _ops.name_scope(name or "bincount"):
        numbers = _ops.convert_to_tensor(arr, dtypes.int32)
        flat = _tf.concat([_tf.reshape(numbers, [-1]), [-1]], 0)
        size = _tf.reduce_max(flat) + 1
        if minlength is not None:
            size = _tf.maximum(size, _ops.convert_to_tensor(minlength, dtypes.int32))
        if maxlength is not None:
            size = _tf.minimum(size, _ops.convert_to_tensor(maxlength, dtypes.int32))
        given = _ops.constant([], dtypes.as_dtype(dtype)) if weights is None else _ops.convert_to_tensor(weights)
        return _ops.apply_op("Bincount", arr=numbers, size=size, weights=given)


def confusion_matrix(
    labels: TensorLike,
    predictions: TensorLike,
    num_classes: TensorLike | None = None,
    dtype: DTypeLike = dtypes.int32,
    name: str | None = None,
    weights: TensorLike | None = None,
) -> _ops.Tensor:
    """Return how often each label (row) was predicted as each class (column), or the sums of the weights of each pair.

    Args:
      labels, predictions: integer vectors of one length; a last dim of 1 that only one of them has is taken out.
      num_classes: number of rows and columns, by default up to the largest class that occurs.
      dtype: of the result.

    Raises:
      InvalidArgumentError, in the step: a class that is negative or too large.
    """
    with _ops.name_scope(name or "confusion_matrix"):
        rows, columns = (_ops.convert_to_tensor(x) for x in (labels, predictions))
        ranks = [None if static_shape(x) is None else len(static_shape(x) or ()) for x in (rows, columns)]
        if ranks[0] is not None and ranks[1] is not None and abs(ranks[0] - ranks[1]) == 1:
            rows, columns = (
                _tf.squeeze(x, [-1]) if mine > other else x
                for x, mine, other in zip((rows, columns), ranks, ranks[::-1], strict=True)
            )
        rows, columns = _ops.cast(rows, dtypes.int64), _ops.cast(columns, dtypes.int64)
        if num_classes is None:
            count = _tf.maximum(_tf.reduce_max(rows), _tf.reduce_max(columns)) + 1
        else:
            count = _ops.cast(_ops.convert_to_tensor(num_classes), dtypes.int64)
        wanted = dtypes.as_dtype(dtype)
        if weights is None:
            each = _ops.cast(_ops.ones_like(columns), wanted)
        else:
            each = _ops.cast(_ops.convert_to_tensor(weights), wanted)
        return _tf.scatter_nd(_tf.stack([rows, columns], 1), each, _tf.stack([count, count]))


def sort(
    values: TensorLike,
    axis: int = -1,
    direction: Literal["ASCENDING", "DESCENDING"] = "ASCENDING",
    name: str | None = None,
) -> _ops.Tensor:
    """The elements sorted along an axis; NaN counts as the largest."""
    with _ops.name_scope(name or "sort"):
        return _sorted(values, axis, direction, 0)


def argsort(
    values: TensorLike,
    axis: int = -1,
    direction: Literal["ASCENDING", "DESCENDING"] = "ASCENDING",
    stable: bool = False,
    name: str | None = None,
) -> _ops.Tensor:
    """The int32 places of the elements in sorted order along an axis. It is always stable, whatever ``stable`` says."""
    with _ops.name_scope(name or "argsort"):
        return _sorted(values, axis, direction, 1)


def _sorted(values: Any, axis: int, direction: str, output: int) -> Any:
    """Output 0 or 1 of top_k over the whole axis; ascending is descending read backwards, of what is turned round."""
    if direction not in ("ASCENDING", "DESCENDING"):
        raise errors.InvalidArgumentError(f"direction is {direction!r}", expected="'ASCENDING' or 'DESCENDING'")
    x = _ops.convert_to_tensor(values)
    dims = static_shape(x)
    if dims is None and axis != -1:
        raise errors.InvalidArgumentError("an axis other than -1 needs a tensor of known rank", hint="use set_shape")
    if dims is not None and not -len(dims) <= axis < len(dims):
        raise errors.ShapeError(f"axis {axis} is out of bounds for rank {len(dims)}")
    order = None
    if dims is not None and axis % len(dims) != len(dims) - 1:
        order = list(range(len(dims)))
        order[axis], order[-1] = order[-1], order[axis]
        x = _tf.transpose(x, order)
    ascending = direction == "ASCENDING"
    last = [-1] if dims is None else [len(dims) - 1]
    turned = _tf.reverse(x, last) if ascending else x
    width = _ops.shape(x)[-1]
    found = top_k(turned, width)[output]
    if ascending:
        found = _tf.reverse(found, last)
        found = width - 1 - found if output else found
    return found if order is None else _tf.transpose(found, order)
