"""Oracles of specs/math.yaml, one element at a time with Python's own numbers.

Floating results are computed in double precision from the inputs as given and rounded once to the dtype; integers are
computed without bounds and wrapped to it.
"""

from __future__ import annotations

import builtins
import cmath
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

_INF, _NAN = math.inf, math.nan


def elementwise(function: Callable[..., Any], *arrays: Any, dtype: Any = None) -> np.ndarray:
    """``function`` of Python numbers over broadcast arrays, as an array of ``dtype`` (default: that of the first)."""
    first, *_ = arrays = tuple(np.asarray(a) for a in arrays)
    dtype = np.dtype(first.dtype if dtype is None else dtype)
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    columns = [numbers(np.broadcast_to(a, shape)) for a in arrays]
    values = [function(*row) for row in zip(*columns, strict=True)]
    if dtype.kind not in "iuO":
        wide = np.complex128 if dtype.kind == "c" else np.float64
        return np.array(values, wide).astype(dtype).reshape(shape)
    out = np.empty(len(values), dtype)
    for i, value in enumerate(values):
        out[i] = wrap(value, dtype)
    return out.reshape(shape)


def numbers(array: np.ndarray) -> list[Any]:
    """The elements as Python numbers, row by row."""
    if array.dtype.kind in "biucO":
        return [number(v) for v in array.reshape(-1)] if array.dtype.hasobject else array.reshape(-1).tolist()
    return array.astype(np.float64).reshape(-1).tolist()


def per_element(function: Callable[..., Any], dtype: Any = None) -> Callable[..., np.ndarray]:
    """The oracle of an elementwise op: ``function`` of Python numbers, as :func:`elementwise` has it.

    Args:
      dtype: of the result, or the name of the attribute that says it.
    """

    def oracle(*inputs: Any, **named: Any) -> np.ndarray:
        arrays = [*inputs, *(v for v in named.values() if isinstance(v, np.ndarray))]
        return elementwise(function, *arrays, dtype=named[dtype] if isinstance(dtype, str) else dtype)

    return oracle


def number(value: Any) -> Any:
    """A Python number for a NumPy one; ml_dtypes' bfloat16 has no ``item`` that gives a float."""
    if isinstance(value, (bytes, str, bool, np.bool_)):
        return value if isinstance(value, (bytes, str)) else bool(value)
    if np.issubdtype(type(value), np.complexfloating):
        return complex(value)
    return int(value) if np.issubdtype(type(value), np.integer) else float(value)


def total(values: Sequence[float]) -> float:
    """The sum, rounded once; of NaN and infinities what IEEE 754 says, where ``math.fsum`` raises."""
    if all(map(math.isfinite, values)):
        try:
            return math.fsum(values)
        except OverflowError:  # between: the sum of what is left of each half tells its sign
            return math.copysign(_INF, math.fsum(v / 2**60 for v in values))
    return sum(v for v in values if not math.isfinite(v))


def wrap(value: Any, dtype: np.dtype[Any]) -> Any:
    """A Python number as an element of ``dtype``; integers modulo its size."""
    if dtype.kind not in "iu":
        return value
    bits = 8 * dtype.itemsize
    value = int(value) % (1 << bits)
    return value - (1 << bits) if dtype.kind == "i" and value >> (bits - 1) else value


def _guarded(function: Callable[[float], float], **special: float) -> Callable[[float], float]:
    """``function``, where Python raises what IEEE 754 answers with infinity or NaN; of a complex number that of ``cmath``.

    ``overflow`` is the answer to OverflowError; ``zero`` the one at 0; anything else out of the domain is NaN.
    """

    def guarded(x: Any) -> Any:
        if isinstance(x, complex):
            return getattr(cmath, function.__name__)(x)
        try:
            return function(x)
        except OverflowError:
            return special.get("overflow", _INF)
        except (ValueError, ZeroDivisionError):
            return special.get("zero", _NAN) if x == 0 else _NAN

    return guarded


add = per_element(lambda a, b: a + b)
sub = per_element(lambda a, b: a - b)
mul = per_element(lambda a, b: a * b)


def _divide(a: Any, b: Any) -> Any:
    if b != 0:
        return a / b
    if isinstance(b, complex):
        return complex(_NAN, _NAN)
    return _NAN if a == 0 or a != a else math.copysign(_INF, a) * math.copysign(1.0, b)


real_div = per_element(_divide)


def _floor_divide(a: Any, b: Any) -> Any:
    if b == 0:
        return 0 if isinstance(a, int) else _divide(a, b)
    return a // b


floor_div = per_element(_floor_divide)


def _floor_modulo(a: Any, b: Any) -> Any:
    if b == 0:
        return 0 if isinstance(a, int) else _NAN
    return a % b


floor_mod = per_element(_floor_modulo)


def _power(a: Any, b: Any) -> Any:
    if isinstance(a, complex) and a == 0 and b.imag == 0 and b.real <= 0:
        return complex(_INF if b.real else _NAN, _NAN)
    if isinstance(a, int):
        return builtins.pow(a, b, 2**64) if b >= 0 else a**b
    if isinstance(a, complex):
        return a**b
    try:
        return math.pow(a, b)
    except OverflowError:
        return _INF
    except ValueError:
        return _INF if a == 0 else _NAN


pow = per_element(_power)
maximum = per_element(lambda a, b: a if a != a or a >= b else b)
minimum = per_element(lambda a, b: a if a != a or a <= b else b)
squared_difference = per_element(lambda a, b: (a - b) * (a - b))
atan2 = per_element(math.atan2)
less = per_element(lambda a, b: a < b, bool)
less_equal = per_element(lambda a, b: a <= b, bool)
greater = per_element(lambda a, b: a > b, bool)
greater_equal = per_element(lambda a, b: a >= b, bool)
equal = per_element(lambda a, b: a == b, bool)
not_equal = per_element(lambda a, b: a != b, bool)
logical_and = per_element(lambda a, b: a and b, bool)
logical_or = per_element(lambda a, b: a or b, bool)
logical_xor = per_element(lambda a, b: a is not b, bool)
logical_not = per_element(lambda a: not a, bool)
neg = per_element(lambda a: -a)
abs = per_element(lambda a: a if a > 0 else 0 - a)


def _sign(a: Any) -> Any:
    if isinstance(a, complex):
        return a / math.hypot(a.real, a.imag) if a else a
    return a if a != a else (a > 0) - (a < 0)


sign = per_element(_sign)
square = per_element(lambda a: a * a)
sqrt = per_element(_guarded(math.sqrt))
rsqrt = per_element(
    lambda a: 1 / cmath.sqrt(a) if isinstance(a, complex) else _guarded(lambda b: _divide(1.0, math.sqrt(b)))(a)
)
reciprocal = per_element(lambda a: _divide(1.0, a))
exp = per_element(_guarded(math.exp))
expm1 = per_element(lambda a: cmath.exp(a) - 1 if isinstance(a, complex) else _guarded(math.expm1)(a))
log = per_element(_guarded(math.log, zero=-_INF))


def _log1p(a: Any) -> Any:
    if isinstance(a, complex):
        return cmath.log(1 + a)
    return -_INF if a == -1 else _guarded(math.log1p)(a)


log1p = per_element(_log1p)
sin = per_element(_guarded(math.sin))
cos = per_element(_guarded(math.cos))
tan = per_element(_guarded(math.tan))
asin = per_element(_guarded(math.asin))
acos = per_element(_guarded(math.acos))
atan = per_element(_guarded(math.atan))


def _sinh(a: Any) -> Any:
    return cmath.sinh(a) if isinstance(a, complex) else _guarded(math.sinh, overflow=math.copysign(_INF, a))(a)


sinh = per_element(_sinh)
cosh = per_element(_guarded(math.cosh))
tanh = per_element(_guarded(math.tanh))
asinh = per_element(_guarded(math.asinh))
acosh = per_element(_guarded(math.acosh))
atanh = per_element(lambda a: a * _INF if a in (1, -1) else _guarded(math.atanh)(a))


def _logistic(a: Any) -> Any:
    if isinstance(a, complex):
        return 1 / (1 + cmath.exp(-a))
    if a >= 0:
        return 1.0 / (1.0 + math.exp(-a))
    e = math.exp(a)
    return e / (1.0 + e)


sigmoid = per_element(_logistic)
tanh_grad = per_element(lambda a, b: b * (1.0 - a * a))
sigmoid_grad = per_element(lambda a, b: b * a * (1.0 - a))
sqrt_grad = per_element(lambda a, b: _divide(b * 0.5, a.conjugate()) if b else 0.0)
rsqrt_grad = per_element(lambda a, b: b * -0.5 * a.conjugate() ** 3 if b else 0.0)
reciprocal_grad = per_element(lambda a, b: -(b * a.conjugate() ** 2) if b else 0.0)
erf = per_element(math.erf)
erfc = per_element(math.erfc)


def _whole(function: Callable[[float], int]) -> Callable[[float], float]:
    """A rounding that keeps NaN, infinities and the sign of zero."""
    return lambda a: math.copysign(function(a), a) if math.isfinite(a) else a


floor = per_element(_whole(math.floor))
ceil = per_element(_whole(math.ceil))
round = per_element(_whole(lambda a: a.__round__()))


rint = round


is_nan = per_element(math.isnan, bool)
is_inf = per_element(math.isinf, bool)
is_finite = per_element(math.isfinite, bool)


def select(condition: Any, x: Any, y: Any) -> np.ndarray:
    return elementwise(lambda c, a, b: a if c else b, condition, x, y, dtype=np.asarray(x).dtype)


def clip_by_value(x: Any, low: Any, high: Any) -> np.ndarray:
    def clip(a: Any, least: Any, most: Any) -> Any:
        a = a if a != a or a <= most else most
        return a if a != a or a >= least else least

    return elementwise(clip, x, low, high)


def matmul(a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False) -> np.ndarray:
    """Dot products one by one: ``math.fsum`` for floats, unbounded integers for integers, plain sums for complex numbers."""
    a, b = np.asarray(a), np.asarray(b)
    if transpose_a:
        a = np.swapaxes(a, -1, -2)
    if transpose_b:
        b = np.swapaxes(b, -1, -2)
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    m, n = a.shape[-2], b.shape[-1]
    left = np.broadcast_to(a, (*batch, *a.shape[-2:]))
    right = np.broadcast_to(b, (*batch, *b.shape[-2:]))
    total: Callable[[Any], Any] = _exact_sum if a.dtype.kind in "iuc" else math.fsum
    out = np.empty((*batch, m, n), a.dtype)
    for index in np.ndindex(out.shape):
        row, column = left[(*index[:-2], index[-2])], right[(*index[:-2], slice(None), index[-1])]
        products = [number(p) * number(q) for p, q in zip(row, column, strict=True)]
        out[index] = wrap(total(products), a.dtype)
    return out


def sum_of_products(a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False, N: int = 1) -> np.ndarray:
    """As one product, of what the factors are side by side."""
    left = np.concatenate([np.asarray(x) for x in a], -2 if transpose_a else -1)
    right = np.concatenate([np.asarray(x) for x in b], -1 if transpose_b else -2)
    return matmul(left, right, transpose_a, transpose_b)


def _exact_sum(values: list[Any]) -> Any:
    total = 0
    for v in values:
        total += v
    return total
