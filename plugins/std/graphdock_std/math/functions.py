"""Public math functions that are more than one op, or whose signature is not the op's: division, casts.

Names, argument names and defaults are TensorFlow 1's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import DTypeError, InvalidArgumentError
from graphdock.typing import DTypeLike, ShapeLike, TensorLike

from graphdock_std.grad_support import is_tensor, static_shape

#: What true division makes of integers, as in TensorFlow.
_TRUE_QUOTIENT = {
    "int8": "float32",
    "uint8": "float32",
    "int16": "float32",
    "uint16": "float32",
    "int32": "float64",
    "uint32": "float64",
    "int64": "float64",
    "uint64": "float64",
}


def _operands(x: Any, y: Any) -> tuple[Any, Any]:
    """Two tensors of one dtype; a Python value takes the dtype of the other."""
    if is_tensor(y) and not is_tensor(x):
        y = _ops.convert_to_tensor(y)
        return _ops.convert_to_tensor(x, y.dtype, name="x"), y
    x = _ops.convert_to_tensor(x, name="x")
    return x, _ops.convert_to_tensor(y, x.dtype, name="y")


def truediv(x: TensorLike, y: TensorLike, name: str | None = None) -> _ops.Tensor:
    """``x / y`` as Python 3 means it: integers are cast first, to float32 up to 16 bits and to float64 beyond."""
    with _ops.name_scope(name, "truediv") as scope:
        x, y = _operands(x, y)
        wider = _TRUE_QUOTIENT.get(x.dtype.name, x.dtype)
        return _ops.apply_op("RealDiv", x=_ops.cast(x, wider), y=_ops.cast(y, wider), name=scope)


def divide(x: TensorLike, y: TensorLike, name: str | None = None) -> _ops.Tensor:
    """``x / y``; the same as :func:`truediv`."""
    return truediv(x, y, name)


def div(x: TensorLike, y: TensorLike, name: str | None = None) -> _ops.Tensor:
    """``x / y`` as Python 2 meant it: integers divide towards minus infinity."""
    with _ops.name_scope(name, "div") as scope:
        x, y = _operands(x, y)
        return _ops.apply_op("FloorDiv" if x.dtype.is_integer else "RealDiv", x=x, y=y, name=scope)


def div_no_nan(x: TensorLike, y: TensorLike, name: str | None = None) -> _ops.Tensor:
    """``x / y``, and 0 where y is 0; there the gradients are 0 too."""
    with _ops.name_scope(name, "div_no_nan") as scope:
        x, y = _operands(x, y)
        zero = _tf.equal(y, 0)
        return _tf.select(zero, 0, x / _tf.select(zero, _ops.ones_like(y), y), name=scope)


# the rest


def squared_difference(x: TensorLike, y: TensorLike, name: str | None = None) -> _ops.Tensor:
    """``(x - y) ** 2``; of complex numbers the square of the distance, ``(x - y) * conj(x - y)``."""
    x, y = _operands(x, y)
    if not x.dtype.is_complex:
        return _ops.apply_op("SquaredDifference", x=x, y=y, name=name)
    with _ops.name_scope(name, "SquaredDifference") as scope:
        difference = x - y
        return _tf.multiply(difference, _tf.conj(difference), name=scope)


def round(x: TensorLike, name: str | None = None) -> _ops.Tensor:
    """The nearest integer, halves to the even one. Integers are passed on."""
    x = _ops.convert_to_tensor(x)
    return x if x.dtype.is_integer else _ops.apply_op("Round", x=x, name=name)


def scalar_mul(scalar: TensorLike, x: Any, name: str | None = None) -> Any:
    """``scalar * x``; of IndexedSlices the same rows. Raises InvalidArgumentError when ``scalar`` is known not to be one."""
    if isinstance(x, _tf.IndexedSlices):
        return _tf.IndexedSlices(scalar_mul(scalar, x.values, name), x.indices, x.dense_shape)
    x = _ops.convert_to_tensor(x)
    scalar = _ops.convert_to_tensor(scalar, x.dtype)
    if static_shape(scalar) not in ((), None):
        raise InvalidArgumentError("scalar_mul takes a scalar", got=f"shape {scalar.shape}")
    return _ops.apply_op("Mul", x=scalar, y=x, name=name or "mul")


def to_float(x: TensorLike, name: str = "ToFloat") -> _ops.Tensor:
    """``x`` as float32."""
    return _ops.cast(x, "float32", name)


def to_double(x: TensorLike, name: str = "ToDouble") -> _ops.Tensor:
    """``x`` as float64."""
    return _ops.cast(x, "float64", name)


def to_int32(x: TensorLike, name: str = "ToInt32") -> _ops.Tensor:
    """``x`` as int32; fractions are cut off."""
    return _ops.cast(x, "int32", name)


def to_int64(x: TensorLike, name: str = "ToInt64") -> _ops.Tensor:
    """``x`` as int64; fractions are cut off."""
    return _ops.cast(x, "int64", name)


def to_bfloat16(x: TensorLike, name: str = "ToBFloat16") -> _ops.Tensor:
    """``x`` as bfloat16."""
    return _ops.cast(x, "bfloat16", name)


def to_complex64(x: TensorLike, name: str = "ToComplex64") -> _ops.Tensor:
    """``x`` as complex64."""
    return _ops.cast(x, "complex64", name)


def to_complex128(x: TensorLike, name: str = "ToComplex128") -> _ops.Tensor:
    """``x`` as complex128."""
    return _ops.cast(x, "complex128", name)


def accumulate_n(
    inputs: Sequence[TensorLike],
    shape: ShapeLike = None,
    tensor_dtype: DTypeLike | None = None,
    name: str | None = None,
) -> _ops.Tensor:
    """Sum of tensors of one shape; ``add_n`` under another name. ``shape`` and ``tensor_dtype`` are checked if given."""
    total = _ops.apply_op("AddN", inputs=list(inputs), name=name)
    if tensor_dtype is not None and total.dtype is not _tf.as_dtype(tensor_dtype):
        raise DTypeError(
            "accumulate_n: the inputs are of another dtype", expected=str(tensor_dtype), got=total.dtype.name
        )
    if shape is not None:
        total.set_shape(shape)
    return total
