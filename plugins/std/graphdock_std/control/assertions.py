"""Assertions about tensors: operations that fail while a step runs, and errors at once where the values are constants.

An assertion runs when something that is fetched depends on it: ``with tf.control_dependencies([tf.assert_positive(x)])``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import graphdock as _tf
import numpy as np
from graphdock import ops as _ops
from graphdock.errors import DTypeError, InvalidArgumentError
from graphdock.typing import TensorLike


def _value(tensor: Any) -> Any:
    """The array of a constant, else None."""
    return tensor.op.get_attr("value") if tensor.op.op_def.executes == "constant" else None


def _compared(
    symbol: str,
    test: Callable[[Any, Any], Any],
    holds: Callable[[Any, Any], Any],
    x: Any,
    y: Any,
    data: Any,
    summarize: int | None,
    message: str | None,
    name: str,
) -> _ops.Operation:
    """An assertion that ``test`` holds for every element.

    Args:
      test, holds: the comparison of tensors, and that of arrays.
    """
    with _tf.name_scope(name):
        a = _ops.convert_to_tensor(x, name="x")
        b = _ops.convert_to_tensor(y, a.dtype, "y")
        told = [f"condition x {symbol} y did not hold for every element: x ({a.name}) =", a, f"y ({b.name}) =", b]
        first, second = _value(a), _value(b)
        if first is not None and second is not None and not np.all(holds(first, second)):
            raise InvalidArgumentError(
                f"{message + ': ' if message else ''}x {symbol} y does not hold for every element",
                expected=f"x {symbol} y",
                got=f"x = {_short(first)}, y = {_short(second)}",
            )
        if data is None:
            data = [*([message] if message else []), *told]
        return _tf.Assert(_tf.reduce_all(test(a, b)), list(data), summarize)


def _short(array: Any) -> str:
    return np.array2string(np.asarray(array), threshold=8, separator=", ")


def assert_equal(
    x: TensorLike,
    y: TensorLike,
    data: Sequence[TensorLike] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> _ops.Operation:
    """An operation that fails unless ``x == y`` for every element, broadcast; InvalidArgumentError.

    Args:
      x, y: tensors of one dtype; where both are constants the error comes now.
      data: what the error shows; default: both tensors. ``summarize``: elements of each to show.
      message: what the error begins with.
    """
    return _compared("==", _tf.equal, np.equal, x, y, data, summarize, message, name or "assert_equal")


def assert_none_equal(
    x: TensorLike,
    y: TensorLike,
    data: Sequence[TensorLike] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> _ops.Operation:
    """An operation that fails unless ``x != y`` for every element, broadcast; InvalidArgumentError.

    Args:
      x, y: tensors of one dtype; where both are constants the error comes now.
      data: what the error shows; default: both tensors. ``summarize``: elements of each to show.
      message: what the error begins with.
    """
    return _compared("!=", _tf.not_equal, np.not_equal, x, y, data, summarize, message, name or "assert_none_equal")


def assert_less(
    x: TensorLike,
    y: TensorLike,
    data: Sequence[TensorLike] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> _ops.Operation:
    """An operation that fails unless ``x < y`` for every element, broadcast; InvalidArgumentError.

    Args:
      x, y: tensors of one dtype, numbers; where both are constants the error comes now.
      data: what the error shows; default: both tensors. ``summarize``: elements of each to show.
      message: what the error begins with.
    """
    return _compared("<", _tf.less, np.less, x, y, data, summarize, message, name or "assert_less")


def assert_less_equal(
    x: TensorLike,
    y: TensorLike,
    data: Sequence[TensorLike] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> _ops.Operation:
    """An operation that fails unless ``x <= y`` for every element, broadcast; InvalidArgumentError.

    Args:
      x, y: tensors of one dtype, numbers; where both are constants the error comes now.
      data: what the error shows; default: both tensors. ``summarize``: elements of each to show.
      message: what the error begins with.
    """
    return _compared("<=", _tf.less_equal, np.less_equal, x, y, data, summarize, message, name or "assert_less_equal")


def assert_greater(
    x: TensorLike,
    y: TensorLike,
    data: Sequence[TensorLike] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> _ops.Operation:
    """An operation that fails unless ``x > y`` for every element, broadcast; InvalidArgumentError.

    Args:
      x, y: tensors of one dtype, numbers; where both are constants the error comes now.
      data: what the error shows; default: both tensors. ``summarize``: elements of each to show.
      message: what the error begins with.
    """
    return _compared(">", _tf.greater, np.greater, x, y, data, summarize, message, name or "assert_greater")


def assert_greater_equal(
    x: TensorLike,
    y: TensorLike,
    data: Sequence[TensorLike] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> _ops.Operation:
    """An operation that fails unless ``x >= y`` for every element, broadcast; InvalidArgumentError.

    Args:
      x, y: tensors of one dtype, numbers; where both are constants the error comes now.
      data: what the error shows; default: both tensors. ``summarize``: elements of each to show.
      message: what the error begins with.
    """
    return _compared(
        ">=", _tf.greater_equal, np.greater_equal, x, y, data, summarize, message, name or "assert_greater_equal"
    )


def assert_negative(
    x: TensorLike,
    data: Sequence[TensorLike] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> _ops.Operation:
    """An operation that fails unless ``x < 0`` for every element; as :func:`assert_less`."""
    return _compared("<", _tf.less, np.less, x, 0, data, summarize, message, name or "assert_negative")


def assert_positive(
    x: TensorLike,
    data: Sequence[TensorLike] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> _ops.Operation:
    """An operation that fails unless ``x > 0`` for every element; as :func:`assert_greater`."""
    return _compared(">", _tf.greater, np.greater, x, 0, data, summarize, message, name or "assert_positive")


def assert_non_negative(
    x: TensorLike,
    data: Sequence[TensorLike] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> _ops.Operation:
    """An operation that fails unless ``x >= 0`` for every element; as :func:`assert_greater_equal`."""
    return _compared(
        ">=", _tf.greater_equal, np.greater_equal, x, 0, data, summarize, message, name or "assert_non_negative"
    )


def assert_non_positive(
    x: TensorLike,
    data: Sequence[TensorLike] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> _ops.Operation:
    """An operation that fails unless ``x <= 0`` for every element; as :func:`assert_less_equal`."""
    return _compared("<=", _tf.less_equal, np.less_equal, x, 0, data, summarize, message, name or "assert_non_positive")


def assert_near(
    x: TensorLike,
    y: TensorLike,
    rtol: TensorLike | None = None,
    atol: TensorLike | None = None,
    data: Sequence[TensorLike] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> _ops.Operation:
    """An operation that fails unless ``|x - y| <= atol + rtol * |y|`` for every element, broadcast; InvalidArgumentError.

    Args:
      x, y: floating tensors of one dtype.
      rtol, atol: default: ten times the dtype's smallest step from 1.
      data, summarize, message: as of :func:`assert_equal`.
    """
    with _tf.name_scope(name or "assert_near"):
        a = _ops.convert_to_tensor(x, name="x")
        b = _ops.convert_to_tensor(y, a.dtype, "y")
        step = 10.0 * float(_SMALLEST_STEP.get(a.dtype.name, 0.0))
        relative = _ops.convert_to_tensor(step if rtol is None else rtol, a.dtype, "rtol")
        absolute = _ops.convert_to_tensor(step if atol is None else atol, a.dtype, "atol")
        if data is None:
            data = [
                *([message] if message else []),
                "x and y are not near for every element: rtol =",
                relative,
                "atol =",
                absolute,
                f"x ({a.name}) =",
                a,
                f"y ({b.name}) =",
                b,
            ]
        near = _tf.less_equal(_tf.abs(a - b), absolute + relative * _tf.abs(b))
        return _tf.Assert(_tf.reduce_all(near), list(data), summarize)


#: The distance from 1 to the next number of a dtype.
_SMALLEST_STEP = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}


def is_numeric_tensor(tensor: Any) -> bool:
    """Whether it is a tensor or variable of numbers."""
    dtype = getattr(tensor, "dtype", None)
    return isinstance(tensor, _tf.Tensor | _tf.Variable) and dtype is not None and dtype.kind in "iufc"


def is_non_decreasing(x: TensorLike, name: str | None = None) -> _ops.Tensor:
    """Whether no element is below the one before it, in row-major order; a bool scalar. True of less than two elements."""
    with _tf.name_scope(name or "is_non_decreasing"):
        before, after = _neighbours(x)
        return _tf.reduce_all(_tf.less_equal(before, after))


def is_strictly_increasing(x: TensorLike, name: str | None = None) -> _ops.Tensor:
    """Whether each element is above the one before it, in row-major order; a bool scalar. True of less than two elements."""
    with _tf.name_scope(name or "is_strictly_increasing"):
        before, after = _neighbours(x)
        return _tf.reduce_all(_tf.less(before, after))


def _neighbours(x: Any) -> tuple[Any, Any]:
    tensor = _ops.convert_to_tensor(x)
    if not is_numeric_tensor(tensor):
        raise DTypeError("only numbers have an order", op=tensor.op.name, got=tensor.dtype.name)
    flat = _tf.reshape(tensor, [-1])
    return flat[:-1], flat[1:]
