"""Oracles of specs/linalg.yaml: textbook loops over Python's numbers, one matrix at a time, rounded once.

Singular values and eigenvalues come from Jacobi's rotations. Vectors that belong to them are defined up to a factor, so these
are NumPy's own; ``tests/std/linalg`` checks by what equations they hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

Rows: TypeAlias = "list[list[Any]]"


def _each(function: Callable[..., Any], shape: tuple[int, ...], *arrays: np.ndarray) -> np.ndarray:
    """``function`` of the matrices of a batch as lists of rows, whose results have ``shape``."""
    first = arrays[0]
    out = np.empty((*first.shape[:-2], *shape), first.dtype)
    for index in np.ndindex(first.shape[:-2]):
        rows = [[[_number(v) for v in row] for row in a[index]] for a in arrays]
        out[index] = np.array(function(*rows)).reshape(shape)
    return out


def _number(v: Any) -> Any:
    return complex(v) if np.iscomplexobj(v) else float(v)


def _adjoint(x: Any) -> Any:
    return np.conj(np.swapaxes(x, -1, -2))


def _eliminated(a: Rows) -> tuple[Rows, list[int], int]:
    """Doolittle's factors in one matrix, the order of the rows, and the sign of that permutation."""
    rows, order, sign = [list(r) for r in a], list(range(len(a))), 1
    for k in range(len(rows)):
        best = max(range(k, len(rows)), key=lambda i: abs(rows[i][k]))
        if best != k:
            rows[k], rows[best], sign = rows[best], rows[k], -sign
            order[k], order[best] = order[best], order[k]
        if not rows[k][k]:
            continue
        for i in range(k + 1, len(rows)):
            factor = rows[i][k] / rows[k][k]
            rows[i][k] = factor
            for j in range(k + 1, len(rows)):
                rows[i][j] -= factor * rows[k][j]
    return rows, order, sign


def _solved(a: Rows, b: Rows) -> Rows:
    rows, order, _ = _eliminated(a)
    n, width = len(rows), len(b[0]) if b else 0
    y = [list(b[i]) for i in order]
    for c in range(width):
        for i in range(n):
            y[i][c] -= sum(rows[i][j] * y[j][c] for j in range(i))
        for i in reversed(range(n)):
            y[i][c] = (y[i][c] - sum(rows[i][j] * y[j][c] for j in range(i + 1, n))) / rows[i][i]
    return y


def inverse(input: Any, adjoint: bool = False) -> np.ndarray:
    n = input.shape[-1]
    identity = [[float(i == j) for j in range(n)] for i in range(n)]
    return _each(lambda a: _solved(a, identity), (n, n), _adjoint(input) if adjoint else input)


def solve(matrix: Any, rhs: Any, adjoint: bool = False) -> np.ndarray:
    return _each(_solved, rhs.shape[-2:], _adjoint(matrix) if adjoint else matrix, rhs)


def triangular_solve(matrix: Any, rhs: Any, lower: bool = True, adjoint: bool = False) -> np.ndarray:
    kept = np.array(matrix)
    for index in np.ndindex(kept.shape):
        i, j = index[-2:]
        if (j > i) if lower else (j < i):
            kept[index] = 0
    return solve(kept, rhs, adjoint)


def cholesky(input: Any) -> np.ndarray:
    def root(a: Rows) -> Rows:
        n = len(a)
        y: Rows = [[0.0] * n for _ in a]
        for i in range(n):
            for j in range(i + 1):
                rest = a[i][j] - sum(y[i][k] * y[j][k].conjugate() for k in range(j))
                y[i][j] = math.sqrt(rest.real) if i == j else rest / y[j][j]
        return y

    return _each(root, input.shape[-2:], input)


def determinant(input: Any) -> np.ndarray:
    def det(a: Rows) -> Any:
        rows, _, sign = _eliminated(a)
        return math.prod((rows[i][i] for i in range(len(rows))), start=sign)

    return _each(det, (), input)


def log_determinant(input: Any) -> tuple[np.ndarray, np.ndarray]:
    det = determinant(input.astype(np.complex128 if input.dtype.kind == "c" else np.float64))
    size = np.array([math.log(abs(d)) if d else -math.inf for d in det.reshape(-1)]).reshape(det.shape)
    sign = np.array([d / abs(d) if d else 0 for d in det.reshape(-1)]).reshape(det.shape)
    return sign.astype(input.dtype), size.astype(input.dtype)


def lu(input: Any, output_idx_type: Any = "int32") -> tuple[np.ndarray, np.ndarray]:
    n = input.shape[-1]
    factors = _each(lambda a: _eliminated(a)[0], (n, n), input)
    order = _each(lambda a: _eliminated(a)[1], (n,), input.real)
    if input.dtype.kind == "c":
        order = _each(lambda a: _eliminated(a)[1], (n,), input).real
    return factors, order.astype(np.dtype(str(output_idx_type)))


def qr(input: Any, full_matrices: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Householder's reflections; each makes the diagonal of r real, with the sign that does not cancel."""
    m, n = input.shape[-2:]
    k = m if full_matrices else min(m, n)

    def reflected(a: Rows) -> tuple[Rows, Rows]:
        r, q = [list(row) for row in a], [[float(i == j) for j in range(m)] for i in range(m)]
        for c in range(min(m, n)):
            tail = [r[i][c] for i in range(c, m)]
            rest = math.sqrt(sum(abs(v) ** 2 for v in tail[1:]))
            alpha = tail[0]
            if rest == 0 and alpha.imag == 0:
                continue
            beta = -math.copysign(math.hypot(alpha.real, alpha.imag, rest), alpha.real)
            tau, v = (beta - alpha) / beta, [1.0, *(t / (alpha - beta) for t in tail[1:])]
            for j in range(n):  # r <- (1 - conj(tau) v v^H) r
                dot = sum(v[i].conjugate() * r[c + i][j] for i in range(m - c))
                for i in range(m - c):
                    r[c + i][j] -= tau.conjugate() * v[i] * dot
            for row in q:  # q <- q (1 - tau v v^H)
                dot = sum(row[c + i] * v[i] for i in range(m - c))
                for i in range(m - c):
                    row[c + i] -= tau * dot * v[i].conjugate()
            for i in range(c + 1, m):
                r[i][c] = 0.0
        return q, r

    q = _each(lambda a: [row[:k] for row in reflected(a)[0]], (m, k), input)
    return q, _each(lambda a: reflected(a)[1][:k], (k, n), input)


def _jacobi(a: Rows) -> list[float]:
    """Eigenvalues of a Hermitian matrix, ascending, by cyclic rotations (Golub and Van Loan, 8.5)."""
    a = [list(r) for r in a]
    n = len(a)
    for _ in range(60):
        for p in range(n):
            for q in range(p + 1, n):
                off = a[p][q]
                if abs(off) < 1e-300:
                    continue
                phase = off / abs(off)
                theta = 0.5 * math.atan2(2 * abs(off), (a[q][q] - a[p][p]).real)
                c, s = math.cos(theta), math.sin(theta)
                for k in range(n):
                    x, y = a[k][p], a[k][q]
                    a[k][p], a[k][q] = c * x - s * y * phase.conjugate(), s * x * phase + c * y
                for k in range(n):
                    x, y = a[p][k], a[q][k]
                    a[p][k], a[q][k] = c * x - s * y * phase, s * x * phase.conjugate() + c * y
    return sorted(a[i][i].real for i in range(n))


def self_adjoint_eig(input: Any, compute_v: bool = True) -> tuple[np.ndarray, np.ndarray]:
    n = input.shape[-1]

    def values(a: Rows) -> list[float]:
        return _jacobi(
            [[a[i][j] if i > j else a[j][i].conjugate() if i < j else a[i][i].real for j in range(n)] for i in range(n)]
        )

    return _each(values, (n,), input), np.linalg.eigh(input)[1] if compute_v else np.empty(0, input.dtype)


def svd(
    input: Any, compute_uv: bool = True, full_matrices: bool = False, Tout: Any = "float32"
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Singular values are the roots of the eigenvalues of the smaller Gram matrix."""
    m, n = input.shape[-2:]

    def values(a: Rows) -> list[float]:
        wide = a if m <= n else [[a[i][j].conjugate() for i in range(m)] for j in range(n)]
        gram = [[sum(p * q.conjugate() for p, q in zip(x, y, strict=True)) for y in wide] for x in wide]
        return [math.sqrt(max(v, 0.0)) for v in reversed(_jacobi(gram))]

    s = _each(values, (min(m, n),), input).real.astype(np.dtype(str(Tout)))
    if not compute_uv:
        return s, np.empty(0, input.dtype), np.empty(0, input.dtype)
    u, _, vh = np.linalg.svd(input, full_matrices)
    return s, u, _adjoint(vh)


def solve_ls(matrix: Any, rhs: Any, l2_regularizer: Any, fast: bool = True) -> np.ndarray:
    m, n = matrix.shape[-2:]
    weight = float(l2_regularizer) if fast else 0.0

    def least(a: Rows, b: Rows) -> Rows:
        if not m:
            return [[0.0] * rhs.shape[-1]] * n
        turned = [[a[i][j].conjugate() for i in range(m)] for j in range(n)]
        left, right = (turned, a) if m >= n else (a, turned)
        gram = _product(left, right)
        for i in range(len(gram)):
            gram[i][i] += weight
        return _solved(gram, _product(turned, b)) if m >= n else _product(turned, _solved(gram, b))

    return _each(least, (n, rhs.shape[-1]), matrix, rhs)


def _product(a: Rows, b: Rows) -> Rows:
    return [[sum(p * b[k][j] for k, p in enumerate(row)) for j in range(len(b[0]))] for row in a]


def square_root(input: Any) -> np.ndarray:
    """Newton's iteration, coupled with that of the inverse (Denman and Beavers, 1976)."""
    n = input.shape[-1]
    one = [[float(i == j) for j in range(n)] for i in range(n)]

    def root(a: Rows) -> Rows:
        y, z = a, one
        for _ in range(30):
            of_y, of_z = _solved(y, one), _solved(z, one)
            y, z = (
                [[(p + q) / 2 for p, q in zip(r, s, strict=True)] for r, s in zip(left, right, strict=True)]
                for left, right in ((y, of_z), (z, of_y))
            )
        return y

    return _each(root, (n, n), input)


def logarithm(input: Any) -> np.ndarray:
    """The integral of ``(a - 1) (t (a - 1) + 1)^-1`` for t from 0 to 1."""
    n = input.shape[-1]
    nodes, weights = np.polynomial.legendre.leggauss(60)

    def log(a: Rows) -> Rows:
        small = [[a[i][j] - (i == j) for j in range(n)] for i in range(n)]
        total: Rows = [[0.0] * n for _ in range(n)]
        for node, weight in zip(nodes.tolist(), weights.tolist(), strict=True):
            left = [[(node + 1) / 2 * small[i][j] + (i == j) for j in range(n)] for i in range(n)]
            part = _solved(left, small)
            total = [[t + weight / 2 * p for t, p in zip(r, s, strict=True)] for r, s in zip(total, part, strict=True)]
        return total

    return _each(log, (n, n), input)


def set_diag(input: Any, diagonal: Any) -> np.ndarray:
    out = np.array(input)
    for index in np.ndindex(out.shape):
        if index[-1] == index[-2]:
            out[index] = diagonal[index[:-1]]
    return out
