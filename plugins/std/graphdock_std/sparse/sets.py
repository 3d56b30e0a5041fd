"""``tf.sets``: what becomes of two sets, along the last dim of tensors and of sparse tensors."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock import dtypes
from graphdock import ops as _ops
from graphdock.errors import DTypeError, InvalidArgumentError


def _parts(value: Any) -> tuple[Any, Any, Any]:
    """Indices, values and dense shape of a sparse tensor, or of a tensor, each of whose elements counts."""
    if hasattr(value, "dense_shape"):
        return value.indices, value.values, value.dense_shape
    tensor = _ops.convert_to_tensor(value)
    shape = _ops.cast(_ops.shape(tensor), dtypes.int64)
    return _ops.cast(_tf.where(_tf.fill(_ops.shape(tensor), True)), dtypes.int64), _tf.reshape(tensor, [-1]), shape


def _operation(word: str, a: Any, b: Any) -> Any:
    with _tf.name_scope("sets"):
        first, second = _parts(a), _parts(b)
        if first[1].dtype is not second[1].dtype:
            raise DTypeError("sets of two dtypes", expected=first[1].dtype.name, got=second[1].dtype.name)
        names = ("indices", "values", "shape")
        inputs = {f"set{i}_{n}": p for i, parts in ((1, first), (2, second)) for n, p in zip(names, parts, strict=True)}
        made = _ops.apply_op("SparseToSparseSetOperation", set_operation=word, **inputs)
        return _tf.SparseTensor(made.result_indices, made.result_values, made.result_shape)


def set_size(a: Any, validate_indices: bool = True) -> _ops.Tensor:
    """Return how many elements each set has.

    Args:
      a: SparseTensor of integers or strings; sets lie along its last dim.
      validate_indices: taken for TensorFlow's sake; indices outside of the shape are always an error of the step.

    Returns:
      int32, of the shape of ``a`` without its last dim.
    """
    if not hasattr(a, "dense_shape"):
        raise InvalidArgumentError("set_size takes a SparseTensor", got=f"a {type(a).__name__}")
    return _ops.apply_op("SetSize", set_indices=a.indices, set_values=a.values, set_shape=a.dense_shape)


def set_intersection(a: Any, b: Any, validate_indices: bool = True) -> Any:
    """Elements of both sets.

    Args:
      a, b: tensors or SparseTensors of rank 2 or more, of one dtype (integers or strings); sets lie along the last dim, and the
        others agree.
      validate_indices: taken for TensorFlow's sake; indices outside of the shape are always an error of the step.

    Returns:
      A SparseTensor whose last dim holds each result in rising order.
    """
    return _operation("intersection", a, b)


def set_union(a: Any, b: Any, validate_indices: bool = True) -> Any:
    """Elements of either set; arguments as of :func:`set_intersection`."""
    return _operation("union", a, b)


def set_difference(a: Any, b: Any, aminusb: bool = True, validate_indices: bool = True) -> Any:
    """Elements of ``a`` that are not in ``b``, or the other way round; arguments as of :func:`set_intersection`."""
    return _operation("a-b" if aminusb else "b-a", a, b)
