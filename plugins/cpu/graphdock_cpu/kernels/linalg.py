"""Decompositions, inverses and solutions by ``numpy.linalg``, which makes its own arrays: these kernels only return.

What LAPACK refuses is an InvalidArgumentError of the node.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from graphdock.contracts import BuildContext, KernelDef, errors

__all__ = ["KERNELS"]

_SINGULAR = "Input matrix is not invertible."


def adjoint(x: np.ndarray) -> np.ndarray:
    """The last two axes swapped, conjugated."""
    return np.conjugate(x.swapaxes(-1, -2))


def _guarded(ctx: BuildContext, message: str, hint: str | None, function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, with what ``numpy.linalg`` raises as an error of the node."""
    node = ctx.node

    def compute(*args: Any) -> Any:
        try:
            return function(*args)
        except np.linalg.LinAlgError as error:
            raise errors.InvalidArgumentError(f"{node.opdef.name}: {message}", hint=hint) from error

    return compute


def _begun(x: np.ndarray) -> np.ndarray:
    """The same, or LinAlgError where a matrix begins with NaN: TensorFlow takes it for a pivot that it cannot divide by.

    A NaN elsewhere is no pivot to it, and makes NaN of what it meets.
    """
    if x.size and np.isnan(x[..., 0, 0]).any():
        raise np.linalg.LinAlgError("NaN")
    return x


def _inverse(ctx: BuildContext) -> Callable[..., Any]:
    turned = bool(ctx.attr("adjoint"))

    def inverse(x: np.ndarray) -> np.ndarray:
        return np.linalg.inv(_begun(adjoint(x) if turned else x))

    return _guarded(ctx, "Input is not invertible.", None, inverse)


def _solve(ctx: BuildContext) -> Callable[..., Any]:
    turned = bool(ctx.attr("adjoint"))
    return _guarded(ctx, _SINGULAR, None, lambda x, b: np.linalg.solve(_begun(adjoint(x) if turned else x), b))


def _substituted(x: np.ndarray, b: np.ndarray, upper: bool) -> np.ndarray:
    """A row after the other, so that what is not finite reaches only what comes after it."""
    if (np.einsum("...ii->...i", x) == 0).any():
        raise np.linalg.LinAlgError("zero")
    rest = np.broadcast_to(b, np.broadcast_shapes(x.shape[:-2], b.shape[:-2]) + b.shape[-2:]).copy()
    rows = range(x.shape[-1])
    for k in reversed(rows) if upper else rows:
        rest[..., k, :] /= x[..., k, k, None]
        others = slice(0, k) if upper else slice(k + 1, None)
        rest[..., others, :] -= x[..., others, k, None] * rest[..., k, None, :]
    return rest


def _triangular_solve(ctx: BuildContext) -> Callable[..., Any]:
    """One LU decomposition, which finds nothing to eliminate in an upper triangle."""
    lower, turned = bool(ctx.attr("lower")), bool(ctx.attr("adjoint"))

    def solve(x: np.ndarray, b: np.ndarray) -> np.ndarray:
        triangle = np.tril(x) if lower else np.triu(x)
        if not np.isfinite(triangle).all():
            return _substituted(adjoint(triangle) if turned else triangle, b, upper=lower is turned)
        if lower is turned:
            return np.linalg.solve(adjoint(triangle) if turned else triangle, b)
        # a lower triangle read backwards is an upper one
        flipped = (adjoint(triangle) if turned else triangle)[..., ::-1, ::-1]
        return np.linalg.solve(flipped, b[..., ::-1, :])[..., ::-1, :].copy()

    return _guarded(ctx, _SINGULAR, "there is a zero on the diagonal", solve)


def _cholesky(ctx: BuildContext) -> Callable[..., Any]:
    message = "Cholesky decomposition was not successful. The input might not be valid."
    return _guarded(ctx, message, "the matrix must be positive definite", _lower_root)


def _lower_root(x: np.ndarray) -> np.ndarray:
    """Cholesky's factor, column by column where not all is finite: NaN is no negative pivot."""
    a = np.tril(x)
    if np.isfinite(a).all():
        return np.linalg.cholesky(x)
    for k in range(x.shape[-1]):
        before = a[..., k, :k]
        pivot = a[..., k, k].real - (before.real**2 + before.imag**2).sum(-1)
        if (pivot <= 0).any():
            raise np.linalg.LinAlgError("pivot")
        a[..., k, k] = np.sqrt(pivot)
        below = a[..., k + 1 :, k] - (a[..., k + 1 :, :k] * before.conj()[..., None, :]).sum(-1)
        a[..., k + 1 :, k] = below / a[..., k, k, None]
    return a


def _qr(ctx: BuildContext) -> Callable[..., Any]:
    mode: Any = "complete" if ctx.attr("full_matrices") else "reduced"

    def qr(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        q, r = np.linalg.qr(x, mode)
        return q, r

    return qr


def _svd(ctx: BuildContext) -> Callable[..., Any]:
    full, dtype = bool(ctx.attr("full_matrices")), ctx.outputs[0].dtype.np

    def values(x: np.ndarray) -> tuple[np.ndarray, ...]:
        nothing = np.empty(0, x.dtype)
        unknown = np.isnan(x).any((-2, -1))
        s = np.linalg.svd(np.where(unknown[..., None, None], 0, x), compute_uv=False).astype(dtype, copy=False)
        s[unknown] = np.nan
        return s, nothing, nothing.copy()

    def svd(x: np.ndarray) -> tuple[np.ndarray, ...]:
        unknown = np.isnan(x).any((-2, -1))
        u, s, vh = np.linalg.svd(np.where(unknown[..., None, None], 0, x), full)
        made = s.astype(dtype, copy=False), u, adjoint(vh).copy()
        for part in made:
            part[unknown] = np.nan
        return made

    return _guarded(
        ctx, "the singular values did not converge", "is there a NaN?", svd if ctx.attr("compute_uv") else values
    )


def _self_adjoint_eig(ctx: BuildContext) -> Callable[..., Any]:
    def numbers(x: np.ndarray) -> np.ndarray:
        """The lower triangle. Of a matrix of one element NaN is its eigenvalue, others do not converge."""
        low = np.tril(x)
        if (x.shape[-1] > 1 and np.isnan(low).any()) or np.isinf(np.tril(x, -1)).any():
            raise np.linalg.LinAlgError("NaN")
        return low

    def values(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.linalg.eigvalsh(numbers(x)).astype(x.dtype, copy=False), np.empty(0, x.dtype)

    def eig(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        e, v = np.linalg.eigh(numbers(x))
        return e.astype(x.dtype, copy=False), v

    return _guarded(
        ctx, "the eigenvalues did not converge", "is there a NaN?", eig if ctx.attr("compute_v") else values
    )


def _determinant(ctx: BuildContext) -> Callable[..., Any]:
    def compute(x: np.ndarray) -> np.ndarray:
        found = np.asarray(np.linalg.det(x), x.dtype)
        return np.where((found == 0) & _endless(x), found.dtype.type(np.nan), found)  # 0 times what is not finite

    return compute


def _endless(x: np.ndarray) -> np.ndarray:
    """Mask of the matrices that hold what is not finite."""
    return ~np.isfinite(x).all((-2, -1))


def _log_determinant(ctx: BuildContext) -> Callable[..., Any]:
    def compute(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        sign, size = np.linalg.slogdet(x)
        size = np.where((sign == 0) & _endless(x), np.nan, size)
        sign = np.where(np.isnan(size) & (np.isnan(x).any((-2, -1)) | (sign != 0)), np.nan, sign)
        return np.asarray(sign, x.dtype), np.asarray(size, x.dtype)

    return compute


def _solve_ls(ctx: BuildContext) -> Callable[..., Any]:
    def fast(x: np.ndarray, b: np.ndarray, weight: np.ndarray) -> np.ndarray:
        m, n = x.shape[-2:]
        turned = adjoint(x)
        gram = turned @ x if m >= n else x @ turned
        np.einsum("...ii->...i", gram)[...] += weight.astype(gram.real.dtype)
        _lower_root(gram)  # refuses a matrix without full rank, which rounding may hide from solve
        return np.linalg.solve(gram, turned @ b) if m >= n else turned @ np.linalg.solve(gram, b)

    def slow(x: np.ndarray, b: np.ndarray, weight: np.ndarray) -> np.ndarray:
        tolerance = np.finfo(x.dtype).eps * max(x.shape[-2:])
        return np.linalg.pinv(x, rcond=tolerance) @ b

    message = "the matrix has not full rank"
    return _guarded(ctx, message, "use fast=False, or a positive l2_regularizer", fast if ctx.attr("fast") else slow)


def _lu(ctx: BuildContext) -> Callable[..., Any]:
    """Elimination by columns, with the largest pivot of each; over a batch at once (Golub and Van Loan, 3.4)."""
    index = ctx.outputs[1].dtype.np

    def lu(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        size = x.shape[-1]
        made = x.reshape(math.prod(x.shape[:-2]), size, size).copy()
        order = np.tile(np.arange(size, dtype=index), (len(made), 1))
        each = np.arange(len(made))
        for k in range(size):
            sizes = np.abs(made[:, k:, k])
            sizes = np.where(
                np.isnan(sizes) & ~np.isnan(sizes[:, :1]), -1, sizes
            )  # TensorFlow's comparison passes over NaN
            pivot = k + sizes.argmax(-1)
            for what in (made, order):
                what[each, k], what[each, pivot] = what[each, pivot], what[each, k].copy()
            if (made[:, k, k] == 0).any() or (k == 0 and np.isnan(made[:, 0, 0]).any()):
                raise errors.InvalidArgumentError("Lu: Input is not invertible.")
            made[:, k + 1 :, k] /= made[:, k, None, k]
            made[:, k + 1 :, k + 1 :] -= made[:, k + 1 :, k, None] * made[:, k, None, k + 1 :]
        return made.reshape(x.shape), order.reshape(x.shape[:-1])

    return lu


def _set_diag(ctx: BuildContext) -> Callable[..., Any]:
    def into(x: np.ndarray, diagonal: np.ndarray, out: np.ndarray) -> None:
        np.copyto(out, x)
        np.einsum("...ii->...i", out[..., : diagonal.shape[-1], : diagonal.shape[-1]])[...] = diagonal

    def by_index(x: np.ndarray, diagonal: np.ndarray, out: np.ndarray) -> None:
        np.copyto(out, x)
        along = np.arange(diagonal.shape[-1])
        out[..., along, along] = diagonal

    write = by_index if ctx.outputs[0].dtype.kind == "S" else into
    dtype = ctx.outputs[0].dtype.np

    def fresh(x: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
        out = np.empty(x.shape, dtype)
        write(x, diagonal, out)
        return out

    return fresh if ctx.fresh else write


def _kernel(op: str, build: Callable[[BuildContext], Any], host: tuple[str, ...] = ()) -> KernelDef:
    return KernelDef(op, "cpu", build, layout="strided", modes=("fresh",), host=host)


KERNELS = [
    _kernel("MatrixInverse", _inverse),
    _kernel("MatrixSolve", _solve),
    _kernel("MatrixTriangularSolve", _triangular_solve),
    _kernel("Cholesky", _cholesky),
    _kernel("Qr", _qr),
    _kernel("Svd", _svd),
    _kernel("SelfAdjointEigV2", _self_adjoint_eig),
    _kernel("MatrixDeterminant", _determinant),
    _kernel("LogMatrixDeterminant", _log_determinant),
    _kernel("MatrixSolveLs", _solve_ls, ("l2_regularizer",)),
    _kernel("Lu", _lu),
    KernelDef("MatrixSetDiag", "cpu", _set_diag, layout="strided"),
]
