"""Gradients of decompositions, for real and complex matrices (Giles, 2008; Murray, 2016; Townsend, 2016)."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import GradientError

from graphdock_std.grad_support import static_shape


def triangular_solve(op: Any, grad: Any) -> tuple[Any, Any]:
    """As for a full matrix, kept to the triangle that was read."""
    matrix, y = op.inputs[0], op.outputs[0]
    lower, turned = op.get_attr("lower"), op.get_attr("adjoint")
    to_rhs = _tf.matrix_triangular_solve(matrix, grad, lower, not turned)
    product = _times_adjoint(y, to_rhs) if turned else _times_adjoint(to_rhs, y)
    return -_triangle(product, lower), to_rhs


def cholesky(op: Any, grad: Any) -> Any:
    """``L^-H tril(L^H G, half the diagonal) L^-1``, made symmetric."""
    root = op.outputs[0]
    middle = _triangle(_half_diagonal(_tf.matmul(root, grad, adjoint_a=True)), True)
    left = _tf.matrix_triangular_solve(root, middle, adjoint=True)
    whole = _adjoint(_tf.matrix_triangular_solve(root, _adjoint(left), adjoint=True))
    return (whole + _adjoint(whole)) * 0.5


def log_determinant(op: Any, of_sign: Any, of_size: Any) -> Any:
    """The inverse's adjoint, times the gradient of the size; of complex numbers the sign turns with the determinant's angle."""
    x, sign = op.inputs[0], op.outputs[0]
    factor = _ops.zeros_like(sign) if of_size is None else of_size
    if x.dtype.is_complex:
        factor = _ops.cast(_tf.real(factor), x.dtype)
        if of_sign is not None:
            factor += _ops.cast(_tf.imag(of_sign * _tf.conj(sign)), x.dtype) * 1j
    return factor[..., None, None] * _tf.matrix_inverse(x, True)


def qr(op: Any, of_q: Any, of_r: Any) -> Any:
    """Of matrices that are tall or square; a wide one's is that of its square left part, the rest follows from ``r = q^H x``."""
    q, r = op.outputs
    x = op.inputs[0]
    rows, columns = _sizes(x)
    if op.get_attr("full_matrices") and isinstance(rows, int) and isinstance(columns, int) and rows > columns:
        raise GradientError(
            "the gradient of Qr with full_matrices needs at least as many columns as rows",
            op=op.name,
            expected=f"{rows} or more",
            got=str(columns),
        )
    of_q = _ops.zeros_like(q) if of_q is None else of_q
    of_r = _ops.zeros_like(r) if of_r is None else of_r

    if isinstance(rows, int) and isinstance(columns, int) and rows >= columns:
        return _square_qr(q, r, of_q, of_r)
    right, of_right = x[..., rows:], of_r[..., rows:]
    left = _square_qr(q, r[..., :rows], of_q + _times_adjoint(right, of_right), of_r[..., :rows])
    return _tf.concat([left, _tf.matmul(q, of_right)], -1)


def _sizes(x: Any) -> tuple[Any, Any]:
    """Rows and columns of matrices: numbers where they are known, else tensors."""
    shape = static_shape(x)
    if shape is None or None in shape[-2:]:
        dims = _ops.shape(x)
        return dims[-2], dims[-1]
    return shape[-2], shape[-1]


def _tall_or_wide(x: Any, tall: Any, wide: Any) -> Any:
    """Return what ``tall()`` gives where there are at least as many rows as columns, else what ``wide()`` gives."""
    rows, columns = _sizes(x)
    if isinstance(rows, int) and isinstance(columns, int):
        return tall() if rows >= columns else wide()
    return _tf.cond(rows >= columns, tall, wide)


def _square_qr(q: Any, r: Any, of_q: Any, of_r: Any) -> Any:
    inner = _times_adjoint(r, of_r) - _tf.matmul(of_q, q, adjoint_a=True)
    lower = _tf.matrix_band_part(inner, -1, 0)
    strict = _tf.matrix_set_diag(lower, _ops.zeros_like(_tf.matrix_diag_part(lower)))
    both = lower + _adjoint(strict)
    if inner.dtype.is_complex:  # the diagonal of r is real
        both = _tf.matrix_set_diag(both, _ops.cast(_tf.real(_tf.matrix_diag_part(both)), both.dtype))
    solved = _tf.matrix_triangular_solve(r, _adjoint(of_q + _tf.matmul(q, both)), False)
    return _adjoint(solved)


def svd(op: Any, of_s: Any, of_u: Any, of_v: Any) -> Any:
    """By values ``u diag(g) v^H``; by vectors it has the differences of squared values in its denominators."""
    x = op.inputs[0]
    if not op.get_attr("compute_uv"):
        s, u, v = _ops.apply_op("Svd", input=x, Tout=op.get_attr("Tout"))
        of_u = of_v = None
    else:
        s, u, v = op.outputs
    if op.get_attr("full_matrices") and (of_u is not None or of_v is not None):
        shape = static_shape(x)
        if shape is None or shape[-2] is None or shape[-2] != shape[-1]:
            raise GradientError(
                "the gradient of Svd by vectors with full_matrices needs square matrices", op=op.name, got=str(x.shape)
            )
    count = _ops.shape(s)[-1]
    u, v = u[..., :count], v[..., :count]
    size = _ops.cast(s, x.dtype)
    inner = _ops.zeros_like(_times_adjoint(u, u)[..., :count, :count]) if of_s is None else None
    if of_s is not None:
        inner = _tf.matrix_diag(_ops.cast(of_s, x.dtype))
    if of_u is None and of_v is None:
        return _times_adjoint(_tf.matmul(u, inner), v)
    of_u = _ops.zeros_like(u) if of_u is None else of_u[..., :count]
    of_v = _ops.zeros_like(v) if of_v is None else of_v[..., :count]
    squares = size * size
    gaps = squares[..., None, :] - squares[..., :, None]
    inverse = _reciprocal_off_diagonal(gaps)
    around_u, around_v = _tf.matmul(u, of_u, adjoint_a=True), _tf.matmul(v, of_v, adjoint_a=True)
    inner = inner + inverse * (around_u - _adjoint(around_u)) * size[..., None, :]
    inner = inner + size[..., :, None] * (inverse * (around_v - _adjoint(around_v)))
    if x.dtype.is_complex:
        turning = _ops.cast(_tf.imag(_tf.matrix_diag_part(around_u)), x.dtype) * 1j
        inner = inner + _tf.matrix_diag(turning / size)
    outside_u = (of_u - _tf.matmul(u, around_u)) / size[..., None, :]
    outside_v = (of_v - _tf.matmul(v, around_v)) / size[..., None, :]
    return _times_adjoint(_tf.matmul(u, inner) + outside_u, v) + _times_adjoint(u, outside_v)


def self_adjoint_eig(op: Any, of_e: Any, of_v: Any) -> Any:
    """``v (diag(g_e) + F * (v^H g_v)) v^H`` with ``F[i, j] = 1 / (e[j] - e[i])``, folded into the lower triangle."""
    x = op.inputs[0]
    if op.get_attr("compute_v"):
        e, v = op.outputs
    else:
        e, v = _ops.apply_op("SelfAdjointEigV2", input=x)
        of_v = None
    inner = _tf.matrix_diag(_ops.zeros_like(e) if of_e is None else of_e)
    if x.dtype.is_complex:
        inner = _ops.cast(_tf.real(inner), x.dtype)
    if of_v is not None:
        gaps = e[..., None, :] - e[..., :, None]
        inner = inner + _reciprocal_off_diagonal(gaps) * _tf.matmul(v, of_v, adjoint_a=True)
    whole = _times_adjoint(_tf.matmul(v, inner), v)
    return _half_diagonal(_triangle(whole + _adjoint(whole), True))


def solve_ls(op: Any, grad: Any) -> tuple[Any, Any, Any]:
    """Of matrices of full rank. Tall: ``C = (A^H A + w)^-1``; wide: ``C = (A A^H + w)^-1``."""
    a, b, weight = op.inputs
    y = op.outputs[0]

    def regular(gram: Any) -> Any:
        if not op.get_attr("fast"):
            return gram
        return _tf.matrix_set_diag(gram, _tf.matrix_diag_part(gram) + _ops.cast(weight, a.dtype))

    def to_weight(z: Any, solution: Any) -> Any:
        if not op.get_attr("fast"):
            return _ops.zeros_like(weight)
        return -_ops.cast(_tf.reduce_sum(_tf.real(_tf.conj(z) * solution)), weight.dtype)

    def tall() -> tuple[Any, Any, Any]:
        z = _tf.matrix_solve(regular(_tf.matmul(a, a, adjoint_a=True)), grad)
        outer = _times_adjoint(y, z)
        to_matrix = _times_adjoint(b, z) - _tf.matmul(a, outer + _adjoint(outer))
        return to_matrix, _tf.matmul(a, z), to_weight(z, y)

    def wide() -> tuple[Any, Any, Any]:
        gram = regular(_times_adjoint(a, a))
        to_rhs = _tf.matrix_solve(gram, _tf.matmul(a, grad))
        inner = _tf.matrix_solve(gram, b)
        left = _tf.matmul(to_rhs, _tf.matmul(inner, a, adjoint_a=True))
        to_matrix = _times_adjoint(inner, grad - _tf.matmul(a, to_rhs, adjoint_a=True)) - left
        return to_matrix, to_rhs, to_weight(to_rhs, inner)

    return _tall_or_wide(a, tall, wide)


def lu(op: Any, grad: Any, of_p: Any) -> Any:
    """``P^T L^-H (strict(L^H G_L) + tri(G_U U^H)) U^-H``."""
    both, order = op.outputs
    lower = _tf.matrix_set_diag(_triangle(both, True), _ops.ones_like(_tf.matrix_diag_part(both)))
    upper = _triangle(both, False)
    strict = _triangle(_tf.matrix_set_diag(grad, _ops.zeros_like(_tf.matrix_diag_part(grad))), True)
    phi = _triangle(_tf.matmul(lower, strict, adjoint_a=True), True)
    phi = _tf.matrix_set_diag(phi, _ops.zeros_like(_tf.matrix_diag_part(phi)))
    middle = phi + _triangle(_times_adjoint(_triangle(grad, False), upper), False)
    left = _tf.matrix_triangular_solve(lower, middle, adjoint=True)
    whole = _adjoint(_tf.matrix_triangular_solve(upper, _adjoint(left), False))
    rows = _ops.cast(
        _tf.equal(order[..., :, None], _tf.range(_ops.cast(_ops.shape(order)[-1], order.dtype))), both.dtype
    )
    return _tf.matmul(rows, whole, transpose_a=True)


def of_block(op: Any, grad: Any) -> Any:
    """Of a function f of matrices: the right upper block of ``f([[x^H, g], [0, x^H]])`` (Mathias, 1996)."""
    x = _adjoint(op.inputs[0])
    above = _tf.concat([x, grad], -1)
    below = _tf.concat([_ops.zeros_like(x), x], -1)
    size = _sizes(x)[0]
    block = _ops.apply_op(op.type, input=_tf.concat([above, below], -2))
    return block[..., :size, size:]


def _adjoint(x: Any) -> Any:
    return _tf.matrix_transpose(x, conjugate=True)


def _times_adjoint(a: Any, b: Any) -> Any:
    return _tf.matmul(a, b, adjoint_b=True)


def _triangle(x: Any, lower: bool) -> Any:
    return _tf.matrix_band_part(x, -1, 0) if lower else _tf.matrix_band_part(x, 0, -1)


def _half_diagonal(x: Any) -> Any:
    return _tf.matrix_set_diag(x, 0.5 * _tf.matrix_diag_part(x))


def _reciprocal_off_diagonal(gaps: Any) -> Any:
    """1 / gaps, 0 on the diagonal; equal values elsewhere give infinity."""
    diagonal = _tf.matrix_diag_part(gaps)
    ones = _tf.matrix_set_diag(gaps, _ops.ones_like(diagonal))
    return _tf.matrix_set_diag(1 / ones, _ops.zeros_like(diagonal))
