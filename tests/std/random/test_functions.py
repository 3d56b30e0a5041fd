"""tf.random through sessions: seeds, streams that go on, loops, and the initializers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock_std.reference import random as oracle


def draws(build: Callable[[], Any], steps: int = 1, seed: int | None = None) -> list[Any]:
    with tf.Graph().as_default():
        tf.set_random_seed(seed)
        fetch = build()
        with tf.Session() as session:
            return [session.run(fetch) for _ in range(steps)]


def same(a: Any, b: Any) -> bool:
    return np.array_equal(np.asarray(a), np.asarray(b))


def uniform() -> Any:
    return tf.random_uniform([4])


def test_the_same_seed_draws_the_same_stream() -> None:
    assert same(draws(uniform, 3, seed=1), draws(uniform, 3, seed=1))
    assert not same(draws(uniform, 3, seed=1), draws(uniform, 3, seed=2))
    first, second = draws(uniform, 2, seed=1)
    assert not same(first, second)


def test_without_a_seed_each_session_draws_its_own() -> None:
    assert not same(draws(uniform), draws(uniform))


def test_an_op_seed_alone_is_enough_and_ops_of_a_graph_differ() -> None:
    assert same(draws(lambda: tf.random_normal([3], seed=7)), draws(lambda: tf.random_normal([3], seed=7)))
    a, b = draws(lambda: [tf.random_uniform([4]), tf.random_uniform([4])], seed=3)[0]
    assert not same(a, b)


def test_seeds_are_tensorflows() -> None:
    with tf.Graph().as_default():
        assert tf.get_seed(None) == (None, None)
        assert tf.get_seed(5) == (87654321, 5)
        tf.set_random_seed(9)
        assert tf.get_seed(5) == (9, 5)
        first, second = tf.get_seed(None), tf.get_seed(None)
        assert first[0] == 9 and first != second
        tf.set_random_seed(0)
        assert tf.get_seed(0) == (0, 2**31 - 1)


def test_the_stream_of_a_session_is_that_of_the_spec() -> None:
    got = draws(lambda: tf.random_uniform([2, 3], seed=5), 3, seed=11)
    for ordinal, values in enumerate(got):
        np.testing.assert_array_equal(
            values, oracle.random_uniform([2, 3], np.float32, key=(11, 5), counter=(ordinal, 0))
        )


def test_the_stream_goes_on_where_another_plan_is_made() -> None:
    with tf.Graph().as_default():
        size = tf.placeholder(tf.int32, [1])
        fetch = tf.random_uniform(size, seed=5)
        other = tf.reduce_sum(fetch)
        tf.set_random_seed(2)
        with tf.Session() as session:
            sizes = [2, 5, 2, 3]
            got = [session.run(fetch if i % 2 else [fetch, other], {size: [n]}) for i, n in enumerate(sizes)]
    for ordinal, (n, values) in enumerate(zip(sizes, got, strict=True)):
        values = values if ordinal % 2 else values[0]
        np.testing.assert_array_equal(
            values, oracle.random_uniform([n], np.float32, key=(87654321, 5), counter=(ordinal, 0))
        )


def test_each_iteration_of_a_loop_draws_anew() -> None:
    def build() -> Any:
        def body(i: Any, total: Any) -> Any:
            return i + 1, total + tf.random_uniform([3], seed=4, dtype=tf.float64)

        return tf.while_loop(lambda i, _: i < 4, body, [0, tf.zeros([3], tf.float64)])[1]

    first, second = draws(build, 2, seed=6)
    for ordinal, got in enumerate((first, second)):
        parts = [oracle.random_uniform([3], np.float64, key=(6, 4), counter=(ordinal, i)) for i in range(4)]
        np.testing.assert_allclose(got, np.sum(parts, 0), rtol=1e-15)


def test_ranges_and_dtypes() -> None:
    values = draws(lambda: tf.random_uniform([1000], -3.0, 5.0, tf.float64, seed=1))[0]
    assert values.dtype == np.float64 and values.min() >= -3 and values.max() < 5 and values.std() > 2
    values = draws(lambda: tf.random_uniform([1000], 2, 6, tf.int32, seed=1))[0]
    assert values.dtype == np.int32 and set(values) == {2, 3, 4, 5}
    values = draws(lambda: tf.random_normal([2000], 10.0, 0.5, seed=1))[0]
    assert abs(values.mean() - 10) < 0.1 and abs(values.std() - 0.5) < 0.05
    values = draws(lambda: tf.truncated_normal([2000], 1.0, 3.0, seed=1))[0]
    assert values.min() >= -5.0 and values.max() <= 7.0
    values = draws(lambda: tf.random_shuffle(tf.constant(np.arange(50)), seed=1))[0]
    assert sorted(values) == list(range(50)) and not same(values, np.arange(50))
    values = draws(lambda: tf.random_uniform(tf.shape(tf.zeros([2, 0, 3]))))[0]
    assert values.shape == (2, 0, 3)


def test_tensors_as_bounds() -> None:
    values = draws(lambda: tf.random_uniform([500], tf.constant(1.0), tf.constant(2.0), seed=1))[0]
    assert values.min() >= 1 and values.max() < 2
    values = draws(lambda: tf.random_normal([500, 2], mean=[0.0, 100.0], seed=1))[0]
    assert abs(values[:, 1].mean() - 100) < 1


def test_static_shapes_and_errors() -> None:
    with tf.Graph().as_default():
        assert tf.random_uniform([3, 4]).shape.as_list() == [3, 4]
        n = tf.placeholder(tf.int32, [])
        assert tf.random_normal([n, 4]).shape.as_list() == [None, 4]
        with pytest.raises(tf.errors.InvalidArgumentError, match="maxval"):
            tf.random_uniform([3], dtype=tf.int32)
        with pytest.raises(tf.errors.InvalidArgumentError, match="negative"):
            tf.random_uniform([3, -1])
        with pytest.raises(tf.errors.InvalidArgumentError, match="unknown"):
            tf.random_uniform([3, None])


INITIALIZERS = {
    "zeros_initializer": lambda v: (v == 0).all(),
    "ones_initializer": lambda v: (v == 1).all(),
    "random_uniform_initializer": lambda v: v.min() >= 0 and v.max() < 1 and v.std() > 0.2,
    "random_normal_initializer": lambda v: abs(v.std() - 1) < 0.1,
    "truncated_normal_initializer": lambda v: np.abs(v).max() <= 2,
    "glorot_uniform_initializer": lambda v: np.abs(v).max() <= np.sqrt(6 / 150) and abs(v.var() - 2 / 150) < 2e-3,
    "glorot_normal_initializer": lambda v: abs(v.var() - 2 / 150) < 2e-3,
    "variance_scaling_initializer": lambda v: abs(v.var() - 1 / 50) < 2e-3,
}


@pytest.mark.parametrize("name", INITIALIZERS)
def test_initializers(name: str) -> None:
    value = draws(lambda: getattr(tf, name)()([50, 100]), seed=3)[0]
    assert value.dtype == np.float32 and value.shape == (50, 100) and INITIALIZERS[name](value)
    assert draws(lambda: getattr(tf, name)(dtype=tf.float64)([2, 3]))[0].dtype == np.float64
    assert draws(lambda: getattr(tf, name)()([2, 3], dtype=tf.float16))[0].dtype == np.float16


def test_he_and_namespaced_initializers() -> None:
    assert abs(draws(lambda: tf.initializers.he_normal(seed=1)([50, 100]))[0].var() - 2 / 50) < 4e-3
    assert np.abs(draws(lambda: tf.initializers.he_uniform(seed=1)([3, 3, 8, 100]))[0]).max() <= np.sqrt(6 / 72)


def test_constant_initializer() -> None:
    assert same(draws(lambda: tf.constant_initializer(2.5)([2]))[0], [2.5, 2.5])
    assert same(draws(lambda: tf.constant_initializer([[1, 2], [3, 4]])([4], tf.int32))[0], [1, 2, 3, 4])
    assert same(draws(lambda: tf.constant_initializer([1, 2])([2, 2], tf.int32))[0], [[1, 2], [2, 2]])
    with tf.Graph().as_default():
        with pytest.raises(tf.errors.InvalidArgumentError, match="4 values"):
            tf.constant_initializer([1, 2, 3, 4, 5])([2, 2])
        with pytest.raises(tf.errors.ShapeError):
            tf.constant_initializer([1, 2, 3, 4], verify_shape=True)([2, 2])


def test_initializers_of_scale() -> None:
    value = draws(lambda: tf.uniform_unit_scaling_initializer(1.5, seed=1)([3, 4, 100]))[0]
    assert 0.95 * 1.5 * 0.5 < np.abs(value).max() <= 1.5 * 0.5
    assert abs(draws(lambda: tf.initializers.lecun_normal(seed=1)([50, 100]))[0].var() - 1 / 50) < 2e-3
    assert np.abs(draws(lambda: tf.initializers.lecun_uniform(seed=1)([50, 100]))[0]).max() <= np.sqrt(3 / 50)


def test_identities() -> None:
    assert same(draws(lambda: tf.initializers.identity(2.0)([2, 3]))[0], [[2, 0, 0], [0, 2, 0]])
    with tf.Graph().as_default(), pytest.raises(tf.errors.InvalidArgumentError, match="rank 2"):
        tf.initializers.identity()([3])


@pytest.mark.parametrize("shape", [[4, 4], [6, 3], [3, 6], [2, 2, 3, 5]])
def test_orthogonal_initializers(shape: list[int]) -> None:
    value = draws(lambda: tf.orthogonal_initializer(2.0, seed=1, dtype=tf.float64)(shape))[0].reshape(-1, shape[-1])
    gram = value.T @ value if value.shape[0] >= value.shape[1] else value @ value.T
    np.testing.assert_allclose(gram, 4 * np.eye(len(gram)), atol=1e-12)
    with tf.Graph().as_default(), pytest.raises(tf.errors.InvalidArgumentError, match="rank 2"):
        tf.orthogonal_initializer()([3])


def test_variance_scaling_rejects_unknown_words() -> None:
    for arguments in ({"mode": "fan"}, {"distribution": "cauchy"}, {"scale": 0.0}):
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.variance_scaling_initializer(**arguments)


def test_a_variable_is_initialized_once() -> None:
    with tf.Graph().as_default():
        w = tf.Variable(tf.random_uniform([5]))
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            assert same(session.run(w), session.run(w))
