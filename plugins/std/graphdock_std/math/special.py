"""Mathematical functions of several ops: of Bessel's and Euler's, polynomials, norms, orders.

Names, argument names and defaults are TensorFlow 1's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError
from graphdock.typing import TensorLike


def bessel_i0(x: TensorLike, name: str | None = None) -> _ops.Tensor:
    """The modified Bessel function of the first kind of order 0; overflows where :func:`tf.math.bessel_i0e` does not."""
    with _tf.name_scope(name or "bessel_i0"):
        x = _ops.convert_to_tensor(x)
        return _tf.exp(_tf.abs(x)) * _tf.math.bessel_i0e(x)


def bessel_i1(x: TensorLike, name: str | None = None) -> _ops.Tensor:
    """The modified Bessel function of the first kind of order 1; overflows where :func:`tf.math.bessel_i1e` does not."""
    with _tf.name_scope(name or "bessel_i1"):
        x = _ops.convert_to_tensor(x)
        return _tf.exp(_tf.abs(x)) * _tf.math.bessel_i1e(x)


def lbeta(x: TensorLike, name: str | None = None) -> _ops.Tensor:
    """Logarithm of the absolute value of the beta function of the vectors along the last dim.

    ``sum(lgamma(x)) - lgamma(sum(x))``; minus infinity for vectors of no elements.

    Args:
      x: floating tensor of rank 1 or more.

    Returns:
      A tensor of the shape of ``x`` without its last dim.
    """
    with _tf.name_scope(name or "lbeta"):
        x = _ops.convert_to_tensor(x)
        return _tf.reduce_sum(_tf.lgamma(x), -1) - _tf.lgamma(_tf.reduce_sum(x, -1))


def polyval(coeffs: Sequence[TensorLike], x: TensorLike, name: str | None = None) -> _ops.Tensor:
    """The polynomial with these coefficients, a list with that of the highest power first, at ``x``; 0 for an empty list."""
    if not isinstance(coeffs, list):
        raise InvalidArgumentError("polyval: coeffs must be a list", got=type(coeffs).__name__)
    with _tf.name_scope(name or "polyval"):
        x = _ops.convert_to_tensor(x)
        if not coeffs:
            return _ops.zeros_like(x)
        total: Any = _ops.convert_to_tensor(coeffs[0], x.dtype)
        for c in coeffs[1:]:
            total = c + total * x
        return total


def reciprocal_no_nan(x: TensorLike, name: str | None = None) -> _ops.Tensor:
    """``1 / x``, and 0 where x is 0."""
    with _tf.name_scope(name or "reciprocal_no_nan"):
        x = _ops.convert_to_tensor(x)
        return _tf.div_no_nan(_ops.constant(1, x.dtype), x)


def reduce_euclidean_norm(
    input_tensor: TensorLike, axis: TensorLike | None = None, keepdims: bool = False, name: str | None = None
) -> _ops.Tensor:
    """The square root of the sum of squares over ``axis`` (default: all). Of integers its fraction is cut off."""
    with _tf.name_scope(name or "EuclideanNorm"):
        x = _ops.convert_to_tensor(input_tensor)
        total = _tf.reduce_sum(x * x, axis, keepdims=keepdims)
        return _ops.cast(_tf.sqrt(_ops.cast(total, "float64") if x.dtype.is_integer else total), x.dtype)
