"""Functions that join sparse and dense tensors: conversions, products, elementwise arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphdock as _tf
from graphdock import dtypes, errors
from graphdock import ops as _ops
from graphdock.typing import TensorLike

from graphdock_std.grad_support import static_shape
from graphdock_std.sparse.tensor import SparseTensor, SparseTensorValue, as_sparse


def sparse_tensor_to_dense(
    sp_input: SparseTensor | SparseTensorValue,
    default_value: TensorLike | None = None,
    validate_indices: bool = True,
    name: str | None = None,
) -> _ops.Tensor:
    """The whole tensor.

    Args:
      default_value: the element elsewhere; 0, False or the empty string.
      validate_indices: refuse places that repeat or are not in row-major order; otherwise of several elements the last stays.

    Raises:
      InvalidArgumentError, in the step: a place outside of the shape, or one that ``validate_indices`` refuses.
    """
    sp = as_sparse(sp_input)
    default = 0 if default_value is None else default_value
    found = _tf.sparse_to_dense(sp.indices, sp.dense_shape, sp.values, default, validate_indices, name)
    found.set_shape(sp.shape)
    return found


def from_dense(tensor: TensorLike, name: str | None = None) -> SparseTensor:
    """The elements of a tensor that are not zero (not False, not empty), in row-major order."""
    with _ops.name_scope(name or "dense_to_sparse"):
        x = _ops.convert_to_tensor(tensor)
        zero = False if x.dtype.is_bool else b"" if x.dtype.kind == "S" else 0
        places = _tf.where(_tf.not_equal(x, _ops.constant(zero, x.dtype)))
        return SparseTensor(places, _tf.gather_nd(x, places), _ops.shape(x, out_type=dtypes.int64))


def sparse_tensor_dense_matmul(
    sp_a: SparseTensor | SparseTensorValue,
    b: Any,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    name: str | None = None,
) -> _ops.Tensor:
    """The product of a sparse matrix and a dense one, in either order.

    Args:
      sp_a: a sparse matrix; its elements may be in any order, those of one place add up. If it is a Tensor, ``b`` is sparse.
      adjoint_a, adjoint_b: transpose it first.

    Raises:
      ShapeError, InvalidArgumentError: sizes that do not fit; in the step: an index outside of the sparse shape.
    """
    if not isinstance(sp_a, (SparseTensor, SparseTensorValue)) and isinstance(b, (SparseTensor, SparseTensorValue)):
        with _ops.name_scope(name or "SparseTensorDenseMatMul"):
            turned = sparse_tensor_dense_matmul(b, sp_a, not adjoint_b, not adjoint_a)  # type: ignore[arg-type]
            return _tf.transpose(turned)
    sp = as_sparse(sp_a, "sp_a")
    return _ops.apply_op(  # type: ignore[no-any-return]
        "SparseTensorDenseMatMul",
        a_indices=sp.indices,
        a_values=sp.values,
        a_shape=sp.dense_shape,
        b=_ops.convert_to_tensor(b, sp.dtype),
        adjoint_a=adjoint_a,
        adjoint_b=adjoint_b,
        name=name,
    )


def sparse_matmul(
    a: TensorLike,
    b: TensorLike,
    transpose_a: bool = False,
    transpose_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> _ops.Tensor:
    """``matmul`` of two Tensors; that many of their elements are zero is taken for TensorFlow's sake and changes nothing."""
    return _tf.matmul(a, b, transpose_a, transpose_b, name=name)


def sparse_to_indicator(
    sp_input: SparseTensor | SparseTensorValue, vocab_size: TensorLike, name: str | None = None
) -> _ops.Tensor:
    """A bool tensor in which the last axis says which ids, from 0 up to ``vocab_size``, each row of ``sp_input`` holds."""
    with _ops.name_scope(name or "SparseToIndicator"):
        sp = as_sparse(sp_input)
        held = SparseTensor(sp.indices, _tf.fill(_ops.shape(sp.values), True), sp.dense_shape)
        merged = _tf.sparse_merge(sp, held, vocab_size)
        return sparse_tensor_to_dense(merged, False, validate_indices=False)


def times(sp: SparseTensor, dense: TensorLike, name: str | None = None) -> SparseTensor:
    """Each element times the element of a dense tensor at its place; the dense one broadcasts to the sparse shape."""
    return _with(sp, dense, lambda a, b: a * b, name or "mul")


def divided(sp: SparseTensor, dense: TensorLike, name: str | None = None) -> SparseTensor:
    """Each element divided by the element of a dense tensor at its place."""
    return _with(sp, dense, lambda a, b: a / b, name or "truediv")


def _with(sp: SparseTensor, dense: TensorLike, function: Callable[[Any, Any], Any], name: str) -> SparseTensor:
    with _ops.name_scope(name):
        other = _ops.convert_to_tensor(dense, sp.dtype)
        rank, have = sp._rank(), static_shape(other)
        if have is not None and rank is not None and len(have) > rank:
            raise errors.ShapeError(
                f"a dense tensor of shape {other.shape} does not broadcast to a sparse one of {sp.shape}"
            )
        if have == ():
            return sp._with_values(lambda values: function(values, other))
        dims = sp.shape.as_list()[rank - len(have) :] if rank is not None and have is not None else []
        if any(None not in (a, b) and a not in (1, b) for a, b in zip(have or (), dims, strict=False)):
            raise errors.ShapeError(
                f"a dense tensor of shape {other.shape} does not broadcast to a sparse one of {sp.shape}"
            )
        sizes = _ops.shape(other, out_type=dtypes.int64)
        lead = _tf.size(sp.dense_shape) - _tf.size(sizes)
        if have is None or None in have or not dims or None in dims:
            fits = _tf.reduce_all(_tf.logical_or(_tf.equal(sizes, 1), _tf.equal(sizes, sp.dense_shape[lead:])))
            check = _tf.Assert(fits, ["a dense tensor does not broadcast to a sparse one:", sizes, sp.dense_shape])
            with _ops.control_dependencies([check]):
                sizes = _ops.identity(sizes)
        places = sp.indices[:, lead:] * _ops.cast(_tf.not_equal(sizes, 1), dtypes.int64)
        if have is not None:
            places.set_shape([None, len(have)])
        found = function(sp.values, _tf.gather_nd(other, places))
        found.set_shape(sp.values.shape)
        return sp._with_values(lambda _: found)


def plus(sp: SparseTensor, dense: TensorLike) -> _ops.Tensor:
    """The dense sum of a sparse and a dense tensor of one shape.

    Raises:
      ShapeError, InvalidArgumentError in the step: another shape.
    """
    other = _ops.convert_to_tensor(dense, sp.dtype)
    if not other.shape.is_compatible_with(sp.shape):
        raise errors.ShapeError(f"a sparse tensor of shape {sp.shape} and a dense one of {other.shape}")
    if not (other.shape.is_fully_defined() and sp.shape.is_fully_defined()):
        sizes = _ops.shape(other, out_type=dtypes.int64)
        with _ops.control_dependencies([_tf.assert_equal(sizes, sp.dense_shape, message="sparse and dense shapes")]):
            other = _ops.identity(other)
    return _tf.tensor_scatter_add(other, sp.indices, sp.values)
