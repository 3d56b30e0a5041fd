"""Public functions of complex numbers, which take real tensors too, and the absolute value, which is two ops.

Names, argument names and defaults are TensorFlow 1's.
"""

from __future__ import annotations

import math
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import DTypeError
from graphdock.typing import TensorLike

#: The real type of the parts of a complex one, and the other way round.
_PART = {"complex64": "float32", "complex128": "float64"}
_WHOLE = {part: whole for whole, part in _PART.items()}


def abs(x: Any, name: str | None = None) -> Any:
    """Absolute value; of a complex64 tensor it is float32, of a complex128 one float64; of a SparseTensor a SparseTensor."""
    if isinstance(x, _tf.SparseTensor):
        return x._with_stored(lambda stored: abs(stored, name))
    x = _ops.convert_to_tensor(x)
    return _parts("ComplexAbs", name, x=x) if x.dtype.is_complex else _ops.apply_op("Abs", x=x, name=name)


def complex(real: TensorLike, imag: TensorLike, name: str | None = None) -> _ops.Tensor:
    """``real + i imag``; the two broadcast. complex64 of float32, complex128 of float64.

    Raises:
      DTypeError: the two differ in dtype, or are neither float32 nor float64.
    """
    re = _ops.convert_to_tensor(real)
    im = _ops.convert_to_tensor(imag, re.dtype)
    if re.dtype.name not in _WHOLE:
        raise DTypeError("complex: the parts have a wrong type", expected="float32 or float64", got=re.dtype.name)
    return _ops.apply_op("Complex", real=re, imag=im, Tout=_WHOLE[re.dtype.name], name=name)


def real(input: TensorLike, name: str | None = None) -> _ops.Tensor:
    """Real parts; a real tensor is returned as it is."""
    x = _ops.convert_to_tensor(input)
    return _parts("Real", name, input=x) if x.dtype.is_complex else x


def imag(input: TensorLike, name: str | None = None) -> _ops.Tensor:
    """Imaginary parts; zeros for a real tensor."""
    x = _ops.convert_to_tensor(input)
    return _parts("Imag", name, input=x) if x.dtype.is_complex else _ops.zeros_like(x, name=name)


def angle(input: TensorLike, name: str | None = None) -> _ops.Tensor:
    """The argument of each number, in radians; for a real tensor pi where it is negative, else 0."""
    x = _ops.convert_to_tensor(input)
    if x.dtype.is_complex:
        return _parts("Angle", name, input=x)
    with _ops.name_scope(name, "Angle"):
        return _tf.select(x < 0, math.pi * _ops.ones_like(x), _ops.zeros_like(x))


def conj(x: TensorLike, name: str | None = None) -> _ops.Tensor:
    """Complex conjugates; a real tensor is returned as it is.

    Raises:
      DTypeError: bool, or text.
    """
    x = _ops.convert_to_tensor(x)
    if x.dtype.is_complex:
        return _ops.apply_op("Conj", input=x, name=name)
    if x.dtype.is_floating or x.dtype.is_integer:
        return x
    raise DTypeError("conj: x must be a number", expected="a numeric tensor", got=x.dtype.name)


def real_part(z: Any) -> Any:
    """:func:`real` under a name that formulas of ops with an input ``real`` can call."""
    return real(z)


def imaginary_part(z: Any) -> Any:
    """:func:`imag` under a name that formulas of ops with an input ``imag`` can call."""
    return imag(z)


def times_i(x: Any, dtype: Any) -> Any:
    """``i x`` in a complex ``dtype``."""
    part = _PART[_tf.as_dtype(dtype).name]
    x = _ops.cast(x, part)
    return _ops.apply_op("Complex", real=_ops.zeros_like(x), imag=x, Tout=dtype)


def _parts(op: str, name: str | None, **inputs: Any) -> _ops.Tensor:
    (x,) = inputs.values()
    return _ops.apply_op(op, Tout=_PART[x.dtype.name], name=name, **inputs)
