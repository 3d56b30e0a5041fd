"""Reductions over axes, the places of extremes, and running sums: TensorFlow 1's names, arguments and defaults."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
import numpy as np
from graphdock import ops as _ops
from graphdock.errors import DTypeError, InvalidArgumentError
from graphdock.typing import DTypeLike, TensorLike

from graphdock_std.grad_support import static_shape
from graphdock_std.variants import variants


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


@variants
def _over_axes(
    _: str,
    op: str,
    input_tensor: TensorLike,
    axis: TensorLike | None = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: TensorLike | None = None,
    keep_dims: bool | None = None,
) -> _ops.Tensor:
    axis = _one_of("axis", axis, "reduction_indices", reduction_indices)
    return _reduce(op, input_tensor, axis, bool(_one_of("keepdims", keepdims, "keep_dims", keep_dims)), name)


reduce_sum = _over_axes(
    "reduce_sum",
    "Sum",
    """Sum over axes.

    Args:
      input_tensor: any numeric tensor.
      axis: an axis, a list of them, or an integer tensor; negative ones count from the end; None for all.
      keepdims: keep the reduced dims as 1.
      reduction_indices, keep_dims: old names of the two.

    Raises:
      ShapeError: an axis is out of range or given twice.
    """,
)
reduce_mean = _over_axes(
    "reduce_mean", "Mean", "Mean over axes; integers divide towards zero. Arguments as for :func:`reduce_sum`."
)
reduce_prod = _over_axes("reduce_prod", "Prod", "Product over axes. Arguments as for :func:`reduce_sum`.")
reduce_max = _over_axes("reduce_max", "Max", "Maximum over axes. Arguments as for :func:`reduce_sum`.")
reduce_min = _over_axes("reduce_min", "Min", "Minimum over axes. Arguments as for :func:`reduce_sum`.")
reduce_all = _over_axes(
    "reduce_all",
    "All",
    "Whether all elements of a bool tensor are true, over axes. Arguments as for :func:`reduce_sum`.",
)
reduce_any = _over_axes(
    "reduce_any",
    "Any",
    "Whether one element of a bool tensor is true, over axes. Arguments as for :func:`reduce_sum`.",
)


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
    """Mean of the squared differences from the mean, over axes; a real number also of complex ones.

    Raises DTypeError for integers, whose mean is none of them.
    """
    with _ops.name_scope(name, "reduce_variance") as scope:
        x = _ops.convert_to_tensor(input_tensor)
        if x.dtype.is_integer:
            raise DTypeError("a variance is of floats or complex numbers", expected="a cast", got=x.dtype.name)
        axis = _axis(x, axis)
        mean = _reduce("Mean", x, axis, True, None)
        squares = _tf.square(_tf.abs(x - mean)) if x.dtype.is_complex else _tf.squared_difference(x, mean)
        return _reduce("Mean", squares, axis, keepdims, scope)


def reduce_std(
    input_tensor: TensorLike, axis: TensorLike | None = None, keepdims: bool = False, name: str | None = None
) -> _ops.Tensor:
    """Square root of :func:`reduce_variance`."""
    with _ops.name_scope(name, "reduce_std") as scope:
        return _tf.sqrt(reduce_variance(input_tensor, axis, keepdims), name=scope)


def count_nonzero(
    input_tensor: TensorLike | None = None,
    axis: TensorLike | None = None,
    keepdims: bool | None = None,
    dtype: DTypeLike = "int64",
    name: str | None = None,
    reduction_indices: TensorLike | None = None,
    keep_dims: bool | None = None,
    input: TensorLike | None = None,
) -> _ops.Tensor:
    """Number of elements that are not 0, over axes.

    Args:
      input_tensor: any tensor of numbers, bools or text; ``input`` is a newer name of it.
      axis, keepdims: as for :func:`reduce_sum`; ``reduction_indices`` and ``keep_dims`` are old names of the two.
      dtype: of the result.
    """
    axis = _one_of("axis", axis, "reduction_indices", reduction_indices)
    keepdims = bool(_one_of("keepdims", keepdims, "keep_dims", keep_dims))
    with _ops.name_scope(name, "count_nonzero") as scope:
        x = _ops.convert_to_tensor(_one_of("input_tensor", input_tensor, "input", input))
        zero = False if x.dtype.is_bool else b"" if x.dtype.name == "string" else 0
        counts = _ops.cast(_tf.not_equal(x, zero), "int64")
        if _tf.as_dtype(dtype).name == "int64":
            return _reduce("Sum", counts, axis, keepdims, scope)
        return _ops.cast(_reduce("Sum", counts, axis, keepdims, None), dtype, scope)


@variants
def _place(
    _: str,
    op: str,
    input: TensorLike,
    axis: TensorLike | None = None,
    name: str | None = None,
    dimension: TensorLike | None = None,
    output_type: DTypeLike = "int64",
) -> _ops.Tensor:
    return _arg(op, input, _one_of("axis", axis, "dimension", dimension), output_type, name)


argmax = _place(
    "argmax",
    "ArgMax",
    "Index of the largest element along an axis (default 0), the first of equals. ``dimension`` is an old name of ``axis``.",
)
argmin = _place(
    "argmin",
    "ArgMin",
    "Index of the smallest element along an axis (default 0), the first of equals. ``dimension`` is an old name of ``axis``.",
)


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
