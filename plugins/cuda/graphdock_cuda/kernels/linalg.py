"""Systems of linear equations, roots and determinants: one block per matrix, right-hand sides 32 columns per block.

A matrix that fits shared memory is worked on there, else in the output or in scratch memory.
"""

from __future__ import annotations

import functools
from typing import Any

from graphdock.contracts import DType, KernelDef, dtypes, errors

from graphdock_cuda.compiled import Source, source
from graphdock_cuda.kernel import family
from graphdock_cuda.launch import f64, i32, i64
from graphdock_cuda.work import ErrorWord, Operand, Work, blocks

__all__ = ["KERNELS", "MATRIX", "matrix_source", "place", "refusal", "threads"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)

MATRIX = ("complex.cuh", "block.cuh", "matrix.cuh")
#: Shared memory that stays free for what kernels declare.
_RESERVED = 8 * 1024
#: What a GPU has that does not say.
_USUAL = 48 * 1024
_COLUMNS = 32


def matrix_source(w: Work, file: str, dtype: DType, **defines: str) -> Source:
    """A source about matrices of that dtype."""
    return source(*MATRIX, file, ELEMENT=w.ctype(dtype), **defines)


def threads(elements: int) -> int:
    """Return how many threads a block has that works on so many elements."""
    return 32 if elements <= 64 else 128 if elements <= 1024 else 256


def shared_bytes(w: Work, nbytes: int) -> int:
    """``nbytes`` where a block can have as much shared memory, else 0."""
    return nbytes if nbytes <= (w.device.info.shared_memory_bytes or _USUAL) - _RESERVED else 0


def place(w: Work, dtype: DType, each: int, batch: int) -> tuple[Operand, int, int]:
    """Return where blocks work on ``each`` elements: a buffer, the elements of it per block (0: shared memory), bytes of that."""
    shared = shared_bytes(w, max(each, 1) * dtype.size)
    return w.scratch(dtype, 1 if shared else each * batch), 0 if shared else each, shared


def refusal(w: Work, message: str, hint: str | None = None) -> ErrorWord:
    """Return what is raised when a matrix is refused: an InvalidArgumentError as the cpu's kernel words it."""
    text = f"{w.node.op}: {message}"
    return ErrorWord(lambda _matrix, _: errors.InvalidArgumentError(text, hint=hint))


def _batch(x: Operand) -> int:
    """Return how many matrices there are."""
    count = 1
    for dim in x.shape[:-2]:
        count *= dim
    return count


def _solved(w: Work, x: Operand, rhs: Operand | None, y: Operand, message: str) -> None:
    """Factors in scratch memory, then as many columns at once as there are; of the identity without ``rhs``."""
    n, width, batch = x.shape[-1], y.shape[-1], _batch(x)
    if not y.size:
        return
    code = matrix_source(w, "linear.cuh", x.dtype, INDEX="i32")
    lu, order = w.scratch(x.dtype, x.size), w.scratch(dtypes.int32, batch * n)
    shared = shared_bytes(w, x.dtype.size * n * n)
    w.launch(
        code, "lu_factor", batch, threads(n * n), x, lu, order, i32(n), i32(shared > 0), i32(bool(w.attr("adjoint"))),
        refusal(w, message), shared=shared,
    )  # fmt: skip
    chunks = blocks(width, _COLUMNS)
    w.launch(
        code, "lu_solve", batch * chunks, threads(n * min(width, _COLUMNS)), lu, order, lu if rhs is None else rhs, y,
        i32(n), i64(width), i32(chunks), i32(rhs is None),
    )  # fmt: skip


@kernel("MatrixInverse")
def inverse(w: Work) -> None:
    x = w.input(0)
    _solved(w, x, None, w.output(x.shape), "Input is not invertible.")


@kernel("MatrixSolve")
def solve(w: Work) -> None:
    rhs = w.input("rhs")
    _solved(w, w.input("matrix"), rhs, w.output(rhs.shape), "Input matrix is not invertible.")


@kernel("MatrixTriangularSolve")
def triangular_solve(w: Work) -> None:
    x, rhs = w.input("matrix"), w.input("rhs")
    y = w.output(rhs.shape)
    if not y.size:
        return
    n, width = rhs.shape[-2:]
    chunks = blocks(width, _COLUMNS)
    w.launch(
        matrix_source(w, "linear.cuh", x.dtype, INDEX="i32"), "triangular_solve", _batch(x) * chunks,
        threads(n * min(width, _COLUMNS)), x, rhs, y, i32(n), i64(width), i32(chunks), i32(bool(w.attr("lower"))),
        i32(bool(w.attr("adjoint"))), refusal(w, "Input matrix is not invertible.", "there is a zero on the diagonal"),
    )  # fmt: skip


@kernel("Lu")
def lu(w: Work) -> None:
    x = w.input(0)
    made, order = w.output(x.shape), w.output(x.shape[:-1], 1)
    if x.size:
        n = x.shape[-1]
        shared = shared_bytes(w, x.dtype.size * n * n)
        w.launch(
            matrix_source(w, "linear.cuh", x.dtype, INDEX=w.ctype(order)), "lu_factor", _batch(x), threads(n * n), x,
            made, order, i32(n), i32(shared > 0), i32(0), refusal(w, "Input is not invertible."), shared=shared,
        )  # fmt: skip


def _determinant(w: Work, logarithm: bool) -> None:
    x = w.input(0)
    sign = w.output(x.shape[:-2])
    size = w.output(x.shape[:-2], 1) if logarithm else sign
    batch, n = _batch(x), x.shape[-1]
    buffer, each, shared = place(w, x.dtype, n * n, batch)
    w.launch(
        matrix_source(w, "linear.cuh", x.dtype, INDEX="i32"), "determinant", batch, threads(n * n), x, sign, size,
        buffer, i64(each), w.scratch(dtypes.int32, batch * n), i32(n), i32(logarithm), shared=shared,
    )  # fmt: skip


kernel("MatrixDeterminant")(functools.partial(_determinant, logarithm=False))
kernel("LogMatrixDeterminant")(functools.partial(_determinant, logarithm=True))


def _root(w: Work, x: Operand, y: Operand, error: ErrorWord) -> None:
    n = x.shape[-1]
    shared = shared_bytes(w, x.dtype.size * n * n)
    w.launch(
        matrix_source(w, "linear.cuh", x.dtype, INDEX="i32"), "cholesky", _batch(x), threads(n * n), x, y, i32(n),
        i32(shared > 0), error, shared=shared,
    )  # fmt: skip


@kernel("Cholesky")
def cholesky(w: Work) -> None:
    x = w.input(0)
    y = w.output(x.shape)
    if x.size:
        message = "Cholesky decomposition was not successful. The input might not be valid."
        _root(w, x, y, refusal(w, message, "the matrix must be positive definite"))


def normal_equations(w: Work, x: Operand, rhs: Operand, y: Operand, weight: float) -> None:
    """Least squares by the smaller Gram matrix and its root."""
    (m, n), width, batch = x.shape[-2:], rhs.shape[-1], _batch(x)
    size = min(m, n)
    gram = w.scratch(x.dtype, (batch, size, size))
    root = w.scratch(x.dtype, (batch, size, size))
    products = matrix_source(w, "products.cuh", x.dtype)
    linear = matrix_source(w, "linear.cuh", x.dtype, INDEX="i32")
    w.launch(products, "gram", blocks(gram.size), 256, x, gram, i64(gram.size), i32(m), i32(n), f64(weight))
    _root(w, gram, root, refusal(w, "the matrix has not full rank", "use fast=False, or a positive l2_regularizer"))
    chunks = blocks(width, _COLUMNS)

    def turned(b: Operand, made: Operand) -> None:
        adjoint_product(w, products, x, b, made)

    def by_root(b: Operand, made: Operand) -> None:
        w.launch(
            linear, "root_solve", batch * chunks, threads(size * min(width, _COLUMNS)), root, b, made, i32(size),
            i64(width), i32(chunks),
        )  # fmt: skip

    first, second = (turned, by_root) if m >= n else (by_root, turned)
    between = w.scratch(x.dtype, (batch, size, width))
    first(rhs, between)
    second(between, y)


def adjoint_product(
    w: Work, code: Source, a: Operand, b: Operand, y: Operand, values: Operand | None = None, limit: float = 0.0
) -> None:
    """``y = a^H b``, its rows divided by ``values``, where those are above ``limit`` times the first; else zero."""
    m, n = a.shape[-2:]
    w.launch(
        code, "adjoint_product", blocks(y.size), 256, a, b, y, i64(y.size), i32(m), i32(n), i64(b.shape[-1]),
        a if values is None else values, i32(values is not None), f64(limit),
    )  # fmt: skip


@kernel("MatrixSetDiag", types={"T": tuple(name for name, dtype in dtypes.ALL.items() if dtype.size)})
def set_diag(w: Work) -> None:
    x, diagonal = w.input(0), w.input(1)
    y = w.output(x.shape)
    w.copy(y, x)
    if diagonal.size:
        m, n = x.shape[-2:]
        w.launch(
            source("set_diag.cuh", UNIT=_UNITS[x.dtype.size]), "set_diag", blocks(diagonal.size), 256, diagonal, y,
            i64(diagonal.size), i64(min(m, n)), i64(m), i64(n),
        )  # fmt: skip


_UNITS: dict[int, Any] = {1: "u8", 2: "u16", 4: "u32", 8: "u64", 16: "ulonglong2"}
