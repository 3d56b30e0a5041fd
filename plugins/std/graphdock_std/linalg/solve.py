"""Public functions of decompositions: solutions by factors, eigenvalues, singular values, determinants, exponentials.

Names, argument names and defaults are TensorFlow 1's.
"""

from __future__ import annotations

import math
from typing import Any

import graphdock as _tf
import numpy as np
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError, ShapeError
from graphdock.typing import TensorLike

from graphdock_std.grad_support import static_shape


def cholesky_solve(chol: TensorLike, rhs: TensorLike, name: str | None = None) -> _ops.Tensor:
    """Solution of ``A x = rhs``, where ``A = chol chol^H``.

    Args:
      chol: lower triangular, ``[..., M, M]``, as :func:`cholesky` gives it.
      rhs: ``[..., M, K]``.
    """
    with _ops.name_scope(name, "cholesky_solve"):
        root = _ops.convert_to_tensor(chol)
        return _tf.matrix_triangular_solve(root, _tf.matrix_triangular_solve(root, rhs), adjoint=True)


def self_adjoint_eig(tensor: TensorLike, name: str | None = None) -> tuple[_ops.Tensor, _ops.Tensor]:
    """Eigenvalues ``[..., N]``, ascending, and eigenvectors, the columns of ``[..., N, N]``, of symmetric (Hermitian) matrices.

    Only the lower triangle is read. The values have the dtype of the matrices.
    """
    e, v = _ops.apply_op("SelfAdjointEigV2", input=tensor, compute_v=True, name=name)
    return e, v


def self_adjoint_eigvals(tensor: TensorLike, name: str | None = None) -> _ops.Tensor:
    """Eigenvalues ``[..., N]``, ascending, of symmetric (Hermitian) matrices; only the lower triangle is read."""
    return _ops.apply_op("SelfAdjointEigV2", input=tensor, compute_v=False, name=name)[0]


def svd(tensor: TensorLike, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None) -> Any:
    """Singular values ``s``, descending, and vectors ``u`` and ``v``, with ``tensor = u diag(s) v^H``.

    Args:
      tensor: ``[..., M, N]``. P is the smaller of M and N.
      full_matrices: u is ``[..., M, M]`` and v ``[..., N, N]``, instead of P columns each.
      compute_uv: without it only s is returned.

    Returns:
      s, ``[..., P]``, real; or ``(s, u, v)``. NumPy's ``svd`` gives u, s and the adjoint of v.
    """
    x = _ops.convert_to_tensor(tensor)
    part = {"complex64": "float32", "complex128": "float64"}.get(x.dtype.name, x.dtype.name)
    s, u, v = _ops.apply_op(
        "Svd", input=x, compute_uv=bool(compute_uv), full_matrices=bool(full_matrices), Tout=part, name=name
    )
    return (s, u, v) if compute_uv else s


def matrix_solve_ls(
    matrix: TensorLike, rhs: TensorLike, l2_regularizer: float = 0.0, fast: bool = True, name: str | None = None
) -> _ops.Tensor:
    """Least-squares solutions of ``matrix x = rhs``; of least norm where there are fewer equations than unknowns.

    Args:
      matrix: ``[..., M, N]``.
      rhs: ``[..., M, K]``.
      l2_regularizer: weight of the squared norm of x; only where ``fast``.
      fast: solve the normal equations; exact to about the square of the matrix's condition. Else by singular values.

    Raises:
      InvalidArgumentError: in a step, where ``fast`` and the matrix has not full rank.
    """
    return _ops.apply_op(
        "MatrixSolveLs", matrix=matrix, rhs=rhs, l2_regularizer=l2_regularizer, fast=bool(fast), name=name
    )


def logdet(matrix: TensorLike, name: str | None = None) -> _ops.Tensor:
    """Logarithm of the determinant of symmetric (Hermitian) positive definite matrices, by their Cholesky roots."""
    with _ops.name_scope(name, "logdet"):
        diagonal = _tf.real(_tf.matrix_diag_part(_tf.cholesky(matrix)))
        return 2.0 * _tf.reduce_sum(_tf.log(diagonal), -1)


#: Coefficients of the numerators of Padé's approximants of exp, and the largest 1-norm that each is exact for, in float64
#: and in float32 (Higham, 2005).
_PADE = {
    3: (120.0, 60.0, 12.0, 1.0),
    5: (30240.0, 15120.0, 3360.0, 420.0, 30.0, 1.0),
    7: (17297280.0, 8648640.0, 1995840.0, 277200.0, 25200.0, 1512.0, 56.0, 1.0),
    13: (
        64764752532480000.0,
        32382376266240000.0,
        7771770303897600.0,
        1187353796428800.0,
        129060195264000.0,
        10559470521600.0,
        670442572800.0,
        33522128640.0,
        1323241920.0,
        40840800.0,
        960960.0,
        16380.0,
        182.0,
        1.0,
    ),
}
_EXACT = {"float32": (7, 3.925724783138660), "float64": (13, 5.371920351148152)}
#: Most times that a matrix is halved.
_HALVINGS = 64


def expm(input: TensorLike, name: str | None = None) -> _ops.Tensor:
    """Exponential of square matrices: ``sum(input^k / k!)``, by scaling, a Padé approximant, and squaring (Higham, 2005).

    Each matrix of a batch is scaled by its own norm; the batch is squared as often as its largest one needs.

    Args:
      input: floating or complex, ``[..., M, M]``.
    """
    with _ops.name_scope(name, "matrix_exponential"):
        x = _ops.convert_to_tensor(input)
        narrow = x.dtype.name in ("float32", "complex64")
        degree, limit = _EXACT["float32" if narrow else "float64"]
        sizes = _tf.reduce_max(_tf.reduce_sum(_tf.abs(x), -2), -1)
        halvings = _ops.stop_gradient(_tf.ceil(_tf.log(_tf.maximum(sizes / limit, 1.0)) / math.log(2.0)))
        halvings = _tf.minimum(halvings, float(_HALVINGS))
        scale = _ops.cast(_tf.pow(_ops.cast(0.5, halvings.dtype), halvings), x.dtype)
        a = x * scale[..., None, None]
        result = _pade(a, degree)
        most = _tf.reduce_max(_tf.concat([[0.0], _tf.reshape(_ops.cast(halvings, "float32"), [-1])], 0))

        def again(done: Any, value: Any) -> tuple[Any, Any]:
            wanted = (done < _ops.cast(halvings, "float32"))[..., None, None]
            return done + 1.0, _tf.select(wanted, _tf.matmul(value, value), value)

        shapes = [_tf.constant(0.0).shape, x.shape]
        return _tf.while_loop(lambda done, value: done < most, again, [_tf.constant(0.0), result], shapes)[1]


def _pade(a: Any, degree: int) -> Any:
    """``(V - U)^-1 (V + U)`` of the even and the odd terms of the numerator."""
    b = _PADE[degree]
    one = _tf.matrix_set_diag(_ops.zeros_like(a), _ops.ones_like(_tf.matrix_diag_part(a)))
    square = _tf.matmul(a, a)
    if degree < 13:
        powers = [one, square]
        while len(powers) <= degree // 2:
            powers.append(_tf.matmul(powers[-1], square))
        odd = sum((b[2 * i + 1] * p for i, p in enumerate(powers[1:], 1)), b[1] * one)
        even = sum((b[2 * i] * p for i, p in enumerate(powers[1:], 1)), b[0] * one)
    else:
        fourth = _tf.matmul(square, square)
        sixth = _tf.matmul(fourth, square)
        odd = _tf.matmul(sixth, b[13] * sixth + b[11] * fourth + b[9] * square)
        odd = odd + b[7] * sixth + b[5] * fourth + b[3] * square + b[1] * one
        even = _tf.matmul(sixth, b[12] * sixth + b[10] * fourth + b[8] * square)
        even = even + b[6] * sixth + b[4] * fourth + b[2] * square + b[0] * one
    odd = _tf.matmul(a, odd)
    return _tf.matrix_solve(even - odd, even + odd)


def lu_solve(
    lower_upper: TensorLike, perm: TensorLike, rhs: TensorLike, validate_args: bool = False, name: str | None = None
) -> _ops.Tensor:
    """Solution of ``A x = rhs``, where ``lower_upper, perm = tf.linalg.lu(A)``; ``validate_args`` is TensorFlow's, and needless.

    Args:
      lower_upper: ``[..., M, M]``. perm: ``[..., M]``. rhs: ``[..., M, K]``.
    """
    with _ops.name_scope(name, "lu_solve"):
        both = _ops.convert_to_tensor(lower_upper)
        permuted = _tf.matmul(_permutation(perm, both.dtype), _ops.convert_to_tensor(rhs, both.dtype))
        inner = _tf.matrix_triangular_solve(_unit_lower(both), permuted)
        return _tf.matrix_triangular_solve(both, inner, False)


def lu_matrix_inverse(
    lower_upper: TensorLike, perm: TensorLike, validate_args: bool = False, name: str | None = None
) -> _ops.Tensor:
    """Inverse of A, where ``lower_upper, perm = tf.linalg.lu(A)``."""
    with _ops.name_scope(name, "lu_matrix_inverse"):
        both = _ops.convert_to_tensor(lower_upper)
        one = _tf.matrix_diag(_ops.ones_like(_tf.matrix_diag_part(both)))
        return lu_solve(both, perm, one, validate_args)


def lu_reconstruct(
    lower_upper: TensorLike, perm: TensorLike, validate_args: bool = False, name: str | None = None
) -> _ops.Tensor:
    """A, where ``lower_upper, perm = tf.linalg.lu(A)``."""
    with _ops.name_scope(name, "lu_reconstruct"):
        both = _ops.convert_to_tensor(lower_upper)
        product = _tf.matmul(_unit_lower(both), _tf.matrix_band_part(both, 0, -1))
        return _tf.matmul(_permutation(perm, both.dtype), product, transpose_a=True)


def _unit_lower(both: Any) -> Any:
    return _tf.matrix_set_diag(_tf.matrix_band_part(both, -1, 0), _ops.ones_like(_tf.matrix_diag_part(both)))


def _permutation(perm: Any, dtype: Any) -> Any:
    """The matrix whose row i has its 1 in column ``perm[i]``."""
    perm = _ops.convert_to_tensor(perm)
    return _tf.one_hot(perm, _ops.shape(perm)[-1], dtype=dtype)


def matrix_rank(
    a: TensorLike, tol: TensorLike | None = None, validate_args: bool = False, name: str | None = None
) -> _ops.Tensor:
    """Number of singular values above ``tol``, by default eps times the larger size times the largest of them; int32."""
    with _ops.name_scope(name, "matrix_rank"):
        x = _ops.convert_to_tensor(a)
        s = svd(x, compute_uv=False)
        if tol is None:
            sizes = _ops.cast(_tf.reduce_max(_ops.shape(x)[-2:]), s.dtype)
            tol = float(np.finfo(x.dtype.np).eps) * sizes * _tf.reduce_max(s, -1, True)
        return _tf.reduce_sum(_ops.cast(s > tol, "int32"), -1)


def pinv(
    a: TensorLike, rcond: TensorLike | None = None, validate_args: bool = False, name: str | None = None
) -> _ops.Tensor:
    """Moore and Penrose's inverse of matrices, by singular values.

    Args:
      a: floating or complex, ``[..., M, N]``.
      rcond: values below ``rcond`` times the largest count as 0; default: ten times eps times the larger size.
    """
    with _ops.name_scope(name, "pinv"):
        x = _ops.convert_to_tensor(a)
        s, u, v = svd(x)
        if rcond is None:
            sizes = _ops.cast(_tf.reduce_max(_ops.shape(x)[-2:]), s.dtype)
            rcond = 10.0 * float(np.finfo(x.dtype.np).eps) * sizes
        rcond = _ops.convert_to_tensor(rcond, s.dtype)
        kept = s > rcond[..., None] * _tf.reduce_max(s, -1, True)
        weights = _tf.select(kept, 1.0 / _tf.select(kept, s, 1.0), 0.0)
        return _tf.matmul(v * _ops.cast(weights, x.dtype)[..., None, :], u, adjoint_b=True)


def tridiagonal_solve(
    diagonals: Any,
    rhs: TensorLike,
    diagonals_format: str = "compact",
    transpose_rhs: bool = False,
    conjugate_rhs: bool = False,
    name: str | None = None,
    partial_pivoting: bool = True,
) -> _ops.Tensor:
    """Solution of ``A x = rhs``, where A is tridiagonal.

    Args:
      diagonals: ``"compact"``: ``[..., 3, M]``, rows are the upper (last element unused), main and lower diagonal (first one
        unused). ``"sequence"``: these three, each ``[..., M]``. ``"matrix"``: ``[..., M, M]``.
      rhs: ``[..., M]`` or ``[..., M, K]``.
      transpose_rhs, conjugate_rhs: transpose it, conjugate it first.
      partial_pivoting: taken for TensorFlow's sake; rows are always exchanged where that is better.
    """
    with _ops.name_scope(name, "tridiagonal_solve"):
        matrix = _tridiagonal(diagonals, diagonals_format)
        b = _ops.convert_to_tensor(rhs, matrix.dtype)
        b = _tf.conj(b) if conjugate_rhs else b
        rank, wanted = static_shape(b), static_shape(matrix)
        if rank is None or wanted is None:
            raise ShapeError("tridiagonal_solve needs tensors of known rank", hint="use set_shape")
        if len(rank) == len(wanted) - 1:
            if transpose_rhs:
                raise InvalidArgumentError("tridiagonal_solve: a vector is not transposed", got="transpose_rhs=True")
            return _tf.squeeze(_tf.matrix_solve(matrix, b[..., None]), [-1])
        return _tf.matrix_solve(matrix, _tf.matrix_transpose(b) if transpose_rhs else b)


def tridiagonal_matmul(
    diagonals: Any, rhs: TensorLike, diagonals_format: str = "compact", name: str | None = None
) -> _ops.Tensor:
    """Product of a tridiagonal matrix and ``rhs``, ``[..., M, K]``; ``diagonals`` as for :func:`tridiagonal_solve`."""
    with _ops.name_scope(name, "tridiagonal_matmul"):
        if diagonals_format == "matrix":
            return _tf.matmul(diagonals, rhs)
        upper, main, lower = _three(diagonals, diagonals_format)
        b = _ops.convert_to_tensor(rhs, main.dtype)
        nothing = _ops.zeros_like(b[..., :1, :])
        above = _tf.concat([b[..., 1:, :], nothing], -2)
        below = _tf.concat([nothing, b[..., :-1, :]], -2)
        return upper[..., None] * above + main[..., None] * b + lower[..., None] * below


def _three(diagonals: Any, layout: str) -> tuple[Any, Any, Any]:
    if layout == "sequence":
        upper, main, lower = (_ops.convert_to_tensor(d) for d in diagonals)
        return upper, main, lower
    if layout != "compact":
        raise InvalidArgumentError(
            "unknown diagonals_format", expected="'compact', 'sequence' or 'matrix'", got=repr(layout)
        )
    x = _ops.convert_to_tensor(diagonals)
    return x[..., 0, :], x[..., 1, :], x[..., 2, :]


def _tridiagonal(diagonals: Any, layout: str) -> Any:
    if layout == "matrix":
        return _ops.convert_to_tensor(diagonals)
    upper, main, lower = _three(diagonals, layout)
    along = _tf.range(_ops.shape(main)[-1])
    apart = along[:, None] - along
    zero = _ops.zeros_like(main)[..., None]
    above = _tf.select(_tf.equal(apart, -1), upper[..., None], zero)
    below = _tf.select(_tf.equal(apart, 1), lower[..., None], zero)
    return _tf.matrix_diag(main) + above + below
