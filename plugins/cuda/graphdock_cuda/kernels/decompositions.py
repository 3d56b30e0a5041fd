"""QR, eigenvalue and singular value decompositions by LAPACK's methods, whose signs they have: one block per matrix.

A matrix and its vectors that fit shared memory are worked on there, else in scratch memory.
"""

from __future__ import annotations

import numpy as np
from graphdock.contracts import DType, KernelDef, dtypes

from graphdock_cuda.compiled import Source, source
from graphdock_cuda.kernel import family
from graphdock_cuda.kernels.linalg import (
    MATRIX,
    adjoint_product,
    matrix_source,
    normal_equations,
    place,
    refusal,
    threads,
)
from graphdock_cuda.launch import i32, i64
from graphdock_cuda.work import Operand, Work, blocks

__all__ = ["KERNELS"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)


def _source(w: Work, file: str, dtype: DType) -> Source:
    return source(*MATRIX, "reflections.cuh", file, ELEMENT=w.ctype(dtype), name=file.partition(".")[0])


def _batch(shape: tuple[int, ...]) -> int:
    count = 1
    for dim in shape[:-2]:
        count *= dim
    return count


def _reals(dtype: DType, count: int) -> int:
    """Elements that so many real numbers take."""
    return -(-count // 2) if dtype.is_complex else count


@kernel("Qr")
def qr(w: Work) -> None:
    x = w.input(0)
    m, n = x.shape[-2:]
    k = m if w.attr("full_matrices") else min(m, n)
    batch = _batch(x.shape)
    q, r = w.output((*x.shape[:-2], m, k)), w.output((*x.shape[:-2], k, n), 1)
    if not q.size and not r.size:
        return
    buffer, each, shared = place(w, x.dtype, m * n + m * k + min(m, n), batch)
    w.launch(
        _source(w, "qr.cuh", x.dtype), "qr", batch, threads(m * n), x, q, r, buffer, i64(each), i32(m), i32(n), i32(k),
        shared=shared,
    )  # fmt: skip


@kernel("SelfAdjointEigV2")
def self_adjoint_eig(w: Work) -> None:
    x = w.input(0)
    n, batch, vectors = x.shape[-1], _batch(x.shape), bool(w.attr("compute_v"))
    e, v = w.output(x.shape[:-1]), w.output(x.shape if vectors else (0,), 1)
    if not x.size:
        return
    each = n * n * (1 + vectors) + n + _reals(x.dtype, 4 * n)
    buffer, each, shared = place(w, x.dtype, each, batch)
    w.launch(
        _source(w, "eigen.cuh", x.dtype), "self_adjoint_eig", batch, threads(n * n), x, e, v if vectors else e, buffer,
        i64(each), i32(n), i32(vectors), refusal(w, "the eigenvalues did not converge", "is there a NaN?"),
        shared=shared,
    )  # fmt: skip


def svd(w: Work, x: Operand, s: Operand, u: Operand | None, v: Operand | None) -> None:
    """Values into ``s``, and vectors into ``u`` and ``v`` where those are wanted: as many as the longer of the two has columns."""
    rows, columns = x.shape[-2:]
    m, n, batch = max(rows, columns), min(rows, columns), _batch(x.shape)
    most = n if u is None or v is None else max(u.shape[-1], v.shape[-1])
    by_factor = m >= int(11 * n / 6)  # from LAPACK's ilaenv
    vectors = u is not None
    each = m * n + by_factor * n * n + vectors * (m * most + n * n) + 3 * n + _reals(x.dtype, 6 * n)
    buffer, each, shared = place(w, x.dtype, each, batch)
    code = source(
        *MATRIX, "reflections.cuh", "bidiagonal.cuh", "svd.cuh", ELEMENT=w.ctype(x), VALUE=w.ctype(s), name="svd"
    )
    w.launch(
        code, "svd", batch, threads(m * n), x, s, u or s, v or s, buffer, i64(each), i32(rows), i32(columns), i32(most),
        i32(vectors), i32(by_factor), refusal(w, "the singular values did not converge", "is there a NaN?"),
        shared=shared,
    )  # fmt: skip


@kernel("Svd")
def svd_op(w: Work) -> None:
    x = w.input(0)
    (m, n), lead = x.shape[-2:], x.shape[:-2]
    k, full = min(m, n), bool(w.attr("full_matrices"))
    s = w.output((*lead, k))
    if not w.attr("compute_uv"):
        w.output((0,), 1)
        w.output((0,), 2)
        if s.size:
            svd(w, x, s, None, None)
        return
    u = w.output((*lead, m, m if full else k), 1)
    v = w.output((*lead, n, n if full else k), 2)
    if s.size:
        svd(w, x, s, u, v)
    else:
        identity(w, u)
        identity(w, v)


def identity(w: Work, y: Operand) -> None:
    """The vectors of matrices without elements."""
    if y.size:
        code = source(*MATRIX, code=_IDENTITY, ELEMENT=w.ctype(y), name="identity")
        w.launch(code, "identity", blocks(y.size), 256, y, i64(y.size), i64(y.shape[-1]))


_IDENTITY = """
GD_KERNEL(identity)(ELEMENT* y, i64 count, i64 n) {
  GD_GRID_LOOP(i64, i, count) y[i] = of_part<ELEMENT>(part_t<ELEMENT>(i % n == i / n % n));
}
"""


@kernel("MatrixSolveLs")
def solve_ls(w: Work) -> None:
    x, rhs = w.input("matrix"), w.input("rhs")
    (m, n), width = x.shape[-2:], rhs.shape[-1]
    y = w.output((*x.shape[:-2], n, width))
    if not y.size:
        return
    if not m:
        w.fill(y)
    elif w.attr("fast"):
        normal_equations(w, x, rhs, y, float(w.host("l2_regularizer")))
    else:
        _by_values(w, x, rhs, y)


def _by_values(w: Work, x: Operand, rhs: Operand, y: Operand) -> None:
    """``v diag(1 / s) u^H rhs``, of the values that are not as good as zero."""
    (m, n), width, batch = x.shape[-2:], rhs.shape[-1], _batch(x.shape)
    k = min(m, n)
    real = x.dtype if not x.dtype.is_complex else dtypes.float32 if x.dtype.size == 8 else dtypes.float64
    s, u, v = w.scratch(real, (batch, k)), w.scratch(x.dtype, (batch, m, k)), w.scratch(x.dtype, (batch, n, k))
    between = w.scratch(x.dtype, (batch, k, width))
    svd(w, x, s, u, v)
    products = matrix_source(w, "products.cuh", x.dtype)
    limit = float(np.finfo(x.dtype.np).eps) * max(m, n)
    adjoint_product(w, products, u, rhs, between, s, limit)
    w.launch(products, "plain_product", blocks(y.size), 256, v, between, y, i64(y.size), i32(k), i32(n), i64(width))
