"""Roots and logarithms of matrices, by what they are the root and the logarithm of."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from graphdock.errors import InvalidArgumentError

Computed = Callable[..., list[np.ndarray]]


@pytest.mark.parametrize("size", [1, 2, 9, 33, 70])
@pytest.mark.sampled(2)
def test_root(computed: Computed, size: int) -> None:
    rng = np.random.default_rng(size)
    shape = (1 if size > 50 else 2, size, size)
    x = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    (y,) = computed("MatrixSquareRoot", {"input": x})
    np.testing.assert_allclose(y @ y, x, atol=1e-8)
    assert (np.linalg.eigvals(y).real > -1e-8).all()  # the principal one


def test_root_of_a_real_matrix_is_real(computed: Computed) -> None:
    x = np.random.default_rng(1).standard_normal((12, 12)) + 12 * np.eye(12)
    (y,) = computed("MatrixSquareRoot", {"input": x})
    np.testing.assert_allclose(y @ y, x, atol=1e-10)


@pytest.mark.parametrize("size", [1, 2, 9, 33])
def test_logarithm(computed: Computed, size: int) -> None:
    rng = np.random.default_rng(size)
    x = rng.standard_normal((size, size)) + 1j * rng.standard_normal((size, size))
    (y,) = computed("MatrixLogarithm", {"input": x})
    total, term = np.eye(size, dtype=complex), np.eye(size, dtype=complex)
    for k in range(1, 40):  # of exp(y / 64)
        term = term @ y / (64 * k)
        total += term
    np.testing.assert_allclose(np.linalg.matrix_power(total, 64), x, atol=1e-8)


def test_without_a_basis_of_eigenvectors(computed: Computed) -> None:
    x = np.array([[2, 1, 0], [0, 2, 1], [0, 0, 2]], np.complex128)
    (y,) = computed("MatrixSquareRoot", {"input": x})
    np.testing.assert_allclose(y @ y, x, atol=1e-14)


def test_a_cycle(computed: Computed) -> None:
    """All of its eigenvalues have the same size, which a shift can't tell apart."""
    x = np.roll(np.eye(6, dtype=np.complex128), 1, 0) * 1j
    (y,) = computed("MatrixSquareRoot", {"input": x})
    np.testing.assert_allclose(y @ y, x, atol=1e-12)


def test_what_has_no_logarithm_is_refused(computed: Computed) -> None:
    for x in (np.zeros((2, 2)), np.full((2, 2), np.nan)):
        with pytest.raises(InvalidArgumentError, match="no logarithm"):
            computed("MatrixLogarithm", {"input": x.astype(np.complex64)})
