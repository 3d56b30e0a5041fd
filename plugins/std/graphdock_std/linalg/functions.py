"""Public functions of matrices that are more than one op: products, norms, transposes, diagonals.

Names, argument names and defaults are TensorFlow 1's.
"""

from __future__ import annotations

from typing import Any

import graphdock as _tf
import numpy as np
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError, ShapeError
from graphdock.typing import TensorLike

from graphdock_std.grad_support import static_shape

_VECTOR_NORMS = "'euclidean', 1, 2, inf or a positive number"
_MATRIX_NORMS = "'euclidean', 'fro', 1, 2 or inf"


def matmul(
    a: TensorLike,
    b: TensorLike,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> _ops.Tensor:
    """Product of matrices, or of batches of them, which broadcast.

    Args:
      a, b: tensors of rank 2 or more, of one dtype: floating, complex, int32 or int64; or one bfloat16 and one float32, which
        give float32.
      transpose_a, transpose_b: multiply by the transposed.
      adjoint_a, adjoint_b: multiply by the conjugated and transposed.
      a_is_sparse, b_is_sparse: taken for TensorFlow's sake; a hint that changes nothing here.

    Raises:
      InvalidArgumentError: one matrix is to be transposed and adjoint. ShapeError: the sizes do not fit.
    """
    if (transpose_a and adjoint_a) or (transpose_b and adjoint_b):
        raise InvalidArgumentError("matmul: a matrix is either transposed or adjoint", got="both")
    with _ops.name_scope(name, "MatMul") as scope:
        x, transpose_a = (_tf.conj(a), True) if adjoint_a else (a, transpose_a)
        y, transpose_b = (_tf.conj(b), True) if adjoint_b else (b, transpose_b)
        if {getattr(t, "dtype", None) for t in (x, y)} == {_tf.bfloat16, _tf.float32}:
            x, y = (_ops.cast(t, _tf.float32) for t in (x, y))
        return _ops.apply_op(
            "MatMul", a=x, b=y, transpose_a=bool(transpose_a), transpose_b=bool(transpose_b), name=scope
        )


def matvec(
    a: TensorLike,
    b: TensorLike,
    transpose_a: bool = False,
    adjoint_a: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> _ops.Tensor:
    """Product of a matrix ``[..., M, N]`` and a vector ``[..., N]``. Arguments as for :func:`matmul`."""
    with _ops.name_scope(name, "MatVec"):
        x = _ops.convert_to_tensor(a)
        column = _tf.expand_dims(_ops.convert_to_tensor(b, x.dtype), -1)
        return _tf.squeeze(matmul(x, column, transpose_a, False, adjoint_a), [-1])


def adjoint(matrix: TensorLike, name: str | None = None) -> _ops.Tensor:
    """The last two axes swapped, and the elements conjugated."""
    with _ops.name_scope(name, "adjoint"):
        return _tf.matrix_transpose(matrix, conjugate=True)


def trace(x: TensorLike, name: str | None = None) -> _ops.Tensor:
    """Sum of the diagonal of a matrix, or of each of a batch."""
    with _ops.name_scope(name, "Trace") as scope:
        return _tf.reduce_sum(_tf.matrix_diag_part(x), -1, name=scope)


def norm(
    tensor: TensorLike,
    ord: Any = "euclidean",
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    keep_dims: bool | None = None,
) -> _ops.Tensor:
    """Norm of vectors or of matrices.

    Args:
      tensor: floating or complex, of any shape. A complex tensor's Euclidean norm is complex, as in TensorFlow.
      ord: of vectors ``"euclidean"`` (2), 1, ``inf`` or any positive number p: ``sum(|x|^p)^(1/p)``. Of matrices
        ``"euclidean"`` or ``"fro"`` (the root of the sum of squares), 1 (largest column sum of sizes), ``inf``
        (largest row sum) or 2 (largest singular value).
      axis: an integer: vectors along it. A pair: matrices over these two axes. None: all elements as one vector.
      keepdims: keep the axes as 1; ``keep_dims`` is its old name.

    Raises:
      InvalidArgumentError: another ``ord``, or axes that are neither.
    """
    if keep_dims is not None:
        if keepdims is not None:
            raise InvalidArgumentError("keepdims and keep_dims are the same argument; both were given")
        keepdims = keep_dims
    axes = _norm_axes(axis)
    of_matrix = isinstance(axes, tuple)
    number = isinstance(ord, (int, float, np.number)) and not isinstance(ord, bool)
    known = ("euclidean", "fro") if of_matrix else ("euclidean",)
    if not (ord in (1, 2, np.inf) or (ord > 0 and not of_matrix)) if number else ord not in known:
        expected = _MATRIX_NORMS if of_matrix else _VECTOR_NORMS
        what = "matrix" if of_matrix else "vector"
        raise InvalidArgumentError(f"'ord' must be a supported {what} norm", expected=expected, got=repr(ord))
    with _ops.name_scope(name, "norm"):
        x = _ops.convert_to_tensor(tensor)
        keep = bool(keepdims)
        if of_matrix and ord == 2:
            return _largest_singular_value(x, axes, keep)
        if not number or ord == 2:
            reduced = list(axes) if of_matrix else axes
            return _tf.sqrt(_tf.reduce_sum(x * _tf.conj(x), reduced, keep))
        sizes = _tf.abs(x)
        if of_matrix:
            summed, largest = axes if ord == 1 else axes[::-1]
            result = _tf.reduce_max(_tf.reduce_sum(sizes, summed, True), largest, True)
            return result if keep else _tf.squeeze(result, list(axes))
        if ord == np.inf:
            return _tf.reduce_max(sizes, axes, keep)
        if ord == 1:
            return _tf.reduce_sum(sizes, axes, keep)
        return _tf.pow(_tf.reduce_sum(_tf.pow(sizes, float(ord)), axes, keep), 1.0 / float(ord))


def normalize(
    tensor: TensorLike, ord: Any = "euclidean", axis: Any = None, name: str | None = None
) -> tuple[_ops.Tensor, _ops.Tensor]:
    """The tensor divided by its :func:`norm`, and that norm with its axes kept as 1."""
    with _ops.name_scope(name, "normalize"):
        x = _ops.convert_to_tensor(tensor)
        size = norm(x, ord, axis, True)
        return x / _ops.cast(size, x.dtype), size


def _norm_axes(axis: Any) -> Any:
    """None, an axis, or a pair of axes as a tuple."""
    if axis is None or isinstance(axis, (int, np.integer)):
        return axis
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else ()
    if len(axes) != 2 or not all(isinstance(a, (int, np.integer)) for a in axes) or axes[0] == axes[1]:
        raise InvalidArgumentError("'axis' must be None, an integer, or a tuple of 2 unique integers", got=repr(axis))
    return axes


def _largest_singular_value(x: Any, axes: tuple[int, int], keep: bool) -> Any:
    shape = static_shape(x)
    if shape is None:
        raise ShapeError("norm: a spectral norm needs a tensor of known rank", hint="use set_shape")
    rank = len(shape)
    last = [a % rank for a in axes]
    order = [i for i in range(rank) if i not in last] + last
    values = _tf.svd(_tf.transpose(x, order), compute_uv=False)
    result = _tf.reduce_max(values, -1)
    if keep:
        for at in sorted(last):
            result = _tf.expand_dims(result, at)
    return result
