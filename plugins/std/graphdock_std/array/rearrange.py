"""Public functions that move or repeat elements, and a few that hand tensors and shapes on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import graphdock as _tf
import numpy as np
from graphdock import dtypes, errors
from graphdock import ops as _ops
from graphdock.shape import as_dims, broadcast
from graphdock.typing import DTypeLike, ShapeLike, TensorLike

from graphdock_std.grad_support import is_tensor, static_shape


def reverse_sequence(
    input: TensorLike,
    seq_lengths: TensorLike,
    seq_axis: int | None = None,
    batch_axis: int | None = None,
    name: str | None = None,
    seq_dim: int | None = None,
    batch_dim: int | None = None,
) -> _ops.Tensor:
    """The first elements of each slice of a batch in reverse order; what comes after them stays.

    Args:
      seq_lengths: int32 or int64, for each slice the number of elements that are reversed.
      seq_axis: the axis along which they are reversed. ``seq_dim`` is its old name.
      batch_axis: the axis along which lengths differ, 0 by default. ``batch_dim`` is its old name.

    Raises:
      InvalidArgumentError: no axis, an axis under both names; in the step: a length beyond the axis.
    """
    for a, b, what in ((seq_axis, seq_dim, "seq"), (batch_axis, batch_dim, "batch")):
        if a is not None and b is not None:
            raise errors.InvalidArgumentError(f"{what}_axis and {what}_dim are the same argument; both were given")
    along = seq_dim if seq_axis is None else seq_axis
    batch = batch_dim if batch_axis is None else batch_axis
    if along is None:
        raise errors.InvalidArgumentError("reverse_sequence needs seq_axis")
    lengths = _ops.convert_to_tensor(seq_lengths, preferred_dtype=dtypes.int32)
    return _ops.apply_op(  # type: ignore[no-any-return]
        "ReverseSequence", input=input, seq_lengths=lengths, seq_dim=along, batch_dim=batch or 0, name=name
    )


def repeat(input: TensorLike, repeats: TensorLike, axis: int | None = None, name: str | None = None) -> _ops.Tensor:
    """Each slice along an axis, repeated.

    Args:
      repeats: how often: an integer, or one for each slice; a negative one counts as 0.
      axis: the axis; by default the tensor is taken as a vector.
    """
    with _ops.name_scope(name or "Repeat"):
        x = _ops.convert_to_tensor(input)
        if axis is None:
            x, axis = _tf.reshape(x, [-1]), 0
        dims = static_shape(x)
        if dims is not None and not -len(dims) <= axis < len(dims):
            raise errors.ShapeError(f"axis {axis} is out of bounds for rank {len(dims)}")
        if dims is None and axis < 0:
            axis_size = _ops.shape(x)[axis]
            return _tf.gather(x, _copies(repeats, axis_size), axis=axis)
        size = dims[axis] if dims is not None and dims[axis] is not None else _ops.shape(x)[axis]
        return _tf.gather(x, _copies(repeats, size), axis=axis)


def _copies(repeats: Any, size: Any) -> Any:
    """For each place of the result, the slice that it is a copy of."""
    if not is_tensor(repeats) and isinstance(size, int):
        counts = np.maximum(np.asarray(repeats), 0)
        if counts.ndim > 1 or counts.size not in (1, size):
            raise errors.ShapeError(f"repeats has shape {list(counts.shape)}", expected=f"a scalar or [{size}]")
        return np.repeat(np.arange(size, dtype=np.int32), counts)
    counts = _tf.maximum(_ops.cast(_ops.convert_to_tensor(repeats), dtypes.int32), 0)
    ends = _tf.cumsum(_tf.broadcast_to(counts, _tf.stack([size])))
    return _tf.searchsorted(ends, _tf.range(_tf.reduce_sum(_tf.broadcast_to(counts, _tf.stack([size])))), "right")


def shape_n(
    input: Sequence[TensorLike], out_type: DTypeLike = dtypes.int32, name: str | None = None
) -> list[_ops.Tensor]:
    """The shapes of several tensors."""
    with _ops.name_scope(name or "ShapeN"):
        return [_ops.shape(x, out_type=dtypes.as_dtype(out_type)) for x in input]


def guarantee_const(input: TensorLike, name: str | None = None) -> _ops.Tensor:
    """The same tensor. TensorFlow's promise that it never changes means nothing here: what is constant is found."""
    return _ops.identity(input, name=name or "GuaranteeConst")


def parallel_stack(values: Sequence[TensorLike], name: str = "parallel_stack") -> _ops.Tensor:
    """Tensors of one shape along a new first axis; the same as ``tf.stack``."""
    return _tf.stack(values, name=name)


def broadcast_static_shape(shape_x: ShapeLike, shape_y: ShapeLike) -> _tf.TensorShape:
    """The static shape that two static shapes broadcast to.

    Raises:
      ShapeError: they do not.
    """
    return _tf.TensorShape(broadcast(as_dims(shape_x), as_dims(shape_y)))
