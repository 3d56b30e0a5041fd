"""Public math functions that are more than one op, or whose signature is not the op's: reductions and division.

Names, argument names and defaults are TensorFlow 1's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import graphdock as _tf
import numpy as np
from graphdock import ops as _ops
from graphdock.errors import DTypeError, InvalidArgumentError
from graphdock.typing import DTypeLike, ShapeLike, TensorLike

from graphdock_std.grad_support import static_shape
from graphdock_std.indexing import is_tensor

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


# reductions


def _reduce(op: str, x: Any, axis: Any, keep: bool, name: str | None) -> Any:
    x = _ops.convert_to_tensor(x, preferred_dtype=_tf.bool if op in ("All", "Any") else None)
    reduced = _ops.apply_op(op, x=x, axis=_axis(x, axis), keep_dims=keep, name=name)
    if axis is None and not keep:
        reduced.set_shape([])
    return reduced


def _axis(x: Any, axis: Any) -> Any:
    """The axes as the op takes them: all where None is given, as a constant where the rank is known."""
    if axis is None:
        shape = static_shape(x)
        return _tf.range(0, _tf.rank(x)) if shape is None else np.arange(len(shape), dtype=np.int32)
    return np.zeros(0, np.int32) if isinstance(axis, (list, tuple)) and not axis else axis


def _one_of(name: str, new: Any, old_name: str, old: Any) -> Any:
    """The value of an argument that has an old name too."""
    if old is None:
        return new
    if new is not None:
        raise InvalidArgumentError(f"{name} and {old_name} are the same argument; both were given")
    return old


def reduce_sum(
    input_tensor: TensorLike,
    axis: TensorLike | None = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: TensorLike | None = None,
    keep_dims: bool | None = None,
) -> _ops.Tensor:
    """Sum over axes.

    Args:
      input_tensor: any numeric tensor.
      axis: an axis, a list of them, or an integer tensor; negative ones count from the end; None for all.
      keepdims: keep the reduced dims as 1.
      reduction_indices, keep_dims: old names of the two.

    Raises:
      ShapeError: an axis is out of range or given twice.
    """
    axis = _one_of("axis", axis, "reduction_indices", reduction_indices)
    return _reduce("Sum", input_tensor, axis, bool(_one_of("keepdims", keepdims, "keep_dims", keep_dims)), name)


def reduce_mean(
    input_tensor: TensorLike,
    axis: TensorLike | None = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: TensorLike | None = None,
    keep_dims: bool | None = None,
) -> _ops.Tensor:
    """Mean over axes; integers divide towards zero. Arguments as for :func:`reduce_sum`."""
    axis = _one_of("axis", axis, "reduction_indices", reduction_indices)
    return _reduce("Mean", input_tensor, axis, bool(_one_of("keepdims", keepdims, "keep_dims", keep_dims)), name)


def reduce_prod(
    input_tensor: TensorLike,
    axis: TensorLike | None = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: TensorLike | None = None,
    keep_dims: bool | None = None,
) -> _ops.Tensor:
    """Product over axes. Arguments as for :func:`reduce_sum`."""
    axis = _one_of("axis", axis, "reduction_indices", reduction_indices)
    return _reduce("Prod", input_tensor, axis, bool(_one_of("keepdims", keepdims, "keep_dims", keep_dims)), name)


def reduce_max(
    input_tensor: TensorLike,
    axis: TensorLike | None = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: TensorLike | None = None,
    keep_dims: bool | None = None,
) -> _ops.Tensor:
    """Maximum over axes. Arguments as for :func:`reduce_sum`."""
    axis = _one_of("axis", axis, "reduction_indices", reduction_indices)
    return _reduce("Max", input_tensor, axis, bool(_one_of("keepdims", keepdims, "keep_dims", keep_dims)), name)


def reduce_min(
    input_tensor: TensorLike,
    axis: TensorLike | None = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: TensorLike | None = None,
    keep_dims: bool | None = None,
) -> _ops.Tensor:
    """Minimum over axes. Arguments as for :func:`reduce_sum`."""
    axis = _one_of("axis", axis, "reduction_indices", reduction_indices)
    return _reduce("Min", input_tensor, axis, bool(_one_of("keepdims", keepdims, "keep_dims", keep_dims)), name)


def reduce_all(
    input_tensor: TensorLike,
    axis: TensorLike | None = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: TensorLike | None = None,
    keep_dims: bool | None = None,
) -> _ops.Tensor:
    """Whether all elements of a bool tensor are true, over axes. Arguments as for :func:`reduce_sum`."""
    axis = _one_of("axis", axis, "reduction_indices", reduction_indices)
    return _reduce("All", input_tensor, axis, bool(_one_of("keepdims", keepdims, "keep_dims", keep_dims)), name)


def reduce_any(
    input_tensor: TensorLike,
    axis: TensorLike | None = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: TensorLike | None = None,
    keep_dims: bool | None = None,
) -> _ops.Tensor:
    """Whether one element of a bool tensor is true, over axes. Arguments as for :func:`reduce_sum`."""
    axis = _one_of("axis", axis, "reduction_indices", reduction_indices)
    return _reduce("Any", input_tensor, axis, bool(_one_of("keepdims", keepdims, "keep_dims", keep_dims)), name)


def reduce_logsumexp(
    input_tensor: TensorLike,
    axis: TensorLike | None = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: TensorLike | None = None,
    keep_dims: bool | None = None,
) -> _ops.Tensor:
    """``log(sum(exp(x)))`` over axes, without overflow: the maximum is taken out first. Arguments as for
    :func:`reduce_sum`.
    """
    axis = _one_of("axis", axis, "reduction_indices", reduction_indices)
    keep = bool(_one_of("keepdims", keepdims, "keep_dims", keep_dims))
    with _ops.name_scope(name, "ReduceLogSumExp") as scope:
        x = _ops.convert_to_tensor(input_tensor)
        axis = _axis(x, axis)
        most = _reduce("Max", x, axis, True, None)
        most = _ops.stop_gradient(_tf.select(_tf.is_finite(most), most, 0))
        logs = _tf.log(_reduce("Sum", _tf.exp(x - most), axis, keep, None))
        return _tf.add(logs, most if keep else _reduce("Sum", most, axis, False, None), name=scope)


def reduce_variance(
    input_tensor: TensorLike, axis: TensorLike | None = None, keepdims: bool = False, name: str | None = None
) -> _ops.Tensor:
    """Mean of the squared differences from the mean, over axes."""
    with _ops.name_scope(name, "reduce_variance") as scope:
        x = _ops.convert_to_tensor(input_tensor)
        axis = _axis(x, axis)
        mean = _reduce("Mean", x, axis, True, None)
        return _reduce("Mean", _tf.squared_difference(x, mean), axis, keepdims, scope)


def reduce_std(
    input_tensor: TensorLike, axis: TensorLike | None = None, keepdims: bool = False, name: str | None = None
) -> _ops.Tensor:
    """Square root of :func:`reduce_variance`."""
    with _ops.name_scope(name, "reduce_std") as scope:
        return _tf.sqrt(reduce_variance(input_tensor, axis, keepdims), name=scope)


def count_nonzero(
    input_tensor: TensorLike,
    axis: TensorLike | None = None,
    keepdims: bool = False,
    dtype: DTypeLike = "int64",
    name: str | None = None,
) -> _ops.Tensor:
    """Number of elements that are not 0, over axes."""
    with _ops.name_scope(name, "count_nonzero") as scope:
        x = _ops.convert_to_tensor(input_tensor)
        zero = False if x.dtype.is_bool else b"" if x.dtype.name == "string" else 0
        counts = _ops.cast(_tf.not_equal(x, zero), "int64")
        if _tf.as_dtype(dtype).name == "int64":
            return _reduce("Sum", counts, axis, keepdims, scope)
        return _ops.cast(_reduce("Sum", counts, axis, keepdims, None), dtype, scope)


def argmax(
    input: TensorLike,
    axis: TensorLike | None = None,
    name: str | None = None,
    dimension: TensorLike | None = None,
    output_type: DTypeLike = "int64",
) -> _ops.Tensor:
    """Index of the largest element along an axis (default 0), the first of equals. ``dimension`` is an old name of
    ``axis``.
    """
    return _arg("ArgMax", input, _one_of("axis", axis, "dimension", dimension), output_type, name)


def argmin(
    input: TensorLike,
    axis: TensorLike | None = None,
    name: str | None = None,
    dimension: TensorLike | None = None,
    output_type: DTypeLike = "int64",
) -> _ops.Tensor:
    """Index of the smallest element along an axis (default 0), the first of equals. ``dimension`` is an old name of
    ``axis``.
    """
    return _arg("ArgMin", input, _one_of("axis", axis, "dimension", dimension), output_type, name)


def arg_max(
    input: TensorLike, dimension: TensorLike, output_type: DTypeLike = "int64", name: str | None = None
) -> _ops.Tensor:
    """The older name of :func:`argmax`."""
    return _arg("ArgMax", input, dimension, output_type, name)


def arg_min(
    input: TensorLike, dimension: TensorLike, output_type: DTypeLike = "int64", name: str | None = None
) -> _ops.Tensor:
    """The older name of :func:`argmin`."""
    return _arg("ArgMin", input, dimension, output_type, name)


def _arg(op: str, x: Any, axis: Any, output_type: Any, name: str | None) -> Any:
    return _ops.apply_op(op, x=x, axis=0 if axis is None else axis, output_type=_tf.as_dtype(output_type), name=name)


def cumsum(
    x: TensorLike, axis: TensorLike = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> _ops.Tensor:
    """Running sums along an axis.

    Args:
      exclusive: leave the element itself out, so that the first sum is 0.
      reverse: sum from the end.
    """
    return _ops.apply_op("Cumsum", x=x, axis=axis, exclusive=exclusive, reverse=reverse, name=name)


def cumprod(
    x: TensorLike, axis: TensorLike = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> _ops.Tensor:
    """Running products along an axis.

    Args:
      exclusive: leave the element itself out, so that the first product is 1.
      reverse: multiply from the end.
    """
    return _ops.apply_op("Cumprod", x=x, axis=axis, exclusive=exclusive, reverse=reverse, name=name)


# division


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


def round(x: TensorLike, name: str | None = None) -> _ops.Tensor:
    """The nearest integer, halves to the even one. Integers are passed on."""
    x = _ops.convert_to_tensor(x)
    return x if x.dtype.is_integer else _ops.apply_op("Round", x=x, name=name)


def scalar_mul(scalar: TensorLike, x: TensorLike, name: str | None = None) -> _ops.Tensor:
    """``scalar * x``. Raises InvalidArgumentError when ``scalar`` is known not to be one."""
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


def tensordot(a: TensorLike, b: TensorLike, axes: Any, name: str | None = None) -> _ops.Tensor:
    """Contract axes of a with axes of b, as one matrix product.

    Args:
      axes: a number n (the last n of a with the first n of b), or a pair: axes of a, axes of b.

    Raises:
      ShapeError, InvalidArgumentError: the axes do not fit; at unknown rank when the step runs.
    """
    with _ops.name_scope(name, "Tensordot") as scope:
        a = _ops.convert_to_tensor(a)
        b = _ops.convert_to_tensor(b, a.dtype)
        shape_a, shape_b = static_shape(a), static_shape(b)
        if shape_a is None or shape_b is None:
            return _tensordot_of_any_rank(a, b, axes, scope)
        if isinstance(axes, int):
            of_a, of_b = list(range(len(shape_a) - axes, len(shape_a))), list(range(axes))
        else:
            of_a, of_b = ([v] if isinstance(v, int) else list(v) for v in axes)
        if len(of_a) != len(of_b):
            raise InvalidArgumentError(
                "tensordot contracts pairs of axes", expected=f"{len(of_a)} axes of b", got=str(len(of_b))
            )
        of_a, of_b = [i % len(shape_a) for i in of_a], [i % len(shape_b) for i in of_b]
        free_a = [i for i in range(len(shape_a)) if i not in of_a]
        free_b = [i for i in range(len(shape_b)) if i not in of_b]
        left = _as_matrix(a, free_a, of_a)
        right = _as_matrix(b, of_b, free_b)
        product = _tf.matmul(left, right)
        dims = [shape_a[i] for i in free_a] + [shape_b[i] for i in free_b]
        if dims.count(None) <= 1:
            return _tf.reshape(product, [-1 if d is None else d for d in dims], name=scope)
        pieces = [_tf.gather(_ops.shape(t), free) for t, free in ((a, free_a), (b, free_b))]
        return _tf.reshape(product, _tf.concat(pieces, 0), name=scope)


def _tensordot_of_any_rank(a: Any, b: Any, axes: Any, name: str) -> Any:
    """As :func:`tensordot`, where the step finds the axes that are left."""
    if isinstance(axes, int):
        of_a, of_b = _tf.range(_tf.rank(a) - axes, _tf.rank(a)), _tf.range(axes)
    else:
        pairs = [[v] if isinstance(v, int) else v for v in axes]
        of_a, of_b = (
            _tf.floormod(_ops.convert_to_tensor(v, "int32"), _tf.rank(x)) for v, x in zip(pairs, (a, b), strict=True)
        )
    free_a, free_b = (_tf.setdiff1d(_tf.range(_tf.rank(x)), of)[0] for x, of in ((a, of_a), (b, of_b)))
    sizes_a, sizes_b = _tf.gather(_ops.shape(a), free_a), _tf.gather(_ops.shape(b), free_b)
    inner = _tf.reduce_prod(_tf.gather(_ops.shape(b), of_b))
    left = _tf.reshape(_tf.transpose(a, _tf.concat([free_a, of_a], 0)), _tf.stack([_tf.reduce_prod(sizes_a), inner]))
    right = _tf.reshape(_tf.transpose(b, _tf.concat([of_b, free_b], 0)), _tf.stack([inner, _tf.reduce_prod(sizes_b)]))
    return _tf.reshape(_tf.matmul(left, right), _tf.concat([sizes_a, sizes_b], 0), name=name)


def _as_matrix(x: Any, rows: list[int], columns: list[int]) -> Any:
    """``x`` with its axes in this order, the first group and the second each flattened."""
    shape = static_shape(x)
    assert shape is not None
    order = rows + columns
    if order != list(range(len(order))):
        x = _tf.transpose(x, order)
    sizes = [_product([shape[i] for i in group]) for group in (rows, columns)]
    if sizes.count(None) <= 1:
        return _tf.reshape(x, [-1 if s is None else s for s in sizes])
    dims = _ops.shape(x)
    height = _reduce("Prod", dims[: len(rows)], None, False, None)
    width = _reduce("Prod", dims[len(rows) :], None, False, None)
    return _tf.reshape(x, [height, width])


def _product(dims: list[int | None]) -> int | None:
    n = 1
    for d in dims:
        if d is None:
            return None
        n *= d
    return n
