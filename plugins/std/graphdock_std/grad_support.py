"""Helpers of gradient formulas: bring the gradient of a broadcast operand back to the operand's shape, with as few
nodes as possible.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import graphdock as _tf
import numpy as np
from graphdock import dtypes
from graphdock import ops as _ops

__all__ = ["apart", "conjugate", "is_tensor", "static_shape", "sum_to"]

Dims: TypeAlias = "tuple[int | None, ...] | None"


def is_tensor(value: Any) -> bool:
    """A Tensor, or what becomes one by itself (a variable)."""
    return isinstance(getattr(value, "dtype", None), dtypes.DType)


def static_shape(tensor: Any) -> Dims:
    """The static shape as a tuple with None for unknown dims; None for an unknown rank."""
    shape = tensor.shape
    return None if shape.ndims is None else tuple(shape.as_list())


def apart(*inputs: Any) -> list[Any]:
    """The same tensors, of which none follows from another one: ``gradients`` by all of them are partial derivatives then."""
    return [_ops.identity(t) for t in inputs]


def conjugate(x: Any) -> Any:
    """The conjugate of a complex factor of a gradient; a real one as it is."""
    return _tf.conj(x) if x.dtype.is_complex else x


def sum_to(value: Any, like: Any, *others: Any, exact: int = 0) -> Any:
    """``value`` summed over the dims that broadcasting added to ``like`` or stretched.

    No node is made where the static shapes prove that there are no such dims. Where they prove which dims there are,
    it is one Sum over constant axes; else SumTo, which decides in the step.

    Args:
      value: gradient of a result that ``like`` was broadcast to.
      like: the operand.
      others: the other operands of that broadcast, if the caller knows them: an unknown dim of ``like`` was not
        stretched where each of them has 1 or no such dim.
      exact: the last so many dims do not take part in broadcasting.
    """
    have, want = static_shape(value), static_shape(like)
    if have is None or want is None:
        return _dynamic(value, like)
    stretched = []
    for axis in range(1, len(want) - exact + 1):
        axis += exact
        dim = want[-axis]
        if dim == 1:
            if have[-axis] != 1:
                stretched.append(len(have) - axis)
        elif dim is None and not (others and all(_narrow(static_shape(o), axis) for o in others)):
            return _dynamic(value, like)
    lead = list(range(len(have) - len(want)))
    if not lead and not stretched:
        return value
    if lead and stretched:
        return _dynamic(value, like)
    axes = np.array(lead or sorted(stretched), np.int32)
    return _ops.apply_op("Sum", x=value, axis=axes, keep_dims=not lead)


def _narrow(dims: Dims, axis: int) -> bool:
    """Return whether an operand surely has 1 or nothing at the axis, counted from the end."""
    return dims is not None and (len(dims) < axis or dims[-axis] == 1)


def _dynamic(value: Any, like: Any) -> Any:
    return _ops.apply_op("SumTo", x=value, shape=_ops.shape(like))
