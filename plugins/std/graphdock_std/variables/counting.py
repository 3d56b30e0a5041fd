"""Counters that end: ``tf.count_up_to``."""

from __future__ import annotations

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import DTypeError, InvalidArgumentError, ShapeError

from graphdock_std._gen import counting_ops


def count_up_to(ref: _tf.Variable, limit: int, name: str | None = None) -> _ops.Tensor:
    """The value of a counter, which then grows by one; an OutOfRangeError in the step once it has reached ``limit``.

    Of several threads each gets a number of its own.

    Args:
      ref: a scalar Variable of dtype int32 or int64.
      limit: an integer.
    """
    if not isinstance(ref, _tf.Variable):
        raise InvalidArgumentError("count_up_to counts in a Variable", got=f"a {type(ref).__name__}")
    if ref.dtype.name not in ("int32", "int64"):
        raise DTypeError(f"count_up_to can't count in {ref.name}", expected="int32 or int64", got=ref.dtype.name)
    if ref.shape.rank not in (None, 0):
        raise ShapeError(f"count_up_to can't count in {ref.name}", expected="a scalar", got=str(ref.shape))
    with _tf.colocate_with(ref.op):
        return counting_ops.resource_count_up_to(ref.handle, limit, T=ref.dtype, name=name or "CountUpTo")
