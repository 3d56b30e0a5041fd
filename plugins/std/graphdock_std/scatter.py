"""Changing rows of variables: ``tf.scatter_update``, ``scatter_add``, ``scatter_sub``."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock import errors
from graphdock import ops as _ops
from graphdock.typing import TensorLike

__all__ = ["scatter_add", "scatter_sub", "scatter_update"]


def scatter_update(
    ref: _tf.Variable, indices: TensorLike, updates: TensorLike, use_locking: bool = True, name: str | None = None
) -> _ops.Tensor:
    """Set rows ``indices`` of the Variable ``ref`` to ``updates``; returns its new value.

    Args:
      indices: int32 or int64, of any shape; one that is out of range is an InvalidArgumentError in the step, before any write.
      updates: of shape ``indices.shape + ref.shape[1:]`` and the variable's dtype, or a scalar.
      use_locking: taken for TensorFlow's sake; an update is never torn.
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


def _scatter(op_type: str, ref: Any, indices: Any, updates: Any, name: str) -> Any:
    handle = getattr(ref, "handle", None)
    if handle is None:
        raise errors.InvalidArgumentError(f"{name} changes a Variable", got=f"a {type(ref).__name__}")
    with _ops.name_scope(name):
        values = _ops.convert_to_tensor(updates, ref.dtype)
        update = _ops.apply_op(op_type, var=handle, indices=indices, updates=values)
        with _ops.control_dependencies([update]):
            return ref.read_value()
