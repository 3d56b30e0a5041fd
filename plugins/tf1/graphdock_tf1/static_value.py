"""Values of tensors that are known while the graph is built (``tf.contrib.util.constant_value``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphdock as _tf
import numpy as np


def constant_value(tensor: Any, partial: bool = False) -> Any:
    """Value of a tensor that needs no step, as an array; None where it needs one.

    Known are constants, shapes, sizes and ranks that are static, and what ranges, casts, fills, concatenations, stacks and
    comparisons make of known values.

    Args:
      partial: whether a stack of which some elements are known is answered, with None for the others.

    Source: TensorFlow's ``tf.contrib.util.constant_value``; ``tf.get_static_value`` of 2.x.
    """
    if isinstance(tensor, (_tf.Variable, _tf.Operation)) or not isinstance(tensor, _tf.Tensor):
        return np.asarray(tensor) if isinstance(tensor, (np.ndarray, np.generic)) else None
    if tensor.op.type == "Pack":
        return _stack(tensor.op, partial)
    rule = _RULES.get(tensor.op.type)
    found = None if rule is None else rule(tensor.op)
    return None if found is None else np.asarray(found, tensor.dtype.as_numpy_dtype)


def _stack(op: Any, partial: bool) -> Any:
    found = [constant_value(element) for element in op.inputs]
    if all(f is not None for f in found):
        return np.stack(found, op.get_attr("axis"))
    return (
        np.array([None if f is None else f[()] for f in found], object)
        if partial and op.get_attr("axis") == 0
        else None
    )


def _of(count: Callable[..., Any]) -> Callable[[Any], Any]:
    """A rule for an op whose inputs must all be known."""

    def rule(op: Any) -> Any:
        found = [constant_value(t) for t in op.inputs]
        return None if any(f is None for f in found) else count(op, *found)

    return rule


def _dims(op: Any) -> list[int] | None:
    shape = op.inputs[0].shape
    return shape.as_list() if shape.is_fully_defined() else None


def _size(op: Any) -> Any:
    dims = _dims(op)
    return None if dims is None else np.prod(dims, dtype=np.int64)


_RULES: dict[str, Callable[[Any], Any]] = {
    "Const": lambda op: op.get_attr("value"),
    "Shape": _dims,
    "Size": _size,
    "Rank": lambda op: op.inputs[0].shape.ndims,
    "Range": _of(lambda op, start, limit, delta: np.arange(start, limit, delta)),
    "Cast": _of(lambda op, x: x),
    "Fill": _of(lambda op, dims, value: np.full(dims, value)),
    "Concat": _of(lambda op, *parts: np.concatenate(parts[:-1], int(parts[-1]))),
    "Equal": _of(lambda op, x, y: np.equal(x, y)),
    "NotEqual": _of(lambda op, x, y: np.not_equal(x, y)),
}
