"""Public Fourier transforms of real numbers, cosine transforms, and shifts of a spectrum.

Names, argument names and defaults are TensorFlow 1's.
"""

from __future__ import annotations

import math
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import DTypeError, InvalidArgumentError, ShapeError
from graphdock.typing import TensorLike

from graphdock_std.grad_support import static_shape

_COMPLEX = {"float32": "complex64", "float64": "complex128"}
_REAL = {whole: part for part, whole in _COMPLEX.items()}


def rfft(input_tensor: TensorLike, fft_length: TensorLike | None = None, name: str | None = None) -> _ops.Tensor:
    """Discrete Fourier transform of real numbers over the last axis: the first ``n // 2 + 1`` of n numbers.

    Args:
      input_tensor: float32 or float64, ``[..., N]``.
      fft_length: a vector of one integer n; the input is cut or filled up with zeros to it. Default: N.
    """
    return _real("RFFT", 1, input_tensor, fft_length, name)


def rfft2d(input_tensor: TensorLike, fft_length: TensorLike | None = None, name: str | None = None) -> _ops.Tensor:
    """Discrete Fourier transform of real numbers over the last two axes; ``fft_length`` holds two integers."""
    return _real("RFFT2D", 2, input_tensor, fft_length, name)


def rfft3d(input_tensor: TensorLike, fft_length: TensorLike | None = None, name: str | None = None) -> _ops.Tensor:
    """Discrete Fourier transform of real numbers over the last three axes; ``fft_length`` holds three integers."""
    return _real("RFFT3D", 3, input_tensor, fft_length, name)


def irfft(input_tensor: TensorLike, fft_length: TensorLike | None = None, name: str | None = None) -> _ops.Tensor:
    """Real numbers whose transform over the last axis begins with the input; the inverse of :func:`rfft`.

    Args:
      input_tensor: complex64 or complex128, ``[..., N]``.
      fft_length: a vector of one integer: how many numbers. Default: ``2 (N - 1)``, so that an odd number must be told.
    """
    return _real("IRFFT", 1, input_tensor, fft_length, name)


def irfft2d(input_tensor: TensorLike, fft_length: TensorLike | None = None, name: str | None = None) -> _ops.Tensor:
    """The inverse of :func:`rfft2d`; ``fft_length`` holds two integers."""
    return _real("IRFFT2D", 2, input_tensor, fft_length, name)


def irfft3d(input_tensor: TensorLike, fft_length: TensorLike | None = None, name: str | None = None) -> _ops.Tensor:
    """The inverse of :func:`rfft3d`; ``fft_length`` holds three integers."""
    return _real("IRFFT3D", 3, input_tensor, fft_length, name)


def _real(op: str, rank: int, input_tensor: Any, fft_length: Any, name: str | None) -> Any:
    inverse = op.startswith("I")
    with _ops.name_scope(name, op) as scope:
        table = _REAL if inverse else _COMPLEX
        usual = "complex64" if inverse else "float32"
        x = _numbers(input_tensor, usual)
        if x.dtype.name not in table:
            raise DTypeError(f"{op} takes other numbers", expected=" or ".join(table), got=x.dtype.name)
        shape = static_shape(x)
        if shape is not None and len(shape) < rank:
            raise ShapeError(f"{op}: the input must have rank at least {rank}, but its shape is {x.shape}")
        if fft_length is None:
            fft_length = _length(x, shape, rank, inverse)
        return _ops.apply_op(op, input=x, fft_length=fft_length, Tout=table[x.dtype.name], name=scope)


def _numbers(value: Any, usual: str) -> Any:
    """A tensor; Python's numbers become the ``usual`` dtype, arrays keep theirs."""
    return _ops.convert_to_tensor(value, preferred_dtype=None if hasattr(value, "dtype") else usual)


def _length(x: Any, shape: Any, rank: int, inverse: bool) -> Any:
    """The lengths that the input itself has; of half a spectrum the even one."""
    if shape is not None and None not in shape[-rank:]:
        last = max(0, 2 * (shape[-1] - 1)) if inverse else shape[-1]
        return [*shape[len(shape) - rank : -1], last]
    dims = _ops.shape(x)[-rank:]
    return _tf.concat([dims[:-1], _tf.maximum(0, 2 * (dims[-1:] - 1))], 0) if inverse else dims


def fftshift(x: TensorLike, axes: Any = None, name: str | None = None) -> _ops.Tensor:
    """The number at frequency 0 moved to the middle, ``n // 2``, of each of ``axes`` (an integer, a list; default: all)."""
    with _ops.name_scope(name, "fftshift"):
        return _shifted(x, axes, lambda size: size - _half(size))


def ifftshift(x: TensorLike, axes: Any = None, name: str | None = None) -> _ops.Tensor:
    """The inverse of :func:`fftshift`; another one where a size is odd."""
    with _ops.name_scope(name, "ifftshift"):
        return _shifted(x, axes, _half)


def _half(size: Any) -> Any:
    return size // 2 if isinstance(size, int) else _tf.floordiv(size, 2)


def _shifted(x: Any, axes: Any, first: Any) -> Any:
    """``x`` turned along each axis, so that it begins with element ``first(size)``."""
    x = _ops.convert_to_tensor(x)
    shape = static_shape(x)
    if shape is None:
        raise ShapeError("shifting needs a tensor of known rank", hint="use set_shape")
    chosen = range(len(shape)) if axes is None else [axes] if isinstance(axes, int) else list(axes)
    for axis in chosen:
        at = axis % len(shape)
        size = shape[at]
        cut = first(_ops.shape(x)[at] if size is None else size)
        before = (slice(None),) * at
        x = _tf.concat([x[(*before, slice(cut, None))], x[(*before, slice(None, cut))]], at)
    return x


def dct(
    input: TensorLike, type: int = 2, n: Any = None, axis: int = -1, norm: str | None = None, name: str | None = None
) -> _ops.Tensor:
    """Discrete cosine transform over the last axis, of type 1, 2, 3 or 4, by a Fourier transform (Makhoul, 1980).

    Unnormalized as in SciPy: each number is twice the sum of cosines.

    Args:
      input: float32 or float64, ``[..., N]``.
      n: cut or fill up with zeros to so many first.
      axis: -1 is the only one.
      norm: ``"ortho"`` makes the transform orthonormal; not for type 1.

    Raises:
      InvalidArgumentError: another type, axis or norm.
    """
    _checked(type, n, axis, norm)
    with _ops.name_scope(name, "dct"):
        x = _numbers(input, "float32")
        if n is not None:
            x = _resized(x, n)
        size = _last(x)
        if type == 1:
            if isinstance(size, int) and size < 2:
                raise InvalidArgumentError("dct of type 1 needs two numbers", got=str(size))
            return _tf.real(rfft(_tf.concat([x, x[..., -2:0:-1]], -1)))
        return {2: _dct2, 3: _dct3, 4: _dct4}[type](x, size, norm)


def idct(
    input: TensorLike, type: int = 2, n: Any = None, axis: int = -1, norm: str | None = None, name: str | None = None
) -> _ops.Tensor:
    """The inverse of :func:`dct`, up to a factor of ``2 N`` (``2 (N - 1)`` for type 1) where it is not orthonormal."""
    _checked(type, n, axis, norm)
    with _ops.name_scope(name, "idct"):
        return dct(input, {1: 1, 2: 3, 3: 2, 4: 4}[type], n, axis, norm)


def _checked(type: int, n: Any, axis: int, norm: str | None) -> None:
    if type not in (1, 2, 3, 4):
        raise InvalidArgumentError("dct: unknown type", expected="1, 2, 3 or 4", got=repr(type))
    if axis != -1:
        raise InvalidArgumentError("dct: axis is wrong", expected="-1", got=repr(axis))
    if norm not in (None, "ortho"):
        raise InvalidArgumentError("dct: unknown norm", expected="None or 'ortho'", got=repr(norm))
    if type == 1 and norm is not None:
        raise InvalidArgumentError("dct of type 1 has no norm", expected="None", got=repr(norm))
    if isinstance(n, int) and n < 1:
        raise InvalidArgumentError("dct: n must be positive", got=str(n))


def _last(x: Any) -> Any:
    shape = static_shape(x)
    return _ops.shape(x)[-1] if shape is None or shape[-1] is None else shape[-1]


def _resized(x: Any, n: Any) -> Any:
    shape = static_shape(x)
    if shape is None:
        raise ShapeError("dct with n needs a tensor of known rank", hint="use set_shape")
    x = x[..., :n]
    missing = n - _last(x)
    if isinstance(missing, int) and missing == 0:
        return x
    return _tf.pad(x, _tf.stack([[0, 0]] * (len(shape) - 1) + [_tf.stack([0, missing])]))


def _angles(size: Any, dtype: Any, sign: float) -> Any:
    """``2 exp(sign i pi k / 2 size)`` for each k below ``size``."""
    along = _ops.cast(_tf.range(size), dtype) * (sign * math.pi / 2.0) / _ops.cast(size, dtype)
    return 2.0 * _tf.exp(_tf.complex(_ops.zeros_like(along), along))


def _first_and_rest(size: Any, dtype: Any, first: float, rest: float) -> Any:
    """A vector of ``size`` numbers."""
    return _tf.select(
        _tf.equal(_tf.range(size), 0), _ops.convert_to_tensor(first, dtype), _ops.convert_to_tensor(rest, dtype)
    )


def _dct2(x: Any, size: Any, norm: str | None) -> Any:
    spectrum = rfft(x, _tf.stack([2 * size]))[..., :size]
    result = _tf.real(spectrum * _angles(size, x.dtype, -1.0))
    if not norm:
        return result
    return result * (_first_and_rest(size, x.dtype, 0.5, math.sqrt(0.5)) * _tf.rsqrt(_ops.cast(size, x.dtype)))


def _dct3(x: Any, size: Any, norm: str | None) -> Any:
    many = _ops.cast(size, x.dtype)
    x = x * (_first_and_rest(size, x.dtype, 1.0, math.sqrt(0.5)) * _tf.sqrt(many) if norm else many)
    turned = _angles(size, x.dtype, 1.0) * _tf.complex(x, _ops.zeros_like(x))
    return irfft(turned, _tf.stack([2 * size]))[..., :size]


def _dct4(x: Any, size: Any, norm: str | None) -> Any:
    result = _dct2(_resized(x, 2 * size), 2 * size, None)[..., 1::2]
    return result * (math.sqrt(0.5) * _tf.rsqrt(_ops.cast(size, x.dtype))) if norm else result
