"""Decompositions of matrices larger than the samples of their specs, by the equations that they hold to, and NumPy's signs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from graphdock.errors import InvalidArgumentError

Computed = Callable[..., list[np.ndarray]]
#: NumPy's LAPACK goes another way from 26 on, whose signs differ.
SIGNS_UP_TO = 25


def _matrix(rows: int, columns: int, dtype: str) -> np.ndarray:
    rng = np.random.default_rng(rows + columns)
    made = rng.standard_normal((2, rows, columns))
    if dtype.startswith("complex"):
        made = made + 1j * rng.standard_normal(made.shape)
    return made.astype(dtype)


def _adjoint(x: np.ndarray) -> np.ndarray:
    return np.conj(np.swapaxes(x, -1, -2))


@pytest.mark.parametrize("shape", [(1, 5), (5, 1), (33, 31), (31, 65), (100, 60)])
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.sampled(6)
def test_qr_has_numpys_signs(computed: Computed, shape: tuple[int, int], full: bool) -> None:
    x = _matrix(*shape, "complex128")
    q, r = computed("Qr", {"input": x}, full_matrices=full)
    want = np.linalg.qr(x, "complete" if full else "reduced")
    np.testing.assert_allclose(q, want[0], atol=1e-10)
    np.testing.assert_allclose(r, want[1], atol=1e-10)


@pytest.mark.parametrize(
    ("size", "dtype"), [*((n, d) for n in (2, 5, 17, 33) for d in ("float64", "complex128")), (84, "complex128")]
)
@pytest.mark.sampled(6)
def test_eigenvalues(computed: Computed, size: int, dtype: str) -> None:
    x = _matrix(size, size, dtype)
    x = x + _adjoint(x)
    values, vectors = computed("SelfAdjointEigV2", {"input": x})
    alone, nothing = computed("SelfAdjointEigV2", {"input": x}, compute_v=False)
    want, basis = np.linalg.eigh(x)
    np.testing.assert_allclose(values.real, want, atol=1e-10)
    np.testing.assert_allclose(alone, values, atol=1e-10)
    assert nothing.shape == (0,)
    np.testing.assert_allclose(x @ vectors, vectors * values[:, None], atol=1e-9)
    np.testing.assert_allclose(_adjoint(vectors) @ vectors, np.broadcast_to(np.eye(size), x.shape), atol=1e-10)
    if size <= SIGNS_UP_TO:
        np.testing.assert_allclose(vectors, basis, atol=1e-8)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize(
    ("shape", "full"),
    [
        *((shape, full) for shape in [(1, 1), (4, 4), (3, 9), (9, 3)] for full in (False, True)),
        ((31, 33), True),
        pytest.param((31, 33), False, marks=pytest.mark.exhaustive),
        *(pytest.param((80, 30), full, marks=pytest.mark.exhaustive) for full in (False, True)),
    ],
)
@pytest.mark.sampled(2)
def test_singular_values(computed: Computed, shape: tuple[int, int], dtype: str, full: bool) -> None:
    x = _matrix(*shape, dtype)
    s, u, v = computed("Svd", {"input": x}, full_matrices=full, Tout="float64")
    alone, *_ = computed("Svd", {"input": x}, compute_uv=False, Tout="float64")
    want = np.linalg.svd(x, full)
    np.testing.assert_allclose(s, want[1], atol=1e-10)
    np.testing.assert_allclose(alone, s, atol=1e-10)
    k = min(shape)
    np.testing.assert_allclose((u[..., :k] * s[:, None]) @ _adjoint(v[..., :k]), x, atol=1e-10)
    for basis in (u, v):
        size = basis.shape[-1]
        np.testing.assert_allclose(_adjoint(basis) @ basis, np.broadcast_to(np.eye(size), (2, size, size)), atol=1e-10)
    if k <= SIGNS_UP_TO:
        np.testing.assert_allclose(u[..., :k], want[0][..., :k], atol=1e-8)


def test_values_that_are_equal_and_zero(computed: Computed) -> None:
    x = np.zeros((1, 6, 4))
    x[0, 0, 0] = x[0, 3, 2] = 2.0
    s, u, v = computed("Svd", {"input": x}, Tout="float64")
    np.testing.assert_allclose(s, [[2, 2, 0, 0]], atol=1e-14)
    np.testing.assert_allclose((u * s[:, None]) @ _adjoint(v), x, atol=1e-14)
    np.testing.assert_allclose(_adjoint(u) @ u, np.eye(4)[None], atol=1e-14)


@pytest.mark.parametrize("op", ["Svd", "SelfAdjointEigV2"])
def test_what_does_not_converge_is_refused(computed: Computed, op: str) -> None:
    with pytest.raises(InvalidArgumentError, match="did not converge"):
        computed(op, {"input": np.full((3, 3), np.nan, np.float32)})
