"""Assertions about tensors: operations that fail while a step runs, and errors at once where the values are constants.

An assertion runs when something that is fetched depends on it: ``with tf.control_dependencies([tf.assert_positive(x)])``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import graphdock as _tf
import numpy as np
from graphdock import ops as _ops
from graphdock.errors import DTypeError, InvalidArgumentError
from graphdock.typing import TensorLike

from graphdock_std.variants import variants


def _value(tensor: Any) -> Any:
    """The array of a constant, else None."""
    return tensor.op.get_attr("value") if tensor.op.op_def.executes == "constant" else None


def _compared(
    name: str,
    rule: tuple[str, str],
    x: Any,
    y: Any,
    data: Sequence[TensorLike] | None,
    summarize: int | None,
    message: str | None,
    other: str = "y",
) -> _ops.Operation:
    """An assertion that a comparison holds for every element; the words are TensorFlow's, which programs look for.

    Args:
      rule: its symbol, and its name in TensorFlow and in NumPy. other: ``y``, or the number that it is.
    """
    symbol, test = rule
    with _tf.name_scope(name):
        a = _ops.convert_to_tensor(x, name="x")
        b = _ops.convert_to_tensor(y, a.dtype, "y")
        said = f"Condition x {symbol} {other} did not hold element-wise:"
        told = [said, f"x ({a.name}) =", a, *([f"y ({b.name}) =", b] if other == "y" else [])]
        first, second = _value(a), _value(b)
        if first is not None and second is not None and not np.all(getattr(np, test)(first, second)):
            raise InvalidArgumentError(
                f"{message + ': ' if message else ''}{said[:-1]}",
                expected=f"x {symbol} {other}",
                got=f"x = {_short(first)}" + (f", y = {_short(second)}" if other == "y" else ""),
            )
        if data is None:
            data = [*([message] if message else []), *told]
        return _tf.Assert(_tf.reduce_all(getattr(_tf, test)(a, b)), list(data), summarize)


def _short(array: Any) -> str:
    return np.array2string(np.asarray(array), threshold=8, separator=", ")


@variants
def _of_two(
    own: str,
    rule: tuple[str, str],
    x: TensorLike,
    y: TensorLike,
    data: Sequence[TensorLike] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> _ops.Operation:
    return _compared(name or own, rule, x, y, data, summarize, message)


@variants
def _of_one(
    own: str,
    rule: tuple[str, str],
    x: TensorLike,
    data: Sequence[TensorLike] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> _ops.Operation:
    return _compared(name or own, rule, x, 0, data, summarize, message, "0")


assert_equal = _of_two(
    "assert_equal",
    ("==", "equal"),
    """An operation that fails unless ``x == y`` for every element, broadcast; InvalidArgumentError.

    Args:
      x, y: tensors of one dtype; where both are constants the error comes now.
      data: what the error shows; default: both tensors. ``summarize``: elements of each to show.
      message: what the error begins with.
    """,
)
assert_none_equal = _of_two(
    "assert_none_equal",
    ("!=", "not_equal"),
    "An operation that fails unless ``x != y`` for every element, broadcast; as :func:`assert_equal`.",
)
assert_less = _of_two(
    "assert_less",
    ("<", "less"),
    "An operation that fails unless ``x < y`` for every element, broadcast; as :func:`assert_equal`, of numbers.",
)
assert_less_equal = _of_two(
    "assert_less_equal",
    ("<=", "less_equal"),
    "An operation that fails unless ``x <= y`` for every element, broadcast; as :func:`assert_equal`, of numbers.",
)
assert_greater = _of_two(
    "assert_greater",
    (">", "greater"),
    "An operation that fails unless ``x > y`` for every element, broadcast; as :func:`assert_equal`, of numbers.",
)
assert_greater_equal = _of_two(
    "assert_greater_equal",
    (">=", "greater_equal"),
    "An operation that fails unless ``x >= y`` for every element, broadcast; as :func:`assert_equal`, of numbers.",
)
assert_negative = _of_one(
    "assert_negative",
    ("<", "less"),
    "An operation that fails unless ``x < 0`` for every element; as :func:`assert_less`.",
)
assert_positive = _of_one(
    "assert_positive",
    (">", "greater"),
    "An operation that fails unless ``x > 0`` for every element; as :func:`assert_greater`.",
)
assert_non_negative = _of_one(
    "assert_non_negative",
    (">=", "greater_equal"),
    "An operation that fails unless ``x >= 0`` for every element; as :func:`assert_greater_equal`.",
)
assert_non_positive = _of_one(
    "assert_non_positive",
    ("<=", "less_equal"),
    "An operation that fails unless ``x <= 0`` for every element; as :func:`assert_less_equal`.",
)


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
                "x and y not equal to tolerance: rtol =",
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
    """Return whether it is a tensor or variable of numbers."""
    dtype = getattr(tensor, "dtype", None)
    return isinstance(tensor, _tf.Tensor | _tf.Variable) and dtype is not None and dtype.kind in "iufc"


def is_non_decreasing(x: TensorLike, name: str | None = None) -> _ops.Tensor:
    """Return whether no element is below the one before it, in row-major order; a bool scalar. True of less than two elements."""
    with _tf.name_scope(name or "is_non_decreasing"):
        before, after = _neighbours(x)
        return _tf.reduce_all(_tf.less_equal(before, after))


def is_strictly_increasing(x: TensorLike, name: str | None = None) -> _ops.Tensor:
    """Return whether each element is above the one before it, in row-major order; a bool scalar. True of less than two elements."""
    with _tf.name_scope(name or "is_strictly_increasing"):
        before, after = _neighbours(x)
        return _tf.reduce_all(_tf.less(before, after))


def _neighbours(x: Any) -> tuple[Any, Any]:
    tensor = _ops.convert_to_tensor(x)
    if not is_numeric_tensor(tensor):
        raise DTypeError("only numbers have an order", op=tensor.op.name, got=tensor.dtype.name)
    flat = _tf.reshape(tensor, [-1])
    return flat[:-1], flat[1:]
