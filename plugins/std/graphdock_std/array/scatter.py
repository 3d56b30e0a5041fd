"""Changing rows and slices of variables: ``tf.scatter_update`` and its kin; ``tf.sparse_to_dense``."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock import errors
from graphdock import ops as _ops
from graphdock.shape import show
from graphdock.typing import TensorLike

from graphdock_std.array.indexing import batch_tuples
from graphdock_std.grad_support import static_shape


def scatter_update(
    ref: _tf.Variable, indices: TensorLike, updates: TensorLike, use_locking: bool = True, name: str | None = None
) -> _ops.Tensor:
    """Set rows ``indices`` of the Variable ``ref`` to ``updates``; returns its new value.

    Args:
      indices: int32 or int64, of any shape; one that is out of range is an InvalidArgumentError in the step, before any write.
      updates: of shape ``indices.shape + ref.shape[1:]`` and the variable's dtype, or a scalar.
      use_locking: taken for TensorFlow's sake; an update is never torn.

    Raises:
      ShapeError: updates that are known not to fit.
    """
    return _scatter("ResourceScatterUpdate", ref, indices, updates, name or "ScatterUpdate")


def scatter_add(
    ref: _tf.Variable, indices: TensorLike, updates: TensorLike, use_locking: bool = False, name: str | None = None
) -> _ops.Tensor:
    """Add to rows; repeated rows add up. Arguments as for :func:`scatter_update`."""
    return _scatter("ResourceScatterAdd", ref, indices, updates, name or "ScatterAdd")


def scatter_sub(
    ref: _tf.Variable, indices: TensorLike, updates: TensorLike, use_locking: bool = False, name: str | None = None
) -> _ops.Tensor:
    """Subtract from rows; repeated rows add up. Arguments as for :func:`scatter_update`."""
    return _scatter("ResourceScatterSub", ref, indices, updates, name or "ScatterSub")


def scatter_mul(
    ref: _tf.Variable, indices: TensorLike, updates: TensorLike, use_locking: bool = False, name: str | None = None
) -> _ops.Tensor:
    """Multiply rows; repeated rows multiply up. Arguments as for :func:`scatter_update`."""
    return _scatter("ResourceScatterMul", ref, indices, updates, name or "ScatterMul")


def scatter_div(
    ref: _tf.Variable, indices: TensorLike, updates: TensorLike, use_locking: bool = False, name: str | None = None
) -> _ops.Tensor:
    """Divide rows of a floating variable; repeated rows divide in turn. Arguments as for :func:`scatter_update`."""
    return _scatter("ResourceScatterDiv", ref, indices, updates, name or "ScatterDiv")


def scatter_min(
    ref: _tf.Variable, indices: TensorLike, updates: TensorLike, use_locking: bool = False, name: str | None = None
) -> _ops.Tensor:
    """Take the minimum of rows and updates. Arguments as for :func:`scatter_update`."""
    return _scatter("ResourceScatterMin", ref, indices, updates, name or "ScatterMin")


def scatter_max(
    ref: _tf.Variable, indices: TensorLike, updates: TensorLike, use_locking: bool = False, name: str | None = None
) -> _ops.Tensor:
    """Take the maximum of rows and updates. Arguments as for :func:`scatter_update`."""
    return _scatter("ResourceScatterMax", ref, indices, updates, name or "ScatterMax")


def scatter_nd_update(
    ref: _tf.Variable, indices: TensorLike, updates: TensorLike, use_locking: bool = True, name: str | None = None
) -> _ops.Tensor:
    """Set slices of the Variable ``ref``, each chosen by an index tuple; returns its new value.

    Args:
      indices: int32 or int64, index tuples along the last axis, of size K; one that is out of range is an InvalidArgumentError in
        the step, before any write.
      updates: of shape ``indices.shape[:-1] + ref.shape[K:]`` and the variable's dtype.
      use_locking: taken for TensorFlow's sake; an update is never torn.
    """
    return _scatter("ResourceScatterNdUpdate", ref, indices, updates, name or "ScatterNdUpdate")


def scatter_nd_add(
    ref: _tf.Variable, indices: TensorLike, updates: TensorLike, use_locking: bool = False, name: str | None = None
) -> _ops.Tensor:
    """Add to slices; repeated ones add up. Arguments as for :func:`scatter_nd_update`."""
    return _scatter("ResourceScatterNdAdd", ref, indices, updates, name or "ScatterNdAdd")


def scatter_nd_sub(
    ref: _tf.Variable, indices: TensorLike, updates: TensorLike, use_locking: bool = False, name: str | None = None
) -> _ops.Tensor:
    """Subtract from slices; repeated ones add up. Arguments as for :func:`scatter_nd_update`."""
    return _scatter("ResourceScatterNdSub", ref, indices, updates, name or "ScatterNdSub")


def batch_scatter_update(
    ref: _tf.Variable, indices: TensorLike, updates: TensorLike, use_locking: bool = True, name: str | None = None
) -> _ops.Tensor:
    """Set rows of each of a batch: ``ref[b..., indices[b..., i], ...] = updates[b..., i, ...]``; returns the new value.

    Args:
      indices: of shape ``[*batch, n]``, where ``batch`` are the first dims of ``ref``.
      updates: of shape ``indices.shape + ref.shape[rank(indices):]``.
    """
    with _ops.name_scope(name or "BatchScatterUpdate"):
        at = _ops.convert_to_tensor(indices, preferred_dtype=_tf.int32)
        dims = static_shape(at)
        if dims is None:
            raise errors.InvalidArgumentError("batch_scatter_update needs indices of known rank", hint="use set_shape")
        return scatter_nd_update(ref, batch_tuples(at, len(dims) - 1), updates, use_locking)


def _scatter(op_type: str, ref: Any, indices: Any, updates: Any, name: str) -> Any:
    handle = getattr(ref, "handle", None)
    if handle is None:
        raise errors.InvalidArgumentError(f"{name} changes a Variable", got=f"a {type(ref).__name__}")
    with _ops.name_scope(name):
        values = _ops.convert_to_tensor(updates, ref.dtype)
        at = _ops.convert_to_tensor(indices, preferred_dtype=_tf.int32)
        _fit(op_type, static_shape(ref), static_shape(at), static_shape(values))
        update = _ops.apply_op(op_type, var=handle, indices=at, updates=values)
        with _ops.control_dependencies([update]):
            return ref.read_value()


def _fit(op: str, var: Any, at: Any, values: Any) -> None:
    """Raise ShapeError where updates are known not to fit."""
    if var is None or at is None or values is None:
        return
    if "Nd" in op:
        depth = at[-1] if at else None
        if depth is None:
            return
        want = (*at[:-1], *var[depth:])
    elif not values:
        return
    else:
        want = (*at, *var[1:])
    if len(want) != len(values) or any(
        a != b for a, b in zip(want, values, strict=True) if a is not None and b is not None
    ):
        raise errors.ShapeError(
            f"updates have shape {show(values)}",
            expected=f"{show(want)}, by indices and the variable",
        )


def sparse_to_dense(
    sparse_indices: TensorLike,
    output_shape: TensorLike,
    sparse_values: TensorLike,
    default_value: TensorLike = 0,
    validate_indices: bool = True,
    name: str | None = None,
) -> _ops.Tensor:
    """A tensor of ``default_value`` with other values at some places.

    Args:
      sparse_indices: int32 or int64, the places: ``[n, rank]`` index tuples, ``[n]`` indices of a vector, or one index of it.
      output_shape: the shape.
      sparse_values: a value for each place, or a scalar for all.
      validate_indices: refuse places that repeat or are not in ascending order; otherwise of several values the last stays.

    Raises:
      InvalidArgumentError, in the step: a place outside of the shape, or one that ``validate_indices`` refuses.
    """
    values = _ops.convert_to_tensor(sparse_values)
    if isinstance(default_value, (int, float)) and not default_value:
        default_value = b"" if values.dtype.kind == "S" else False if values.dtype.is_bool else 0
    return _ops.apply_op(  # type: ignore[no-any-return]
        "SparseToDense",
        sparse_indices=sparse_indices,
        output_shape=output_shape,
        sparse_values=values,
        default_value=_ops.convert_to_tensor(default_value, values.dtype),
        validate_indices=validate_indices,
        name=name,
    )
