"""Public array functions that are more than a wrapper of an op of ``specs/array.yaml``.

Names, arguments and defaults are TensorFlow 1's. All build graph nodes and return Tensors. Anything that
``tf.convert_to_tensor`` takes is taken as a tensor. Shapes, axes and permutations may be Python integers, which static
shape inference sees, or tensors, which it sees as far as their content is known.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Iterator, Sequence
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal

import graphdock as _tf
import numpy as np
from graphdock import dtypes, errors
from graphdock import ops as _ops
from graphdock.typing import DTypeLike, ShapeLike, TensorLike

from graphdock_std.grad_support import is_tensor, static_shape

if TYPE_CHECKING:
    from graphdock_std.sparse.tensor import SparseTensor, SparseTensorValue

_CONSTANT_LIMIT = 1024


def _convert(value: Any, **more: Any) -> Any:
    return _ops.convert_to_tensor(value, **more)


def _static(dims: Any) -> bool:
    return dims is not None and None not in dims


# shape


def transpose(
    a: TensorLike, perm: TensorLike | None = None, name: str | None = None, conjugate: bool = False
) -> _ops.Tensor:
    """Axis k of the result is axis ``perm[k]`` of ``a``; by default the axes are reversed. ``conjugate`` conjugates it too."""
    x = _convert(a)
    if perm is None:
        dims = static_shape(x)
        perm = list(builtins.range(len(dims)))[::-1] if dims is not None else rank(x) - 1 - range(0, rank(x))
    return _ops.apply_op("Transpose", x=_conjugate(x, conjugate), perm=perm, name=name or "transpose")


def _conjugate(x: Any, wanted: bool) -> Any:
    return _tf.conj(x) if wanted else x


def matrix_transpose(a: TensorLike, name: str | None = None, conjugate: bool = False) -> _ops.Tensor:
    """The last two axes swapped; ``conjugate`` conjugates the elements too."""
    x = _conjugate(_convert(a), conjugate)
    dims = static_shape(x)
    if dims is not None and len(dims) < 2:
        raise errors.ShapeError(f"matrix_transpose needs a matrix, but the shape is {x.shape}")
    if dims is not None:
        perm: Any = [*builtins.range(len(dims) - 2), len(dims) - 1, len(dims) - 2]
    else:
        perm = concat([range(0, rank(x) - 2), stack([rank(x) - 1, rank(x) - 2])], 0)
    return _ops.apply_op("Transpose", x=x, perm=perm, name=name or "matrix_transpose")


def squeeze(
    input: TensorLike, axis: TensorLike | None = None, name: str | None = None, squeeze_dims: TensorLike | None = None
) -> _ops.Tensor:
    """The tensor without the axes given (an int or a list), each of size 1; without all axes of size 1 by default."""
    axis = squeeze_dims if axis is None else axis
    axes = [] if axis is None else [axis] if isinstance(axis, (int, np.integer)) else list(axis)
    return _ops.apply_op("Squeeze", x=input, axis=[int(a) for a in axes], name=name)


def expand_dims(
    input: TensorLike, axis: TensorLike | None = None, name: str | None = None, dim: TensorLike | None = None
) -> _ops.Tensor:
    """The tensor with a dim of 1 put in at ``axis``, which counts from the end where negative; ``dim`` is its older name.

    Raises:
      InvalidArgumentError: no axis, or both names of it.
    """
    if (axis is None) == (dim is None):
        raise errors.InvalidArgumentError(
            "expand_dims needs an axis",
            got="axis and dim" if dim is not None else "none",
            hint="write expand_dims(x, 0)",
        )
    at = dim if axis is None else axis
    if isinstance(at, (list, tuple, np.ndarray)) and len(np.shape(at)) == 1 and len(at) == 1:
        at = at[0]
    return _ops.apply_op("ExpandDims", x=input, axis=at, name=name)


def size(
    input: TensorLike | SparseTensor | SparseTensorValue, name: str | None = None, out_type: DTypeLike = dtypes.int32
) -> _ops.Tensor:
    """Number of elements, a scalar in host memory; a constant where the shape is known. Of a SparseTensor all places count."""
    dtype = dtypes.as_dtype(out_type)
    if hasattr(input, "dense_shape"):
        from graphdock_std.sparse.tensor import SparseTensor

        whole = SparseTensor.from_value(input).dense_shape
        return _ops.cast(_ops.apply_op("Prod", x=whole, axis=[0], keep_dims=False), dtype, name)
    x = _convert(input)
    dims = static_shape(x)
    if _static(dims):
        count = math.prod(dims)  # type: ignore[arg-type]
        if count > dtype.max:
            raise errors.InvalidArgumentError(
                f"the {count} elements of shape {list(dims)} are more than {dtype.name} holds",  # type: ignore[arg-type]
                hint="use out_type=tf.int64",
            )
        return _ops.constant(count, dtype, name=name or "Size")
    return _ops.apply_op("Size", input=x, out_type=dtype, name=name)


def rank(input: TensorLike | SparseTensor | SparseTensorValue, name: str | None = None) -> _ops.Tensor:
    """Number of axes, an int32 scalar in host memory; a constant where it is known. Also of a SparseTensor."""
    if hasattr(input, "dense_shape"):
        from graphdock_std.sparse.tensor import SparseTensor

        return size(SparseTensor.from_value(input).dense_shape, name)
    x = _convert(input)
    dims = static_shape(x)
    if dims is not None:
        return _ops.constant(len(dims), dtypes.int32, name=name or "Rank")
    return _ops.apply_op("Rank", input=x, name=name)


# joining and cutting


def _is_index(value: Any) -> bool:
    """Return whether it may be one integer: a number, or an integer tensor that is not known to be more than a scalar."""
    if is_tensor(value):
        x = _convert(value)
        return x.dtype.is_integer and static_shape(x) in (None, ())
    return isinstance(value, (int, np.integer)) or isinstance(value, np.ndarray) and value.ndim == 0


def _kind(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def concat(values: Sequence[TensorLike] | TensorLike, axis: TensorLike, name: str | None = None) -> _ops.Tensor:
    """The tensors joined along an axis; one tensor alone is passed on."""
    values = list(values) if isinstance(values, Iterator) else values
    listed = isinstance(values, (list, tuple))
    if not isinstance(name, (str, NoneType)) or not (listed or isinstance(axis, (list, tuple)) or _is_index(axis)):
        raise errors.DTypeError(
            "concat: values must be a list of tensors, axis an integer, and name a string",
            got=f"values {_kind(values)}, axis {_kind(axis)}, name {_kind(name)}",
            hint="write tf.concat([a, b], axis)",
        )
    items = list(values) if isinstance(values, (list, tuple)) else [values]
    if isinstance(axis, (list, tuple)):
        raise errors.InvalidArgumentError(
            "concat: axis must be a scalar integer", got=f"a list of {len(axis)}", hint="tf.concat(values, axis)"
        )
    if len(items) == 1:
        return _ops.identity(items[0], name=name or "concat")
    return _ops.apply_op("Concat", values=items, axis=axis, name=name or "concat")


def split(
    value: TensorLike,
    num_or_size_splits: TensorLike,
    axis: TensorLike = 0,
    num: int | None = None,
    name: str | None = None,
) -> list[_ops.Tensor]:
    """The tensor cut along an axis.

    Args:
      num_or_size_splits: an int, the number of equal parts; or a vector of the parts' sizes, of which one may be -1.
      num: number of parts, where ``num_or_size_splits`` is a tensor whose length is not known.
    """
    if isinstance(num_or_size_splits, (int, np.integer)):
        return _ops.apply_op("Split", axis=axis, value=value, num_split=int(num_or_size_splits), name=name or "split")  # type: ignore[no-any-return]
    sizes = _convert(num_or_size_splits, preferred_dtype=dtypes.int32)
    dims = static_shape(sizes)
    if dims == ():
        raise errors.InvalidArgumentError("split needs the number of parts as a Python integer, not as a tensor")
    count = num if num is not None else None if dims is None else dims[0]
    if count is None:
        raise errors.InvalidArgumentError("split cannot tell the number of parts", hint="pass num=")
    return _ops.apply_op("SplitV", value=value, size_splits=sizes, axis=axis, num_split=count, name=name or "split")  # type: ignore[no-any-return]


def stack(values: Sequence[TensorLike] | TensorLike, axis: int = 0, name: str | None = None) -> _ops.Tensor:
    """Tensors of one shape along a new axis."""
    if is_tensor(values) or not isinstance(name, (str, NoneType)):
        raise errors.InvalidArgumentError(
            "stack: values must be a list of tensors, axis an integer, and name a string",
            got=f"values {_kind(values)}, axis {_kind(axis)}, name {_kind(name)}",
            hint="write tf.stack([a, b], axis)",
        )
    return _ops.apply_op("Pack", values=list(values), axis=axis, name=name or "stack")


def unstack(value: TensorLike, num: int | None = None, axis: int = 0, name: str | None = None) -> list[_ops.Tensor]:
    """The slices along an axis. ``num`` is needed only where the size of the axis is not known."""
    x = _convert(value)
    if num is None:
        dims = static_shape(x)
        if dims is None or not -len(dims) <= axis < len(dims) or dims[axis] is None:
            raise errors.InvalidArgumentError(
                f"unstack cannot tell the size of axis {axis} of shape {x.shape}", hint="pass num=, or set_shape"
            )
        num = dims[axis]
    return _ops.apply_op("Unpack", value=x, num=num, axis=axis, name=name or "unstack")  # type: ignore[no-any-return]


def meshgrid(*args: TensorLike, indexing: Literal["xy", "ij"] = "xy", name: str | None = None) -> list[_ops.Tensor]:
    """Coordinate arrays of the grid that vectors span; ``"xy"`` swaps the first two axes, ``"ij"`` does not."""
    if indexing not in ("xy", "ij"):
        raise errors.InvalidArgumentError(f"indexing is {indexing!r}", expected="'xy' or 'ij'")
    with _ops.name_scope(name or "meshgrid"):
        vectors = [_ops.apply_op("Reshape", x=v, shape=[-1]) for v in args]
        order = list(builtins.range(len(vectors)))
        if indexing == "xy" and len(order) > 1:
            order[:2] = [1, 0]
        sizes = [size(vectors[i]) for i in order]
        shape = stack(sizes) if sizes else []
        grids = []
        for i, vector in enumerate(vectors):
            view = [1] * len(vectors)
            view[order.index(i)] = -1
            grids.append(_ops.apply_op("BroadcastTo", x=_ops.apply_op("Reshape", x=vector, shape=view), shape=shape))
        return grids


# growing


def pad(
    tensor: TensorLike,
    paddings: TensorLike,
    mode: Literal["CONSTANT", "REFLECT", "SYMMETRIC", "constant", "reflect", "symmetric"] = "CONSTANT",
    name: str | None = None,
    constant_values: TensorLike = 0,
) -> _ops.Tensor:
    """A margin around a tensor.

    Args:
      paddings: ``[rank, 2]`` sizes before and after, per axis.
      mode: ``CONSTANT``, ``REFLECT`` (mirrors without the edge) or ``SYMMETRIC`` (with it), in any case.
      constant_values: a scalar, the margin's value in mode ``CONSTANT``.
    """
    x = _convert(tensor)
    empty = constant_values == 0 if isinstance(constant_values, (int, float)) else False
    value = (b"" if x.dtype.kind == "S" else 0) if empty else constant_values
    value = value if is_tensor(value) else _convert(bool(value) if x.dtype.is_bool else value, dtype=x.dtype)
    return _ops.apply_op("Pad", x=x, paddings=paddings, constant_values=value, mode=mode.lower(), name=name)


# making


def zeros(shape: ShapeLike | TensorLike, dtype: DTypeLike = dtypes.float32, name: str | None = None) -> _ops.Tensor:
    """Zeros (False, empty strings) of a shape; a constant where it is known and small."""
    return _filled(shape, dtypes.as_dtype(dtype), 0, name or "zeros")


def ones(shape: ShapeLike | TensorLike, dtype: DTypeLike = dtypes.float32, name: str | None = None) -> _ops.Tensor:
    """Ones (True) of a shape; a constant where it is known and small."""
    return _filled(shape, dtypes.as_dtype(dtype), 1, name or "ones")


def _filled(shape: Any, dtype: dtypes.DType, number: int, name: str) -> Any:
    value: Any = str(number or "").encode() if dtype.kind == "S" else bool(number) if dtype.is_bool else number
    dims: Any = None
    if not is_tensor(shape) and not (isinstance(shape, (list, tuple)) and any(is_tensor(d) for d in shape)):
        dims = known_dims(shape)
        if math.prod(dims) <= _CONSTANT_LIMIT and len(dims) <= 64 and math.prod(d or 1 for d in dims) < 2**59:
            array = np.full(dims, value, dtype.np)
            return _ops.constant(array, dtype, name=name)
    with _ops.name_scope(name) as scope:
        return _ops.apply_op(
            "Fill",
            dims=shape if dims is None else np.array(dims, np.int64 if max(dims) >= 2**31 else np.int32),
            value=_ops.constant(value, dtype),
            name=scope,
        )


def known_dims(shape: Any) -> tuple[int, ...]:
    """A shape that holds no tensor, as ints."""
    dims = getattr(shape, "dims", shape)
    items = [dims] if isinstance(dims, (int, np.integer)) else dims
    try:
        found = tuple([d.__index__() for d in items])
    except (TypeError, AttributeError):
        raise errors.ShapeError(
            f"{shape!r} is not a shape that is fully known", hint="use tf.fill with tf.shape for one that is not"
        ) from None
    if any(d < 0 for d in found):
        raise errors.ShapeError(f"shape {list(found)} holds a negative size")
    if any(d >= 2**63 for d in found):
        raise errors.ShapeError(f"shape {list(found)} holds a size beyond 2**63 - 1")
    return found


def range(
    start: TensorLike,
    limit: TensorLike | None = None,
    delta: TensorLike = 1,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> _ops.Tensor:
    """``start, start + delta, ...`` up to, not including, ``limit``; ``range(n)`` counts from 0.

    The dtype is the widest of int32, int64, float32 and float64 among what is given; Python's numbers are int32 and float32.
    """
    if limit is None:
        start, limit = 0, start
    given = (start, limit, delta)
    if dtype is None:
        dtype = _widest(given)
    wanted = dtypes.as_dtype(dtype)
    with _ops.name_scope(name or "range") as scope:
        bounds = [_ops.cast(v, wanted) if is_tensor(v) else v for v in given]
        made = _ops.apply_op("Range", start=bounds[0], limit=bounds[1], delta=bounds[2], Tidx=wanted, name=scope)
    if wanted.is_floating and not any(is_tensor(v) for v in given):
        a, b, d = (float(v) for v in given)
        if d == 0:
            raise errors.InvalidArgumentError("range: delta is zero")
        if not math.isfinite((b - a) / d):
            raise errors.InvalidArgumentError("range: start, limit and delta must be finite", got=f"{a}, {b}, {d}")
        if (b - a) / d < 0:
            raise errors.InvalidArgumentError("range: limit lies behind start", got=f"{a}, {b}, {d}")
        made.set_shape([math.ceil((b - a) / d)])
    return made


def _widest(given: Sequence[Any]) -> dtypes.DType:
    """The dtype of a range of these: the last of TensorFlow's order; of another dtype, the first one given."""
    order = ["int32", "int64", "float32", "float64"]
    found: list[dtypes.DType] = []
    for v in given:
        if is_tensor(v):
            found.append(v.dtype)
        elif isinstance(v, (np.ndarray, np.generic)):
            found.append(dtypes.as_dtype(v.dtype))
        elif isinstance(v, float):
            found.append(dtypes.float32)
        elif isinstance(v, int) and not -(2**31) <= v < 2**31:
            found.append(dtypes.int64)
    other = [d for d in found if d.name not in order]
    return other[0] if other else max(found, key=lambda d: order.index(d.name), default=dtypes.int32)


def eye(
    num_rows: TensorLike,
    num_columns: TensorLike | None = None,
    batch_shape: TensorLike | None = None,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> _ops.Tensor:
    """The identity matrix, or a batch of it."""
    with _ops.name_scope(name or "eye") as scope:
        num_rows = _scalar(num_rows)
        columns = num_rows if num_columns is None else _scalar(num_columns)
        from graphdock_std.array.indexing import one_hot

        matrix = one_hot(range(num_rows), columns, dtype=dtype, name=scope if batch_shape is None else None)
        if batch_shape is None:
            return matrix
        shape = concat([_convert(batch_shape, preferred_dtype=dtypes.int32), stack([num_rows, columns])], 0)
        return _ops.apply_op("BroadcastTo", x=matrix, shape=shape, name=scope)


def _scalar(value: TensorLike) -> TensorLike:
    """The value, known to be a scalar where it is a tensor of unknown rank."""
    return _ops.apply_op("Reshape", x=value, shape=[]) if is_tensor(value) and static_shape(value) is None else value  # type: ignore[no-any-return]


def diag(diagonal: TensorLike, name: str | None = None) -> _ops.Tensor:
    """The tensor of shape ``S + S`` that holds ``diagonal``, of shape S, on its diagonal and zeros elsewhere."""
    with _ops.name_scope(name or "Diag") as scope:
        x = _convert(diagonal)
        if static_shape(x) == ():
            raise errors.ShapeError("diag needs a tensor of rank 1 or more, but it is a scalar")
        flat = _ops.apply_op("MatrixDiag", diagonal=_ops.apply_op("Reshape", x=x, shape=[-1]))
        return _ops.apply_op("Reshape", x=flat, shape=concat([_ops.shape(x)] * 2, 0), name=scope)


def diag_part(input: TensorLike, name: str | None = None) -> _ops.Tensor:
    """The diagonal, of shape S, of a tensor of shape ``S + S``.

    Raises:
      ShapeError: it has another shape, or none of at least one dim.
    """
    with _ops.name_scope(name or "DiagPart") as scope:
        x = _convert(input)
        dims = static_shape(x)
        half = rank(x) // 2 if dims is None else len(dims) // 2
        if dims is not None and (len(dims) % 2 or not dims or not x.shape[:half].is_compatible_with(dims[half:])):
            raise errors.ShapeError(f"diag_part needs a shape S + S, but it is {x.shape}")
        shape = _ops.shape(x)
        if dims is None or None in dims:
            same = _tf.reduce_all(_tf.equal(_tf.concat([shape[:half]] * 2, 0), shape))
            with _ops.control_dependencies([_tf.Assert(same, ["diag_part needs a shape S + S, but it is", shape])]):
                x = _ops.identity(x)
        shape = shape[:half]
        count = _ops.apply_op("Prod", x=shape, axis=[0], keep_dims=False)
        square = _ops.apply_op("Reshape", x=x, shape=stack([count, count]))
        part = _ops.apply_op("Reshape", x=_ops.apply_op("MatrixDiagPart", input=square), shape=shape, name=scope)
        if dims is not None:
            part.set_shape(x.shape[:half].merge_with(dims[half:]))
        return part


def sequence_mask(
    lengths: TensorLike, maxlen: TensorLike | None = None, dtype: DTypeLike = dtypes.bool_, name: str | None = None
) -> _ops.Tensor:
    """For each length a row of ``maxlen`` (the largest length) elements that is True up to that length."""
    with _ops.name_scope(name or "SequenceMask") as scope:
        counts = _convert(lengths, preferred_dtype=dtypes.int32)
        if maxlen is None:
            flat = _ops.apply_op("Reshape", x=counts, shape=[-1])
            longest = _ops.apply_op("Max", x=flat, axis=[0], keep_dims=False)
            maxlen = _ops.apply_op("Maximum", x=longest, y=0)  # of no lengths, or of negative ones alone
        row = range(_ops.cast(maxlen, counts.dtype) if is_tensor(maxlen) else maxlen, dtype=counts.dtype)
        column = _ops.apply_op("ExpandDims", x=counts, axis=-1)
        if dtypes.as_dtype(dtype).is_bool:
            return _ops.apply_op("Less", x=row, y=column, name=scope)
        return _ops.cast(_ops.apply_op("Less", x=row, y=column), dtype, scope)


#: ``tf.newaxis``, an index that puts in a dim of 1.
newaxis = None
