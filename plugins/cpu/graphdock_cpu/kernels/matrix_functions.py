"""Square roots and logarithms of matrices by Schur decompositions, one matrix of a batch after the other, in complex128.

SciPy's own functions take a matrix without a logarithm for one with, do not end for one with an infinite element, and take 100
times as long for a small one (ADR 69).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from graphdock.contracts import BuildContext, KernelDef, errors
from scipy.linalg import schur

__all__ = ["KERNELS"]

#: Most square roots that a logarithm takes, the norm below which its approximant is exact, and that one's terms.
_ROOTS, _NEAR, _TERMS = 100, 0.25, 8


def _triangular_root(t: np.ndarray) -> np.ndarray:
    """The upper triangular root, a diagonal after the other."""
    size = len(t)
    root = np.diag(np.sqrt(np.diagonal(t)))
    for apart in range(1, size):
        for i in range(size - apart):
            j = i + apart
            rest = t[i, j] - root[i, i + 1 : j] @ root[i + 1 : j, j]
            both = root[i, i] + root[j, j]
            root[i, j] = rest / both if both else 0
    return root


def _root(x: np.ndarray) -> np.ndarray:
    t, q = schur(x.astype(np.complex128), "complex")
    return q @ _triangular_root(t) @ q.conj().T


def _logarithm(x: np.ndarray) -> np.ndarray:
    """``2^k log(t^(1 / 2^k))``, with Gauss and Legendre's sum for the last, near the identity."""
    t, q = schur(x.astype(np.complex128), "complex")
    one = np.eye(len(t))
    for count in range(_ROOTS):  # noqa: B007
        if np.linalg.norm(t - one, 1) <= _NEAR:
            break
        t = _triangular_root(t)
    else:
        raise np.linalg.LinAlgError
    nodes, weights = np.polynomial.legendre.leggauss(_TERMS)
    small = t - one
    total = sum(w / 2 * np.linalg.solve(one + (n + 1) / 2 * small, small) for n, w in zip(nodes, weights, strict=True))
    return q @ (2.0**count * np.asarray(total)) @ q.conj().T


def _of_each(
    function: Callable[[np.ndarray], np.ndarray], message: str, refuses: bool = True
) -> Callable[[BuildContext], Any]:
    """``refuses``: a matrix that is not finite; else NaN comes of it."""

    def build(ctx: BuildContext) -> Callable[..., Any]:
        dtype = ctx.outputs[0].dtype

        def compute(x: np.ndarray, out: np.ndarray) -> None:
            if not x.size:
                return
            for index in np.ndindex(x.shape[:-2]):
                if not np.isfinite(x[index]).all() and not refuses:
                    out[index] = np.nan
                    continue
                try:
                    made = function(x[index])
                except ValueError as error:
                    raise errors.InvalidArgumentError(message) from error
                out[index] = made if dtype.is_complex else made.real

        def fresh(x: np.ndarray) -> np.ndarray:
            out = np.empty(x.shape, dtype.np)
            compute(x, out)
            return out

        return fresh if ctx.fresh else compute

    return build


KERNELS = [
    KernelDef(
        "MatrixSquareRoot",
        "cpu",
        _of_each(_root, "MatrixSquareRoot: the input has no square root", False),
        layout="strided",
    ),
    KernelDef(
        "MatrixLogarithm", "cpu", _of_each(_logarithm, "MatrixLogarithm: the input has no logarithm"), layout="strided"
    ),
]
