"""Square roots and logarithms of matrices by Schur decompositions, in complex128: one block per matrix."""

from __future__ import annotations

import math

from graphdock.contracts import KernelDef, dtypes

from graphdock_cuda.compiled import source
from graphdock_cuda.kernel import family
from graphdock_cuda.kernels.linalg import MATRIX, place, refusal, threads
from graphdock_cuda.launch import i32, i64
from graphdock_cuda.work import Work

__all__ = ["KERNELS"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)


def _function(w: Work, logarithm: bool, what: str) -> None:
    x = w.input(0)
    y = w.output(x.shape)
    if not x.size:
        return
    n, batch = x.shape[-1], math.prod(x.shape[:-2])
    buffer, each, shared = place(w, dtypes.complex128, (5 if logarithm else 3) * n * n + 3 * n, batch)
    code = source(*MATRIX, "reflections.cuh", "schur.cuh", ELEMENT=w.ctype(x), name="schur")
    w.launch(
        code, "matrix_function", batch, threads(n * n), x, y, buffer, i64(each), i32(n), i32(logarithm),
        refusal(w, f"the input has no {what}"), shared=shared,
    )  # fmt: skip


kernel("MatrixSquareRoot")(lambda w: _function(w, False, "square root"))
kernel("MatrixLogarithm")(lambda w: _function(w, True, "logarithm"))
