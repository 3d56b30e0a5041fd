"""matmul's arguments, matvec, and norms of vectors and matrices against NumPy."""

from __future__ import annotations

import itertools
from typing import Any

import graphdock as tf
import numpy as np
import pytest


def run(value: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        return session.run(value, feed)


def draw(shape: tuple[int, ...], dtype: Any = np.float64, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=shape)
    return (values + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else values).astype(dtype)


def turned(x: np.ndarray, transpose: bool, adjoint: bool) -> np.ndarray:
    return x.swapaxes(-1, -2).conj() if adjoint else x.swapaxes(-1, -2) if transpose else x


MODES = [(False, False), (True, False), (False, True)]


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
@pytest.mark.parametrize(("left", "right"), list(itertools.product(MODES, MODES)))
def test_transposed_and_adjoint(dtype: Any, left: tuple[bool, bool], right: tuple[bool, bool]) -> None:
    a = draw((2, 4, 3) if any(left) else (2, 3, 4), dtype)
    b = draw((5, 4) if any(right) else (4, 5), dtype, 1)
    with tf.Graph().as_default():
        y = tf.matmul(a, b, left[0], right[0], left[1], right[1], True, False, "product")
        assert y.name == "product:0"
        result = run(y)
    np.testing.assert_allclose(result, turned(a, *left) @ turned(b, *right), rtol=1e-5, atol=1e-5)


def test_numbers_take_the_dtype_of_the_tensor_beside_them() -> None:
    b = tf.constant(np.eye(2))
    assert tf.matmul([[1.0, 2.0]], b).dtype == tf.matmul(b, [[1.0], [2.0]]).dtype == tf.float64


def test_either_transposed_or_adjoint() -> None:
    with pytest.raises(ValueError, match="transposed or adjoint"):
        tf.matmul([[1.0]], [[1.0]], transpose_a=True, adjoint_a=True)


def test_matvec() -> None:
    a, b = draw((3, 2, 4)), draw((4,), seed=1)
    np.testing.assert_allclose(run(tf.linalg.matvec(a, b)), a @ b)
    c = draw((3, 2), seed=2)
    np.testing.assert_allclose(
        run(tf.linalg.matvec(a, c, adjoint_a=True)), (a.swapaxes(-1, -2) @ c[..., None])[..., 0], rtol=1e-12
    )


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("order", ["euclidean", "fro", 1, 2, np.inf])
@pytest.mark.parametrize("axis", [(0, 1), (1, 0), [-1, 0], (2, 1)])
def test_matrix_norms(order: Any, axis: Any, keep: bool) -> None:
    x = draw((3, 4, 5))
    want = np.linalg.norm(x, "fro" if order == "euclidean" else order, tuple(axis), keepdims=keep)
    np.testing.assert_allclose(run(tf.norm(x, order, axis, keep)), want, rtol=1e-12)


@pytest.mark.parametrize("order", ["euclidean", 1, 2, np.inf, 0.5, 3])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_vector_norms(order: Any, axis: Any) -> None:
    x = draw((3, 4, 5))
    flat = x.reshape(-1) if axis is None else x
    want = np.linalg.norm(flat, 2 if order == "euclidean" else order, 0 if axis is None else axis)
    np.testing.assert_allclose(run(tf.norm(x, order, axis)), want, rtol=1e-12)


@pytest.mark.parametrize(
    ("order", "axis"),
    [("fro", None), ("fro", 1), (0, None), (-1, 0), (3, (0, 1)), ("nuc", (0, 1)), (2, (0, 0)), (2, (0, 1, 2))],
)
def test_norms_that_tensorflow_refuses(order: Any, axis: Any) -> None:
    with pytest.raises(ValueError):
        tf.norm(np.ones((2, 3, 4)), order, axis)


@pytest.mark.parametrize("axis", [[1], (1,), [[1]], [[0, 1]], ([0], [1]), [], [0.0, 1.0], np.array([0, 1])])
def test_axes_that_tensorflow_refuses(axis: Any) -> None:
    with pytest.raises(ValueError, match="tuple of 2 unique integers"):
        tf.norm(np.ones((2, 3)), 1, axis)
    with pytest.raises(ValueError, match="tuple of 2 unique integers"):
        tf.norm(np.ones((2, 3)), 1, tf.constant([0, 1]))


def test_keep_dims_is_the_old_name() -> None:
    assert tf.norm(np.ones((2, 3)), axis=1, keep_dims=True).shape.as_list() == [2, 1]
    with pytest.raises(ValueError, match="same argument"):
        tf.norm(np.ones(2), keepdims=True, keep_dims=True)


def test_a_spectral_norm_of_a_batch_whose_size_is_fed() -> None:
    x = draw((2, 3, 4))
    fed = tf.placeholder(tf.float64, [None, 3, 4])
    np.testing.assert_allclose(
        run(tf.norm(fed, 2, (1, 2)), {fed: x}), np.linalg.svd(x, compute_uv=False)[:, 0], rtol=1e-12
    )


def test_normalize() -> None:
    x = draw((3, 4))
    unit, size = run(tf.linalg.normalize(x, axis=1))
    np.testing.assert_allclose(size[:, 0], np.linalg.norm(x, axis=1), rtol=1e-12)
    np.testing.assert_allclose(unit * size, x, rtol=1e-12)
