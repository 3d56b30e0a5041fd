"""How each op of ``torch.testing`` is said in graphdock: name -> function of the sample's input and arguments.

A function takes tensors where PyTorch takes tensors and Python values elsewhere, and raises :class:`Unlike` for a sample that the
op of TensorFlow cannot be asked for. What PyTorch defines otherwise than TensorFlow on purpose stands in ``opinfo_explained``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import graphdock as tf

__all__ = ["TABLE", "Unlike"]


class Unlike(Exception):
    """The sample asks for what TensorFlow's op does not offer."""


TABLE: dict[str, Callable[..., Any]] = {}

_UNARY = {
    "abs": tf.abs,
    "acos": tf.acos,
    "acosh": tf.acosh,
    "asin": tf.asin,
    "asinh": tf.asinh,
    "atan": tf.atan,
    "atanh": tf.atanh,
    "ceil": tf.ceil,
    "conj": lambda x: tf.conj(_number(x)),
    "conj_physical": lambda x: tf.conj(_number(x)),
    "cos": tf.cos,
    "cosh": tf.cosh,
    "erf": tf.erf,
    "erfc": tf.erfc,
    "exp": tf.exp,
    "expm1": tf.expm1,
    "floor": tf.floor,
    "isfinite": tf.is_finite,
    "isinf": tf.is_inf,
    "isnan": tf.is_nan,
    "log": tf.log,
    "log1p": tf.log1p,
    "logical_not": lambda x: tf.logical_not(tf.cast(x, tf.bool)),
    "neg": tf.negative,
    "reciprocal": tf.reciprocal,
    "round": lambda x, decimals=0: tf.round(x) if decimals == 0 else _unlike(),
    "rsqrt": tf.rsqrt,
    "sigmoid": tf.sigmoid,
    "sgn": tf.sign,
    "sign": tf.sign,
    "sin": tf.sin,
    "sinh": tf.sinh,
    "sqrt": tf.sqrt,
    "square": tf.square,
    "tan": tf.tan,
    "tanh": tf.tanh,
    "lgamma": lambda x: tf.lgamma(x),
    "digamma": lambda x: tf.digamma(x),
    "i0": lambda x: tf.math.bessel_i0(x),
    "special.i0e": lambda x: tf.math.bessel_i0e(x),
    "special.i1": lambda x: tf.math.bessel_i1(x),
    "special.i1e": lambda x: tf.math.bessel_i1e(x),
    "real": lambda x: tf.real(x),
    "angle": lambda x: tf.angle(_inexact(x)),
    "bitwise_not": lambda x: tf.bitwise.invert(x),
    "trunc": lambda x: tf.cast(tf.where(x < 0, tf.ceil(x), tf.floor(x)), x.dtype),
    "positive": tf.identity,
    "clone": lambda x, memory_format=None: tf.identity(x),
    "contiguous": lambda x, memory_format=None: tf.identity(x),
    "alias_copy": tf.identity,
    "resolve_conj": tf.identity,
    "resolve_neg": tf.identity,
    "exp2": lambda x: tf.pow(tf.constant(2, _inexact(x).dtype), x),
    "log2": lambda x: tf.log(_inexact(x)) / math.log(2),
    "log10": lambda x: tf.log(_inexact(x)) / math.log(10),
    "deg2rad": lambda x: _inexact(x) * (math.pi / 180),
    "rad2deg": lambda x: _inexact(x) * (180 / math.pi),
    "frac": lambda x: x - tf.cast(tf.where(x < 0, tf.ceil(x), tf.floor(x)), x.dtype),
    "ravel": lambda x: tf.reshape(x, [-1]),
    "zeros_like": lambda x, dtype=None, device=None: tf.zeros_like(x, dtype),
    "ones_like": lambda x, dtype=None, device=None: tf.ones_like(x, dtype),
    "t": lambda x: tf.transpose(x),
    "T": tf.transpose,
    "mT": lambda x: tf.matrix_transpose(x),
    "fliplr": lambda x: tf.reverse(x, [1]),
    "flipud": lambda x: tf.reverse(x, [0]),
    "trace": tf.trace,
    "nonzero": lambda x, as_tuple=False: (
        _unlike("outputs") if as_tuple else tf.where(tf.not_equal(x, tf.zeros_like(x)))
    ),
    "argwhere": lambda x: tf.where(tf.not_equal(x, tf.zeros_like(x))),
    "linalg.det": lambda x: tf.matrix_determinant(x),
    "linalg.inv": lambda x: tf.matrix_inverse(x),
    "logdet": lambda x: tf.linalg.logdet(x),
    "matrix_exp": lambda x: tf.linalg.expm(x),
    "linalg.slogdet": lambda x: [tf.linalg.slogdet(x)[0], tf.real(tf.linalg.slogdet(x)[1])],
    "nn.functional.logsigmoid": lambda x: tf.log_sigmoid(x),
    "nn.functional.softsign": tf.nn.softsign,
    "nn.functional.tanhshrink": lambda x: x - tf.tanh(x),
    "nn.functional.mish": lambda x: x * tf.tanh(tf.nn.softplus(x)),
    "special.entr": lambda x: tf.where(
        _inexact(x) < 0, tf.fill(tf.shape(x), tf.constant(-math.inf, x.dtype)), -tf.math.xlogy(x, x)
    ),
    "isreal": lambda x: tf.equal(tf.imag(x), 0) if x.dtype.is_complex else tf.ones_like(x, tf.bool),
    "signbit": lambda x: _signbit(x),
    "special.ndtr": lambda x: 0.5 * tf.erfc(-_inexact(x) / math.sqrt(2)),
    "nn.functional.pixel_shuffle": None,
}
_BINARY = {
    "add": lambda x, y, alpha=1: _number(x) + y * alpha,
    "sub": lambda x, y, alpha=1: x - y * alpha,
    "mul": tf.multiply,
    "true_divide": tf.truediv,
    "atan2": tf.atan2,
    "eq": tf.equal,
    "ne": tf.not_equal,
    "ge": tf.greater_equal,
    "gt": tf.greater,
    "le": tf.less_equal,
    "lt": tf.less,
    "maximum": tf.maximum,
    "minimum": tf.minimum,
    "pow": tf.pow,
    "float_power": lambda x, y: tf.pow(
        *(tf.cast(v, tf.complex128 if x.dtype.is_complex or y.dtype.is_complex else tf.float64) for v in (x, y))
    ),
    "floor_divide": tf.floordiv,
    "remainder": tf.floormod,
    "fmod": lambda x, y: tf.truncatemod(x, y),
    "xlogy": lambda x, y: tf.math.xlogy(x, y),
    "nextafter": lambda x, y: tf.math.nextafter(x, y),
    "igamma": lambda x, y: tf.igamma(x, y),
    "igammac": lambda x, y: tf.igammac(x, y),
    "special.zeta": lambda x, y: tf.zeta(x, y),
    "hypot": lambda x, y: tf.abs(tf.complex(x, y)),
    "logical_and": lambda x, y: tf.logical_and(tf.cast(x, tf.bool), tf.cast(y, tf.bool)),
    "logical_or": lambda x, y: tf.logical_or(tf.cast(x, tf.bool), tf.cast(y, tf.bool)),
    "logical_xor": lambda x, y: tf.logical_xor(tf.cast(x, tf.bool), tf.cast(y, tf.bool)),
    "bitwise_and": lambda x, y: tf.bitwise.bitwise_and(x, y),
    "bitwise_or": lambda x, y: tf.bitwise.bitwise_or(x, y),
    "bitwise_xor": lambda x, y: tf.bitwise.bitwise_xor(x, y),
    "bitwise_left_shift": lambda x, y: tf.bitwise.left_shift(x, y),
    "bitwise_right_shift": lambda x, y: tf.bitwise.right_shift(x, y),
    "complex": lambda x, y: tf.complex(x, y),
    "__radd__": lambda x, y: y + x,
    "__rsub__": lambda x, y: y - x,
    "__rmul__": lambda x, y: y * x,
    "__rdiv__": lambda x, y: y / x,
    "__rpow__": lambda x, y: tf.pow(tf.cast(y, x.dtype), x),
    "__rmod__": lambda x, y: tf.floormod(tf.cast(y, x.dtype), x),
    "__rmatmul__": lambda x, y: _matmul(y, x),
    "matmul": lambda x, y: _matmul(x, y),
    "mm": tf.matmul,
    "bmm": tf.matmul,
    "mv": lambda x, y: tf.linalg.matvec(x, y),
    "dot": lambda x, y: tf.reduce_sum(x * y),
    "outer": lambda x, y: x[:, None] * y[None, :],
    "linalg.vecdot": lambda x, y, dim=-1: tf.reduce_sum(tf.conj(x) * y, axis=dim),
    "inner": lambda x, y: tf.tensordot(x, y, [[-1], [-1]]) if x.shape.ndims and y.shape.ndims else x * y,
    "linalg.cross": lambda x, y, dim=-1: (
        tf.cross(x, y) if dim in (-1, x.shape.ndims - 1) and x.shape == y.shape else _unlike()
    ),
    "logaddexp": lambda x, y: tf.maximum(x, y) + tf.log1p(tf.exp(-tf.abs(x - y))),
    "heaviside": lambda x, y: tf.where(
        _like(tf.equal(_number(x), 0), x, y), _like(y, x, y), _like(tf.cast(x > 0, x.dtype), x, y)
    ),
    "linalg.solve": lambda x, y, left=True: (
        tf.matrix_solve(x, y) if left and y.shape.ndims == x.shape.ndims else _unlike()
    ),
}


def _unlike(why: str = "arguments") -> Any:
    raise Unlike(why)


def _number(x: Any) -> Any:
    return _unlike("dtype") if x.dtype == tf.bool else x


def _inexact(x: Any) -> Any:
    return x if x.dtype.is_floating or x.dtype.is_complex else _unlike("dtype")


def _signbit(x: Any) -> Any:
    if x.dtype.is_floating:
        x = tf.bitcast(x, tf.int64 if x.dtype == tf.float64 else tf.int32)
    return _number(x) < 0


def _matmul(x: Any, y: Any) -> Any:
    if x.shape.ndims < 2 or y.shape.ndims < 2:
        raise Unlike("rank")  # TensorFlow multiplies matrices only
    return tf.matmul(x, y)


def _op(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def keep(function: Callable[..., Any]) -> Callable[..., Any]:
        TABLE[name] = function
        return function

    return keep


TABLE.update({k: v for k, v in _UNARY.items() if v is not None})
TABLE.update(_BINARY)


def _axes(dim: Any) -> Any:
    return None if dim is None or dim == () else list(dim) if isinstance(dim, (list, tuple)) else dim


def _reduction(function: Callable[..., Any], whole: bool = False) -> Callable[..., Any]:
    def reduce(x: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None, **other: Any) -> Any:
        if other or (x.shape.ndims == 0 and dim is not None):
            raise Unlike("arguments")
        return function(x if dtype is None else tf.cast(x, dtype), axis=_axes(dim), keep_dims=keepdim)

    return reduce


def _widen(x: Any) -> Any:
    return tf.cast(x, tf.int64) if x.dtype.is_integer or x.dtype == tf.bool else x


TABLE.update(
    {
        "sum": lambda x, *a, **k: _reduction(tf.reduce_sum)(_widen(x), *a, **k),
        "mean": _reduction(tf.reduce_mean),
        "prod": lambda x, *a, **k: _reduction(tf.reduce_prod)(_widen(x), *a, **k),
        "amax": _reduction(tf.reduce_max),
        "amin": _reduction(tf.reduce_min),
        "all": lambda x, *a, **k: _reduction(tf.reduce_all)(tf.cast(x, tf.bool), *a, **k),
        "any": lambda x, *a, **k: _reduction(tf.reduce_any)(tf.cast(x, tf.bool), *a, **k),
        "logsumexp": _reduction(tf.reduce_logsumexp),
        "count_nonzero": lambda x, dim=None: (
            tf.count_nonzero(x, axis=_axes(dim)) if x.shape.ndims or dim is None else _unlike()
        ),
    }
)


@_op("var")
def _var(x: Any, dim: Any = None, unbiased: Any = None, correction: Any = None, keepdim: bool = False) -> Any:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    left = 1 if correction is None and unbiased is not False else correction or 0
    axes = range(x.shape.ndims) if _axes(dim) is None else [_axes(dim)] if isinstance(_axes(dim), int) else _axes(dim)
    if x.shape.ndims == 0:
        raise Unlike("rank")
    count = math.prod(int(x.shape[d]) for d in axes)
    if count <= left or x.dtype.is_complex:
        raise Unlike("arguments")
    return tf.math.reduce_variance(x, axis=_axes(dim), keepdims=keepdim) * (count / (count - left))


@_op("std")
def _std(x: Any, dim: Any = None, unbiased: Any = None, correction: Any = None, keepdim: bool = False) -> Any:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    left = 1 if correction is None and unbiased is not False else correction or 0
    axes = range(x.shape.ndims) if _axes(dim) is None else [_axes(dim)] if isinstance(_axes(dim), int) else _axes(dim)
    if x.shape.ndims == 0:
        raise Unlike("rank")
    count = math.prod(int(x.shape[d]) for d in axes)
    if count <= left or x.dtype.is_complex:
        raise Unlike("arguments")
    return tf.math.reduce_std(x, axis=_axes(dim), keepdims=keepdim) * math.sqrt(count / (count - left))


def _arg(function: Callable[..., Any]) -> Callable[..., Any]:
    def find(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if x.shape.ndims == 0:
            raise Unlike("arguments")
        if dim is None:
            return function(tf.reshape(x, [-1]), 0)
        found = function(x, dim)
        return tf.expand_dims(found, dim) if keepdim else found

    return find


TABLE["argmax"], TABLE["argmin"] = _arg(tf.argmax), _arg(tf.argmin)


def _scan(function: Callable[..., Any]) -> Callable[..., Any]:
    def scan(x: Any, dim: int, dtype: Any = None) -> Any:
        if x.shape.ndims == 0:
            raise Unlike("rank")
        return function(_widen(x) if dtype is None else tf.cast(x, dtype), axis=dim)

    return scan


TABLE["cumsum"] = _scan(tf.cumsum)
TABLE["cumprod"] = _scan(lambda x, axis: tf.cumprod(x, axis=axis))
if "cumulative_logsumexp" in dir(tf.math):
    TABLE["logcumsumexp"] = _scan(lambda x, axis: tf.math.cumulative_logsumexp(x, axis=axis))


# -- shapes


def _shape(*shape: Any) -> list[int]:
    return list(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else list(shape)


TABLE.update(
    {
        "reshape": lambda x, *s: tf.reshape(x, _shape(*s)),
        "view": lambda x, *s: tf.reshape(x, _shape(*s)) if all(isinstance(d, int) for d in _shape(*s)) else _unlike(),
        "view_copy": lambda x, *s: (
            tf.reshape(x, _shape(*s)) if all(isinstance(d, int) for d in _shape(*s)) else _unlike()
        ),
        "reshape_as": lambda x, y: tf.reshape(x, tf.shape(y)),
        "view_as": lambda x, y: tf.reshape(x, tf.shape(y)),
        "broadcast_to": lambda x, s: tf.broadcast_to(x, list(s)),
        "expand_as": lambda x, y: tf.broadcast_to(x, tf.shape(y)),
        "unsqueeze": lambda x, dim: tf.expand_dims(x, dim),
        "unsqueeze_copy": lambda x, dim: tf.expand_dims(x, dim),
        "transpose": lambda x, a, b: _swap(x, a, b),
        "transpose_copy": lambda x, a, b: _swap(x, a, b),
        "permute": lambda x, *p: _permute(x, _shape(*p)),
        "permute_copy": lambda x, *p: _permute(x, _shape(*p)),
        "flip": lambda x, dims: (
            tf.reverse(x, [d % x.shape.ndims for d in _shape(dims)]) if x.shape.ndims else _unlike()
        ),
        "roll": lambda x, shifts, dims=None: _roll(x, shifts, dims),
        "tile": lambda x, *reps: _tile(x, _shape(*reps)),
        "repeat": lambda x, *reps: _tile(x, _shape(*reps)),
        "cat": lambda xs, dim=0: (
            tf.concat(list(xs), dim) if len({(x.shape.ndims, x.dtype) for x in xs}) == 1 else _unlike()
        ),
        "stack": lambda xs, dim=0: tf.stack(list(xs), dim),
        "unbind": lambda x, dim=0: tf.unstack(x, axis=dim) if x.shape.ndims else _unlike(),
        "chunk": lambda x, n, dim=0: tf.split(x, n, dim) if int(x.shape[dim]) % n == 0 else _unlike(),
        "split_with_sizes": lambda x, sizes, dim=0: tf.split(x, list(sizes), dim),
        "diag_embed": lambda x, offset=0, dim1=-2, dim2=-1: (
            tf.matrix_diag(x) if (offset, dim1, dim2) == (0, -2, -1) else _unlike()
        ),
        "narrow": lambda x, dim, start, length: _narrow(x, dim, start, length),
        "tril": lambda x, diagonal=0: _band(x, -1, diagonal),
        "triu": lambda x, diagonal=0: _band(x, -diagonal, -1),
        "eye": lambda n, m=None, **k: (
            tf.eye(n, m, dtype=k.get("dtype", tf.float32)) if set(k) <= {"dtype", "device"} else _unlike()
        ),
        "meshgrid": lambda *xs, indexing="ij": tf.meshgrid(
            *(xs[0] if isinstance(xs[0], (list, tuple)) else xs), indexing=indexing
        ),
        "linspace": None,
        "constant_pad_nd": lambda x, pad, value=0: tf.pad(x, _pads(x, pad), constant_values=_scalar(value, x)),
        "nn.functional.pad": lambda x, pad, mode="constant", value=None: _pad(x, pad, mode, value),
        "select": lambda x, dim, index: tf.gather(x, index % int(x.shape[dim]), axis=dim),
        "index_select": lambda x, dim, index: (
            tf.gather(x, index, axis=dim) if x.shape.ndims and index.shape.ndims == 1 else _unlike()
        ),
        "squeeze": lambda x, dim=None: _squeeze(x, dim),
        "flatten": lambda x, start_dim=0, end_dim=-1: _flatten(x, start_dim, end_dim),
        "movedim": None,
        "rot90": lambda x, k=1, dims=(0, 1): _rot90(x, k, dims),
        "take": lambda x, index: tf.gather(tf.reshape(x, [-1]), tf.floormod(index, tf.size(x, out_type=tf.int64))),
        "unique": None,
    }
)
for _name in [n for n, f in TABLE.items() if f is None]:
    del TABLE[_name]


def _swap(x: Any, a: int, b: int) -> Any:
    order = list(range(x.shape.ndims))
    if not order:
        raise Unlike("arguments")
    order[a], order[b] = order[b], order[a]
    return tf.transpose(x, order)


def _permute(x: Any, order: list[int]) -> Any:
    return tf.transpose(x, [d % len(order) for d in order]) if order else tf.identity(x)


def _roll(x: Any, shifts: Any, dims: Any) -> Any:
    if not x.shape.ndims:
        raise Unlike("arguments")
    if dims is None or dims == ():
        return tf.reshape(
            tf.roll(tf.reshape(x, [-1]), shifts if isinstance(shifts, int) else shifts[0], 0), tf.shape(x)
        )
    return tf.roll(
        x, shifts if isinstance(shifts, int) else list(shifts), dims if isinstance(dims, int) else list(dims)
    )


def _tile(x: Any, reps: list[int]) -> Any:
    rank = x.shape.ndims
    reps = [1] * (rank - len(reps)) + reps
    x = tf.reshape(x, [1] * (len(reps) - rank) + x.shape.as_list())
    return tf.tile(x, reps)


def _narrow(x: Any, dim: int, start: Any, length: int) -> Any:
    if not isinstance(start, int):
        raise Unlike("arguments")
    rank = x.shape.ndims
    dim %= rank
    begin = [start % int(x.shape[dim]) if d == dim and start < 0 else start if d == dim else 0 for d in range(rank)]
    return tf.slice(x, begin, [length if d == dim else -1 for d in range(rank)])


def _band(x: Any, lower: int, upper: int) -> Any:
    if lower < -1 or upper < -1 or (lower, upper) != (-1, abs(upper)) and (lower, upper) != (abs(lower), -1):
        raise Unlike("arguments")
    return tf.matrix_band_part(x, lower, upper)


def _scalar(value: Any, x: Any) -> Any:
    """A Python number as one of x's dtype, as PyTorch converts it."""
    return value if x.dtype.is_floating or x.dtype.is_complex else x.dtype.as_numpy_dtype(value)


def _pads(x: Any, pad: Any) -> list[list[int]]:
    pairs = [list(pad[i : i + 2]) for i in range(0, len(pad), 2)][::-1]
    if any(p < 0 for pair in pairs for p in pair):
        raise Unlike("arguments")
    return [[0, 0]] * (x.shape.ndims - len(pairs)) + pairs


def _pad(x: Any, pad: Any, mode: str, value: Any) -> Any:
    if mode not in ("constant", "reflect"):
        raise Unlike("arguments")
    return tf.pad(x, _pads(x, pad), mode=mode, constant_values=_scalar(value or 0, x))


def _squeeze(x: Any, dim: Any) -> Any:
    dims = [dim] if isinstance(dim, int) else list(dim) if dim is not None else None
    if dims is not None:
        dims = [d for d in dims if x.shape.ndims and int(x.shape[d]) == 1]
        if not dims:
            return tf.identity(x)
    return tf.squeeze(x, dims)


def _flatten(x: Any, start: int, end: int) -> Any:
    rank = max(x.shape.ndims, 1)
    shape = x.shape.as_list() or [1]
    start, end = start % rank, end % rank
    return tf.reshape(x, shape[:start] + [math.prod(shape[start : end + 1])] + shape[end + 1 :])


def _rot90(x: Any, k: int, dims: Any) -> Any:
    if list(dims) != [0, 1] or x.shape.ndims != 3:
        raise Unlike("arguments")
    return tf.image.rot90(x, k)


# -- linear algebra, Fourier transforms


def _einsum(xs: Any, equation: str) -> Any:
    return tf.einsum(equation, *xs)


TABLE["einsum"] = _einsum
TABLE["tensordot"] = lambda x, y, dims=2: (
    tf.tensordot(x, y, [list(d) for d in dims] if not isinstance(dims, int) else dims)
    if isinstance(dims, int) or [x.shape[i] for i in dims[0]] == [y.shape[i] for i in dims[1]]
    else _unlike("broadcast")
)


def _times(x: Any, factor: Any) -> Any:
    if factor == 0:
        return tf.zeros_like(x)  # PyTorch leaves the term out
    if isinstance(factor, float) and not x.dtype.is_floating and not x.dtype.is_complex:
        raise Unlike("dtype")
    return x if factor == 1 else _number(x) * factor


def _same(x: Any, other: Any) -> Any:
    return x if x.dtype == other.dtype else _unlike("dtype")


TABLE["addmm"] = lambda c, a, b, beta=1, alpha=1: _times(c, beta) + _times(tf.matmul(a, b), alpha)
TABLE["baddbmm"] = lambda c, a, b, beta=1, alpha=1: _times(c, beta) + _times(tf.matmul(a, b), alpha)
TABLE["addmv"] = lambda c, a, b, beta=1, alpha=1: _times(c, beta) + _times(tf.linalg.matvec(a, b), alpha)
TABLE["addr"] = lambda c, a, b, beta=1, alpha=1: _times(c, beta) + _times(a[:, None] * b[None, :], alpha)
TABLE["addcmul"] = lambda c, a, b, value=1: c + _times(_same(a, c) * _same(b, c), value)
TABLE["addcdiv"] = lambda c, a, b, value=1: c + _times(_inexact(_same(a, c)) / _same(b, c), value)
TABLE["lerp"] = lambda x, y, w: x + (y - x) * w
TABLE["linalg.cholesky"] = lambda x, upper=False: tf.cholesky(x) if not upper else _unlike()
TABLE["cholesky"] = TABLE["linalg.cholesky"]
TABLE["cholesky_solve"] = lambda b, l, upper=False: (
    tf.cholesky_solve(l, b) if not upper and b.shape.ndims == l.shape.ndims else _unlike()
)
TABLE["linalg.solve_triangular"] = lambda a, b, upper, left=True, unitriangular=False: (
    tf.matrix_triangular_solve(a, b, lower=not upper)
    if left and not unitriangular and a.shape[:-2] == b.shape[:-2]
    else _unlike()
)
TABLE["linalg.svdvals"] = lambda x: tf.svd(x, compute_uv=False)
TABLE["linalg.eigvalsh"] = lambda x, UPLO="L": tf.self_adjoint_eigvals(x) if UPLO == "L" else _unlike()  # noqa: N803
TABLE["linalg.pinv"] = lambda x, *b, **k: (
    _unlike() if k else tf.linalg.pinv(tf.matmul(x, b[0], transpose_b=True) if b else x)
)
TABLE["linalg.matrix_rank"] = lambda x, *a, **k: tf.linalg.matrix_rank(x) if not a and not k else _unlike()
TABLE["linalg.vector_norm"] = lambda x, ord=2, dim=None, keepdim=False, dtype=None: (
    _real(tf.norm(x if dim is not None else tf.reshape(x, [-1]), ord, axis=dim, keepdims=keepdim))
    if dtype is None
    and ord > 0
    and x.shape.ndims
    and (dim is None or isinstance(dim, int))
    and not (dim is None and keepdim)
    else _unlike()
)
TABLE["linalg.matrix_norm"] = lambda x, ord="fro", dim=(-2, -1), keepdim=False, dtype=None: (
    _real(tf.norm(x, "fro" if ord == "fro" else ord, axis=[d % x.shape.ndims for d in dim], keepdims=keepdim))
    if dtype is None and ord in ("fro", 1, math.inf, 2)
    else _unlike()
)


def _real(x: Any) -> Any:
    return tf.real(x) if x.dtype.is_complex else x


def _fft(name: str, takes_length: bool = False) -> Callable[..., Any]:
    def transform(x: Any, n: Any = None, dim: int = -1, norm: Any = None) -> Any:
        if dim not in (-1, x.shape.ndims - 1) or norm not in (None, "backward") or (n is not None and not takes_length):
            raise Unlike("arguments")
        if x.dtype.is_integer or x.dtype == tf.bool:
            x = tf.cast(x, tf.float32)
        if name != "rfft" and not x.dtype.is_complex:
            x = tf.cast(x, tf.complex128 if x.dtype == tf.float64 else tf.complex64)
        return getattr(tf.signal, name)(x, [n]) if n is not None else getattr(tf.signal, name)(x)

    return transform


for _name, _length in (("fft", False), ("ifft", False), ("rfft", True), ("irfft", True)):
    TABLE[f"fft.{_name}"] = _fft(_name, _length)
TABLE["fft.fftshift"] = lambda x, dim=None: tf.signal.fftshift(
    x, dim if dim is None or isinstance(dim, int) else list(dim)
)
TABLE["fft.ifftshift"] = lambda x, dim=None: tf.signal.ifftshift(
    x, dim if dim is None or isinstance(dim, int) else list(dim)
)


# -- networks

TABLE["nn.functional.relu"] = lambda x, inplace=False: tf.nn.relu(x)
TABLE["nn.functional.relu6"] = lambda x, inplace=False: tf.nn.relu6(x)
TABLE["nn.functional.selu"] = lambda x, inplace=False: tf.nn.selu(x)
TABLE["nn.functional.elu"] = lambda x, alpha=1.0, inplace=False: tf.nn.elu(x) if alpha == 1 else _unlike()
TABLE["nn.functional.leaky_relu"] = lambda x, negative_slope=0.01, inplace=False: tf.nn.leaky_relu(x, negative_slope)
TABLE["nn.functional.silu"] = lambda x, inplace=False: tf.nn.swish(x)
TABLE["nn.functional.softplus"] = lambda x, beta=1, threshold=20: tf.where(
    x * beta > threshold, x, tf.nn.softplus(x * beta) / beta
)
TABLE["nn.functional.hardtanh"] = lambda x, min_val=-1.0, max_val=1.0, inplace=False: tf.clip_by_value(
    _inexact(x), min_val, max_val
)
TABLE["nn.functional.hardsigmoid"] = lambda x, inplace=False: tf.nn.relu6(x + 3) / 6
TABLE["nn.functional.hardswish"] = lambda x, inplace=False: x * tf.nn.relu6(x + 3) / 6
TABLE["nn.functional.gelu"] = lambda x, approximate="none": (
    0.5 * x * (1 + tf.erf(x / math.sqrt(2))) if approximate == "none" else _unlike()
)
TABLE["nn.functional.mse_loss"] = lambda x, y, reduction="mean": _reduced(
    tf.squared_difference(x, _same(y, x)), reduction
)
TABLE["nn.functional.l1_loss"] = lambda x, y, reduction="mean": _reduced(tf.abs(x - _same(y, x)), reduction)
TABLE["nn.functional.linear"] = lambda x, w, b=None: _linear(x, w, b)
TABLE["nn.functional.one_hot"] = lambda x, num_classes=-1: (
    tf.one_hot(x, num_classes, dtype=tf.int64) if num_classes > 0 else _unlike()
)
TABLE["nn.functional.embedding"] = lambda ids, w, **k: tf.nn.embedding_lookup(w, ids) if not k else _unlike()
TABLE["nn.functional.normalize"] = lambda x, p=2, dim=1, eps=1e-12: (
    tf.nn.l2_normalize(x, dim, eps * eps) if p == 2 else _unlike()
)
TABLE["softmax"] = lambda x, dim, dtype=None: (
    tf.nn.softmax(x if dtype is None else tf.cast(x, dtype), dim) if x.shape.ndims else _unlike("rank")
)
TABLE["log_softmax"] = lambda x, dim, dtype=None: (
    tf.nn.log_softmax(x if dtype is None else tf.cast(x, dtype), dim) if x.shape.ndims else _unlike("rank")
)
TABLE["nn.functional.softmin"] = lambda x, dim, dtype=None: (
    tf.nn.softmax(-(x if dtype is None else tf.cast(x, dtype)), dim) if x.shape.ndims else _unlike("rank")
)
TABLE["nn.functional.binary_cross_entropy_with_logits"] = lambda x, y, reduction="mean", **k: (
    _reduced(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=x), reduction) if not k else _unlike()
)
TABLE["nn.functional.pixel_unshuffle"] = lambda x, r: _unlike()
TABLE["nn.functional.local_response_norm"] = lambda x, size, alpha=1e-4, beta=0.75, k=1.0: (
    tf.transpose(tf.nn.lrn(tf.transpose(x, [0, 2, 3, 1]), size // 2, k, alpha / size, beta), [0, 3, 1, 2])
    if x.shape.ndims == 4 and size % 2 and x.dtype == tf.float32
    else _unlike()
)
del TABLE["nn.functional.pixel_unshuffle"]


def _reduced(x: Any, how: str) -> Any:
    return {"mean": tf.reduce_mean, "sum": tf.reduce_sum, "none": tf.identity}[how](x)


def _linear(x: Any, w: Any, b: Any) -> Any:
    if w.shape.ndims != 2 or x.shape.ndims < 1:
        raise Unlike("arguments")
    y = tf.tensordot(x, w, [[-1], [1]])
    return y if b is None else y + b


@_op("nn.functional.cross_entropy")
def _cross_entropy(
    x: Any, y: Any, weight: Any = None, reduction: str = "mean", label_smoothing: float = 0.0, **k: Any
) -> Any:
    if weight is not None or label_smoothing or k or x.shape.ndims != 2:
        raise Unlike("arguments")
    if y.dtype.is_integer:
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=x)
    else:
        loss = tf.nn.softmax_cross_entropy_with_logits_v2(labels=y, logits=x)
    return _reduced(loss, reduction)


def _pair(value: Any, n: int) -> list[int]:
    return [value] * n if isinstance(value, int) else list(value) * (n if len(value) == 1 else 1)


def _last(x: Any) -> Any:
    return tf.transpose(x, [0, *range(2, x.shape.ndims), 1])


def _first(x: Any) -> Any:
    return tf.transpose(x, [0, x.shape.ndims - 1, *range(1, x.shape.ndims - 1)])


def _conv(n: int) -> Callable[..., Any]:
    def conv(
        x: Any, w: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
    ) -> Any:
        strides, dilations = _pair(stride, n), _pair(dilation, n)
        if x.shape.ndims != n + 2 or groups != 1 or (max(strides) > 1 and max(dilations) > 1):
            raise Unlike("arguments")
        x, w = _last(x), tf.transpose(w, [*range(2, n + 2), 1, 0])
        if isinstance(padding, str):
            if padding == "same" and max(strides) > 1:
                raise Unlike("arguments")
            if padding == "same" and any((int(k) - 1) * d % 2 for k, d in zip(w.shape[:n], dilations, strict=True)):
                raise Unlike("arguments")
            how = padding.upper()
        else:
            x = tf.pad(x, [[0, 0], *([p, p] for p in _pair(padding, n)), [0, 0]])
            how = "VALID"
        y = tf.nn.convolution(x, w, how, strides=strides, dilation_rate=dilations)
        return _first(y if bias is None else y + bias)

    return conv


for _n in (1, 2, 3):
    TABLE[f"nn.functional.conv{_n}d"] = _conv(_n)


def _pool(kind: str, n: int) -> Callable[..., Any]:
    def pool(x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, *more: Any, **k: Any) -> Any:
        if k.get("dilation") in (1, (1,) * n):
            del k["dilation"]
        outputs = 2 if k.pop("return_indices", False) else 1
        k = {
            key: value
            for key, value in k.items()
            if not (value is None or value is False or key == "count_include_pad")
        }
        if x.shape.ndims != n + 2 or any(_pair(padding, n)) or more or k or not x.dtype.is_floating:
            raise Unlike("arguments")
        size = _pair(kernel_size, n)
        strides = size if stride is None or stride == () else _pair(stride, n)
        if max(strides) > 1 and any(s > w for s, w in zip(strides, size, strict=True)):
            raise Unlike("strides")
        y = _first(tf.nn.pool(_last(x), size, kind, "VALID", strides=strides))
        return [y, None] if outputs == 2 else y

    return pool


for _n in (1, 2, 3):
    TABLE[f"nn.functional.max_pool{_n}d"] = _pool("MAX", _n)
    TABLE[f"nn.functional.avg_pool{_n}d"] = _pool("AVG", _n)


# -- choosing, ordering, scattering


TABLE["where"] = lambda x, c, y: (
    tf.where(_like(c, x, y), _like(x, c, y), _like(y, c, x)) if x.dtype == y.dtype else _unlike()
)
TABLE["masked_fill"] = lambda x, m, v: tf.where(_like(m, x, x), _like(tf.cast(v, x.dtype), x, m), _like(x, m, m))
TABLE["masked_select"] = lambda x, m: (
    tf.boolean_mask(_like(x, m, m), _like(m, x, x)) if x.shape.ndims or m.shape.ndims else _unlike()
)
TABLE["clamp_min"] = lambda x, y=None, min=None: tf.maximum(x, y if min is None else min)
TABLE["clamp_max"] = lambda x, y=None, max=None: tf.minimum(x, y if max is None else max)
TABLE["topk"] = lambda x, k, dim=-1, largest=True, sorted=True: (
    [tf.nn.top_k(x, k)[0], None] if largest and x.shape.ndims and dim in (-1, x.shape.ndims - 1) else _unlike()
)
TABLE["sort"] = lambda x, dim=-1, descending=False, stable=False: (
    [tf.sort(x, axis=dim, direction="DESCENDING" if descending else "ASCENDING"), None]
    if x.shape.ndims
    else _unlike("rank")
)
TABLE["searchsorted"] = lambda s, v, out_int32=False, right=False, side=None, sorter=None: (
    tf.searchsorted(s, v, side=side or ("right" if right else "left"), out_type=tf.int32 if out_int32 else tf.int64)
    if sorter is None and s.shape.ndims and s.shape[:-1] == v.shape[:-1] and s.shape.ndims == v.shape.ndims
    else _unlike()
)
TABLE["bincount"] = lambda x, weights=None, minlength=0: (
    _unlike() if weights is not None or minlength else tf.bincount(tf.cast(x, tf.int32), dtype=tf.int64)
)
TABLE["isclose"] = lambda x, y, rtol=1e-5, atol=1e-8, equal_nan=False: (
    _unlike() if equal_nan else _unlike("dtype") if x.dtype.is_integer else tf.abs(x - y) <= atol + rtol * tf.abs(y)
)
TABLE["trapz"] = lambda y, x=None, dx=1, dim=-1: _unlike()
del TABLE["trapz"]
TABLE["polygamma"] = lambda x, n: tf.polygamma(tf.cast(n, x.dtype), x)
TABLE["gather"] = lambda x, dim, index: (
    tf.batch_gather(x, index)
    if x.shape.ndims and dim in (-1, x.shape.ndims - 1) and x.shape[:-1] == index.shape[:-1]
    else _unlike()
)
TABLE["scatter_add"] = lambda x, dim, index, src: (
    tf.tensor_scatter_add(x, index[:, None], src)
    if x.shape.ndims == 1 and index.shape == src.shape and dim in (0, -1)
    else _unlike()
)
TABLE["index_add"] = lambda x, dim, index, source, alpha=1: (
    tf.tensor_scatter_add(x, index[:, None], source * alpha)
    if dim == 0 and x.shape.ndims and index.shape.ndims == 1
    else _unlike()
)
TABLE["diag"] = lambda x, diagonal=0: (
    (tf.diag(x) if x.shape.ndims == 1 else tf.matrix_diag_part(x)) if diagonal == 0 else _unlike()
)
TABLE["diagonal"] = lambda x, offset=0, dim1=0, dim2=1: (
    tf.matrix_diag_part(x)
    if offset == 0 and [d % x.shape.ndims for d in (dim1, dim2)] == [x.shape.ndims - 2, x.shape.ndims - 1]
    else _unlike()
)
TABLE["kron"] = lambda x, y: (
    tf.reshape(
        x[:, None, :, None] * y[None, :, None, :], [int(a) * int(b) for a, b in zip(x.shape, y.shape, strict=True)]
    )
    if x.shape.ndims == 2 == y.shape.ndims
    else _unlike()
)


def _like(x: Any, *others: Any) -> Any:
    """Broadcast with the others, as TensorFlow's ``where`` does not."""
    shape = tf.shape(x)
    for other in others:
        shape = tf.broadcast_dynamic_shape(shape, tf.shape(other))
    return tf.broadcast_to(x, shape)


for _name, _dtype in (
    ("float", tf.float32),
    ("double", tf.float64),
    ("int", tf.int32),
    ("long", tf.int64),
    ("bool", tf.bool),
    ("half", tf.float16),
    ("short", tf.int16),
    ("char", tf.int8),
    ("bfloat16", tf.bfloat16),
):
    TABLE[_name] = lambda x, dtype=_dtype, **k: tf.cast(x, dtype) if not k or set(k) == {"memory_format"} else _unlike()
