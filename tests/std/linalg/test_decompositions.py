"""Decompositions, inverses and solutions over random batches against NumPy, SciPy and the equations that they solve."""

from __future__ import annotations

from typing import Any

import graphdock as tf
import numpy as np
import pytest
import scipy.linalg
from graphdock_testing.gradient_check import check_gradients

TYPES = [np.float32, np.float64, np.complex64, np.complex128]
SHAPES = [(3, 3), (2, 1, 4, 4), (0, 2, 2), (1, 1), (40, 40)]


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


def run(value: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        return session.run(value, feed)


def draw(shape: tuple[int, ...], dtype: Any = np.float64, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=shape)
    return np.asarray(values + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else values).astype(dtype)


def regular(shape: tuple[int, ...], dtype: Any = np.float64, seed: int = 0) -> np.ndarray:
    return np.asarray(draw(shape, dtype, seed) + 2 * shape[-1] ** 0.5 * np.eye(shape[-1]), dtype)


def definite(shape: tuple[int, ...], dtype: Any = np.float64, seed: int = 0) -> np.ndarray:
    x = draw(shape, dtype, seed)
    return np.asarray(x @ adjoint(x) + np.eye(shape[-1]), dtype)


def adjoint(x: np.ndarray) -> np.ndarray:
    return x.swapaxes(-1, -2).conj()


def close(got: Any, want: Any, dtype: Any) -> None:
    narrow = np.finfo(dtype).eps > 1e-10
    np.testing.assert_allclose(got, want, rtol=1e-3 if narrow else 1e-9, atol=1e-4 if narrow else 1e-10)
    assert got.dtype == np.dtype(dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_against_numpy(shape: tuple[int, ...], dtype: Any) -> None:
    a, spd, b = regular(shape, dtype), definite(shape, dtype), draw((*shape[:-1], 2), dtype, 1)
    got = run(
        {
            "inverse": tf.matrix_inverse(a),
            "adjoint inverse": tf.linalg.inv(a, adjoint=True),
            "solve": tf.matrix_solve(a, b),
            "adjoint solve": tf.linalg.solve(a, b, adjoint=True),
            "cholesky": tf.cholesky(spd),
            "cholesky_solve": tf.cholesky_solve(tf.cholesky(spd), b),
            "lower": tf.matrix_triangular_solve(a, b),
            "upper": tf.matrix_triangular_solve(a, b, lower=False),
            "lower adjoint": tf.matrix_triangular_solve(a, b, adjoint=True),
            "upper adjoint": tf.matrix_triangular_solve(a, b, lower=False, adjoint=True),
            "det": tf.matrix_determinant(a / 8),
            "trace": tf.trace(a),
        }
    )
    want = {
        "inverse": np.linalg.inv(a),
        "adjoint inverse": np.linalg.inv(adjoint(a)),
        "solve": np.linalg.solve(a, b),
        "adjoint solve": np.linalg.solve(adjoint(a), b),
        "cholesky": np.linalg.cholesky(spd),
        "cholesky_solve": np.linalg.solve(spd, b),
        "lower": np.linalg.solve(np.tril(a), b),
        "upper": np.linalg.solve(np.triu(a), b),
        "lower adjoint": np.linalg.solve(adjoint(np.tril(a)), b),
        "upper adjoint": np.linalg.solve(adjoint(np.triu(a)), b),
        "det": np.linalg.det(a / 8),
        "trace": np.trace(a, axis1=-2, axis2=-1),
    }
    for key, value in got.items():
        close(value, want[key].astype(dtype), dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("shape", [(3, 3), (2, 5, 3), (2, 3, 5), (0, 3), (20, 30)], ids=str)
def test_factors_multiply_to_the_matrix(shape: tuple[int, ...], full: bool, dtype: Any) -> None:
    x = draw(shape, dtype)
    (q, r), (s, u, v) = run([tf.qr(x, full_matrices=full), tf.svd(x, full_matrices=full)])
    close(q @ r, x, dtype)
    close(
        adjoint(q) @ q,
        np.broadcast_to(np.eye(q.shape[-1], dtype=dtype), (*shape[:-2], q.shape[-1], q.shape[-1])),
        dtype,
    )
    assert not np.tril(r, -1).any()
    k = min(shape[-2:])
    close((u[..., :k] * s[..., None, :]) @ adjoint(v[..., :k]), x, dtype)
    np.testing.assert_allclose(s, np.linalg.svd(x, compute_uv=False), rtol=1e-4, atol=1e-5)
    assert s.dtype == np.finfo(dtype).dtype
    assert u.shape[-1] == (shape[-2] if full else k) and v.shape[-1] == (shape[-1] if full else k)
    np.testing.assert_allclose(run(tf.svd(x, compute_uv=False)), s, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_eigenvectors(shape: tuple[int, ...], dtype: Any) -> None:
    x = definite(shape, dtype)
    (e, v), alone = run([tf.self_adjoint_eig(np.tril(x)), tf.self_adjoint_eigvals(x)])
    close(v * e[..., None, :] @ adjoint(v), x, dtype)
    close(alone, e, dtype)
    assert (np.diff(e.real) >= 0).all()


@pytest.mark.parametrize("dtype", TYPES)
def test_determinants(dtype: Any) -> None:
    x = draw((5, 4, 4), dtype)
    sign, size = run(tf.linalg.slogdet(x))
    want_sign, want_size = np.linalg.slogdet(x)
    close(sign, want_sign.astype(dtype), dtype)
    close(size, want_size.astype(dtype), dtype)
    spd = definite((5, 4, 4), dtype)
    np.testing.assert_allclose(run(tf.linalg.logdet(spd)), np.linalg.slogdet(spd)[1], rtol=1e-4)
    assert run(tf.linalg.slogdet(np.zeros((2, 2))))[1] == -np.inf


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (2, 4, 4)], ids=str)
def test_least_squares(shape: tuple[int, ...], dtype: Any) -> None:
    a, b = draw(shape, dtype), draw((*shape[:-1], 2), dtype, 1)
    want = np.linalg.pinv(a) @ b
    for fast in (True, False):
        close(run(tf.matrix_solve_ls(a, b, fast=fast)), want, dtype)
    gram = adjoint(a) @ a + 0.5 * np.eye(shape[-1])
    close(run(tf.linalg.lstsq(a, b, 0.5)), np.linalg.solve(gram, adjoint(a) @ b).astype(dtype), dtype)
    close(run(tf.linalg.pinv(a)), np.linalg.pinv(a), dtype)


def test_rank_deficient_least_squares() -> None:
    a = np.outer([1.0, 2, 3], [1.0, 1])
    with pytest.raises(tf.errors.InvalidArgumentError, match="full rank"):
        run(tf.matrix_solve_ls(a, np.ones((3, 1))))
    np.testing.assert_allclose(
        run(tf.matrix_solve_ls(a, np.ones((3, 1)), fast=False)), np.linalg.pinv(a) @ np.ones((3, 1)), rtol=1e-9
    )
    assert run(tf.linalg.matrix_rank(np.stack([a, np.eye(3)[:, :2]]))).tolist() == [1, 2]


@pytest.mark.parametrize("dtype", TYPES)
def test_exponentials(dtype: Any) -> None:
    x = np.stack([draw((4, 4), dtype, i) * size for i, size in enumerate((1e-3, 0.3, 2.0, 12.0))])
    want = np.stack([scipy.linalg.expm(m.astype(np.complex128 if m.dtype.kind == "c" else np.float64)) for m in x])
    got = run(tf.linalg.expm(x))
    assert got.dtype == np.dtype(dtype)
    for mine, right in zip(got, want, strict=True):
        scale = np.abs(right).max()
        narrow = np.finfo(dtype).eps > 1e-10
        np.testing.assert_allclose(mine / scale, right / scale, atol=1e-3 if narrow else 1e-11)
    assert run(tf.linalg.expm(np.zeros((0, 2, 2)))).shape == (0, 2, 2)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(2, 3, 3), (12, 12), (0, 2, 2), (1, 1)], ids=str)
def test_square_roots_and_logarithms(shape: tuple[int, ...], dtype: Any) -> None:
    x = regular(shape, dtype)
    root = run(tf.linalg.sqrtm(x))
    close(root @ root, x, dtype)
    if np.dtype(dtype).kind == "c":
        close(run(tf.linalg.expm(tf.linalg.logm(x))), x, dtype)
    jordan = np.array([[2, 1, 0], [0, 2, 1], [0, 0, 2]], dtype)
    close(run(tf.linalg.sqrtm(jordan)), scipy.linalg.sqrtm(jordan.astype(np.complex128)).real.astype(dtype), dtype)


@pytest.mark.parametrize("dtype", TYPES)
def test_lu(dtype: Any) -> None:
    x, b = draw((3, 5, 5), dtype), draw((3, 5, 2), dtype, 1)
    both, order = tf.linalg.lu(x)
    got = run([both, order, tf.linalg.lu_solve(both, order, b), tf.linalg.lu_reconstruct(both, order)])
    for i in range(0 if np.dtype(dtype).kind == "c" else 3):  # LAPACK takes |Re| + |Im| for the size of a complex pivot
        permutation, lower, upper = scipy.linalg.lu(x[i])
        close(got[0][i], (np.tril(lower, -1) + upper).astype(dtype), dtype)
        np.testing.assert_array_equal(permutation.argmax(0), got[1][i])
    close(got[2], np.linalg.solve(x, b), dtype)
    close(got[3], x, dtype)
    close(run(tf.linalg.lu_matrix_inverse(both, order)), np.linalg.inv(x), dtype)


@pytest.mark.parametrize("layout", ["compact", "sequence", "matrix"])
def test_tridiagonal(layout: str) -> None:
    upper, main, lower = draw((2, 4)), 5 + draw((2, 4), seed=1), draw((2, 4), seed=2)
    dense = np.stack(
        [np.diag(m) + np.diag(u[:-1], 1) + np.diag(w[1:], -1) for u, m, w in zip(upper, main, lower, strict=True)]
    )
    given: Any = {"compact": np.stack([upper, main, lower], -2), "sequence": [upper, main, lower], "matrix": dense}[
        layout
    ]
    b = draw((2, 4, 3), seed=3)
    np.testing.assert_allclose(run(tf.linalg.tridiagonal_solve(given, b, layout)), np.linalg.solve(dense, b), rtol=1e-9)
    np.testing.assert_allclose(run(tf.linalg.tridiagonal_matmul(given, b, layout)), dense @ b, rtol=1e-9, atol=1e-12)
    vector = run(tf.linalg.tridiagonal_solve(given, b[..., 0], layout))
    np.testing.assert_allclose(vector, np.linalg.solve(dense, b[..., :1])[..., 0], rtol=1e-9)


def test_singular_matrices_name_the_op() -> None:
    singular = np.ones((2, 2))
    for made in (tf.matrix_inverse(singular), tf.matrix_solve(singular, singular), tf.linalg.lu(singular)[0]):
        with pytest.raises(tf.errors.InvalidArgumentError, match="not invertible") as caught:
            run(made)
        assert made.op.name in str(caught.value)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Cholesky decomposition was not successful"):
        run(tf.cholesky(-singular))


def test_shapes_are_static() -> None:
    x = tf.placeholder(tf.float32, [None, 5, 3])
    q, r = tf.qr(x)
    s, u, v = tf.svd(x, full_matrices=True)
    assert [t.shape.as_list() for t in (q, r, s, u, v)] == [
        [None, 5, 3],
        [None, 3, 3],
        [None, 3],
        [None, 5, 5],
        [None, 3, 3],
    ]
    with pytest.raises(ValueError):
        tf.matrix_inverse(x)


def test_set_diag_and_its_relatives() -> None:
    x = np.arange(12).reshape(2, 2, 3)
    got = run(tf.matrix_set_diag(x, [[-1, -2], [-3, -4]]))
    assert got[1].tolist() == [[-3, 7, 8], [9, -4, 11]]
    assert run(tf.linalg.diag_part(x)).tolist() == [[0, 4], [6, 10]]
    assert run(tf.linalg.tensor_diag([1, 2])).tolist() == [[1, 0], [0, 2]]
    assert run(tf.linalg.band_part(np.ones((3, 3)), 0, 1)).tolist() == [[1, 1, 0], [0, 1, 1], [0, 0, 1]]


SYMMETRIC = {
    "cholesky": lambda x: tf.cholesky(x),
    "logdet": lambda x: tf.linalg.logdet(x),
    "eigenvalues": lambda x: tf.self_adjoint_eigvals(x) ** 2,
    "a function of eigenvectors": lambda x: tf.square(tf.self_adjoint_eig(x)[1]),
    "an inverse by cholesky": lambda x: tf.cholesky_solve(tf.cholesky(x), np.arange(6.0).reshape(3, 2)),
}


@pytest.mark.parametrize("name", SYMMETRIC)
def test_gradients_by_symmetric_matrices(name: str) -> None:
    """The matrix is a function of what the difference is taken by, so that it stays symmetric."""
    given = draw((3, 3))
    x = tf.placeholder(tf.float64, [3, 3])
    y = SYMMETRIC[name](tf.matmul(x, x, transpose_b=True) + 2 * np.eye(3))
    check_gradients(y, {x: given})


FUNCTIONS = {
    "a function of a root": lambda x: tf.sin(tf.linalg.sqrtm(x)),
    "expm": lambda x: tf.linalg.expm(x),
    "pinv": lambda x: tf.linalg.pinv(x),
    "spectral norm": lambda x: tf.norm(x, 2, (-2, -1)),
    "lu_solve": lambda x: tf.linalg.lu_solve(*tf.linalg.lu(x), np.arange(6.0).reshape(3, 2)),
    "slogdet": lambda x: tf.linalg.slogdet(x)[1],
    "tridiagonal": lambda x: tf.linalg.tridiagonal_solve(x + 6 * np.eye(3)[1], np.arange(3.0)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients(name: str) -> None:
    x = tf.placeholder(tf.float64, [3, 3])
    check_gradients(FUNCTIONS[name](x), {x: regular((3, 3))})


SECOND = {
    "inverse": tf.matrix_inverse,
    "determinant": tf.matrix_determinant,
    "log determinant": lambda x: tf.linalg.slogdet(x)[1],
    "solve": lambda x: tf.matrix_solve(x, np.arange(6.0).reshape(3, 2)),
    "triangular solve": lambda x: tf.matrix_triangular_solve(x, np.arange(6.0).reshape(3, 2)),
    "cholesky": lambda x: tf.cholesky(tf.matmul(x, x, transpose_b=True)),
    "qr": lambda x: tf.qr(x)[1],
    "svd": lambda x: tf.svd(x, compute_uv=False),
    "eigenvalues": lambda x: tf.self_adjoint_eigvals(x),
    "least squares": lambda x: tf.matrix_solve_ls(x, np.arange(6.0).reshape(3, 2), 0.5),
    "lu": lambda x: tf.linalg.lu(x)[0],
}


@pytest.mark.parametrize("name", SECOND)
def test_second_order(name: str) -> None:
    x = tf.placeholder(tf.float64, [3, 3])
    y = SECOND[name](x)
    weights = np.linspace(0.5, 1.5, int(np.prod(y.shape.as_list()))).reshape(y.shape.as_list())
    (first,) = tf.gradients(y, [x], [tf.constant(weights)])
    check_gradients(tf.square(first), {x: regular((3, 3))})


@pytest.mark.parametrize("place", [(0, 0), (0, 2), (2, 0)])
def test_nan_is_no_pivot_but_where_a_matrix_begins_and_makes_nan_of_singular_values(place: tuple[int, int]) -> None:
    x = np.stack([np.eye(3), np.eye(3)])
    x[(1, *place)] = np.nan
    eliminated = {
        "inverse": tf.matrix_inverse(x),
        "solve": tf.matrix_solve(x, np.ones((2, 3, 1))),
        "lu": tf.linalg.lu(x)[0],
    }
    for name, result in eliminated.items():
        if place == (0, 0):
            with pytest.raises(tf.errors.InvalidArgumentError):
                run(result)
        else:
            found = run(result)
            assert np.isfinite(found[0]).all() and np.isnan(found[1]).any(), name
    if place == (0, 2):  # what is above the diagonal is not read
        np.testing.assert_array_equal(run(tf.self_adjoint_eigvals(x)), np.ones((2, 3)))
    else:
        with pytest.raises(tf.errors.InvalidArgumentError):
            run(tf.self_adjoint_eigvals(x))
    s, u, v = run(tf.svd(x))
    for part, whole in ((s, np.ones(3)), (np.abs(u), np.eye(3)), (np.abs(v), np.eye(3))):
        np.testing.assert_allclose(part[0], whole)
        assert np.isnan(part[1]).all()
    np.testing.assert_array_equal(run(tf.svd(x, compute_uv=False)), s)


def test_what_is_not_finite_reaches_as_far_as_in_tensorflow() -> None:
    """TensorFlow 2.21's answers."""
    nan, inf = np.nan, np.inf
    late = [[0.0, 0.0], [0.0, nan]]
    assert np.isnan(run(tf.matrix_determinant(late)))
    assert np.isnan(run(tf.linalg.slogdet(late))).all()
    sign, size = run(tf.linalg.slogdet([[0.0, 0.0], [0.0, inf]]))
    assert sign == 0 and np.isnan(size)
    assert np.isnan(run(tf.linalg.slogdet([[1.0, nan], [2.0, 3.0]]))).all()
    np.testing.assert_array_equal(run(tf.linalg.lu([[1.0, nan], [2.0, 3.0]])[0]), [[2, 3], [0.5, nan]])
    lower = run(tf.matrix_triangular_solve([[1.0, 2.0], [nan, 3.0]], np.ones((2, 1), np.float32)))
    np.testing.assert_array_equal(lower, [[1], [nan]])
    upper = run(tf.matrix_triangular_solve([[1.0, inf], [2.0, 3.0]], np.ones((2, 1), np.float32), lower=False))
    np.testing.assert_allclose(upper, [[-inf], [1 / 3]])
    assert np.isnan(run(tf.linalg.sqrtm([[1.0, inf], [2.0, 3.0]]))).all()
    np.testing.assert_array_equal(np.tril(run(tf.cholesky(np.full((2, 2), inf)))), [[inf, 0], [nan, nan]])
    assert np.isnan(run(tf.self_adjoint_eigvals([[nan]]))).all()
