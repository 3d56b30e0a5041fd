"""Matrices larger than the samples of their specs, against NumPy: beyond a warp, a block's columns and shared memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from graphdock.errors import InvalidArgumentError

Computed = Callable[..., list[np.ndarray]]
#: Beside a warp's lanes; the last one is worked on in scratch memory.
SIZES = [1, 31, 33, 70, 180]


def _matrix(size: int, dtype: str, columns: int | None = None) -> np.ndarray:
    rng = np.random.default_rng(size)
    made = rng.standard_normal((1, size, columns or size))
    if dtype.startswith("complex"):
        made = made + 1j * rng.standard_normal(made.shape)
    return made.astype(dtype)


def _adjoint(x: np.ndarray) -> np.ndarray:
    return np.conj(np.swapaxes(x, -1, -2))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.sampled(2)
def test_solutions(computed: Computed, size: int, adjoint: bool) -> None:
    x, b = _matrix(size, "float64"), _matrix(size, "float64", 35)
    (y,) = computed("MatrixSolve", {"matrix": x, "rhs": b}, adjoint=adjoint)
    (inverse,) = computed("MatrixInverse", {"input": x}, adjoint=adjoint)
    turned = _adjoint(x) if adjoint else x
    np.testing.assert_allclose(turned @ y, b, atol=1e-9 * size)
    np.testing.assert_allclose(turned @ inverse, np.eye(size)[None], atol=1e-9 * size)


@pytest.mark.parametrize(("dtype", "size"), [("float32", 110), ("float64", 78), ("complex128", 55)])
def test_matrices_that_nearly_fill_the_shared_memory_that_needs_no_leave(
    computed: Computed, dtype: str, size: int
) -> None:
    """48 KiB are for what a kernel has by itself, too."""
    x = _matrix(size, dtype) / size**0.5 + 2 * np.eye(size, dtype=dtype)
    assert 0 < (48 << 10) - x.nbytes < 1024
    within = 1e-4 if dtype == "float32" else 1e-10
    np.testing.assert_allclose(computed("MatrixInverse", {"input": x}, adjoint=False)[0], np.linalg.inv(x), atol=within)
    (determinant,) = computed("MatrixDeterminant", {"input": x})
    np.testing.assert_allclose(determinant, np.linalg.det(x), rtol=within)


@pytest.mark.parametrize("size", SIZES[1:4])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("adjoint", [False, True])
def test_triangles(computed: Computed, size: int, lower: bool, adjoint: bool) -> None:
    x = _matrix(size, "complex128") + 3 * size**0.5 * np.eye(size)
    b = _matrix(size, "complex128", 35)
    (y,) = computed("MatrixTriangularSolve", {"matrix": x, "rhs": b}, lower=lower, adjoint=adjoint)
    triangle = np.tril(x) if lower else np.triu(x)
    np.testing.assert_allclose((_adjoint(triangle) if adjoint else triangle) @ y, b, atol=1e-9)


@pytest.mark.parametrize("size", SIZES)
def test_roots_and_determinants(computed: Computed, size: int) -> None:
    x = _matrix(size, "complex128")
    x = x @ _adjoint(x) / size + np.eye(size)
    (root,) = computed("Cholesky", {"input": x})
    np.testing.assert_allclose(root, np.linalg.cholesky(x), atol=1e-10)
    (determinant,) = computed("MatrixDeterminant", {"input": x})
    sign, logarithm = computed("LogMatrixDeterminant", {"input": x})
    np.testing.assert_allclose(determinant, np.linalg.det(x), rtol=1e-9)
    np.testing.assert_allclose(sign * np.exp(logarithm), determinant, rtol=1e-9)


@pytest.mark.parametrize("size", SIZES[:4])
def test_lu_exchanges_rows_as_numpy_would(computed: Computed, size: int) -> None:
    x = _matrix(size, "float64")
    made, order = computed("Lu", {"input": x}, output_idx_type="int64")
    lower, upper = np.tril(made, -1) + np.eye(size), np.triu(made)
    np.testing.assert_allclose(lower @ upper, np.take_along_axis(x, order[..., None], -2), atol=1e-12 * size)
    assert np.abs(lower).max() <= 1


def test_one_bad_matrix_of_a_batch_is_refused(computed: Computed) -> None:
    batch = np.stack([np.eye(40, dtype=np.float32)] * 5)
    batch[3, 20, 20] = 0
    for op, match in (("MatrixInverse", "not invertible"), ("Cholesky", "not successful"), ("Lu", "not invertible")):
        with pytest.raises(InvalidArgumentError, match=match):
            computed(op, {"input": batch})
    with pytest.raises(InvalidArgumentError, match="not invertible"):
        computed("MatrixTriangularSolve", {"matrix": batch, "rhs": batch})


@pytest.mark.parametrize("shape", [(40, 7), (7, 40)])
@pytest.mark.parametrize("fast", [False, True])
def test_least_squares(computed: Computed, shape: tuple[int, int], fast: bool) -> None:
    rng = np.random.default_rng(3)
    x, b = rng.standard_normal((2, *shape)), rng.standard_normal((2, shape[0], 3))
    arrays = {"matrix": x, "rhs": b, "l2_regularizer": np.float64(0)}
    (y,) = computed("MatrixSolveLs", arrays, fast=fast)
    np.testing.assert_allclose(y, np.linalg.pinv(x) @ b, atol=1e-10)


def test_least_squares_of_a_matrix_without_full_rank(computed: Computed) -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((9, 2)) @ rng.standard_normal((2, 5))
    b = rng.standard_normal((9, 1))
    arrays = {"matrix": x, "rhs": b, "l2_regularizer": np.float64(0)}
    (y,) = computed("MatrixSolveLs", arrays, fast=False)
    np.testing.assert_allclose(y, np.linalg.pinv(x) @ b, atol=1e-10)


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (40, 33)])
def test_diagonals(computed: Computed, shape: tuple[int, int]) -> None:
    x, diagonal = np.zeros((2, *shape), np.int16), np.arange(2 * min(shape), dtype=np.int16).reshape(2, -1) + 1
    (y,) = computed("MatrixSetDiag", {"input": x, "diagonal": diagonal})
    np.testing.assert_array_equal(np.diagonal(y, axis1=1, axis2=2), diagonal)
    assert np.count_nonzero(y) == diagonal.size
