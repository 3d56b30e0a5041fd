"""Samples of distributions through sessions: shapes, dtypes, seeds, arguments that are tensors, errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock_std.reference import sampling as oracle


@pytest.fixture(autouse=True)
def graph() -> Iterator[None]:
    """A graph without a seed of its own."""
    with tf.Graph().as_default():
        yield


def run(*fetches: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        values = session.run(list(fetches), feed)
    return values[0] if len(fetches) == 1 else values


def test_static_shapes() -> None:
    logits, count = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.int32, [])
    assert tf.multinomial(logits, 3).shape.as_list() == [None, 3]
    assert tf.multinomial(tf.zeros([2, 4]), count).shape.as_list() == [2, None]
    assert tf.random_gamma([3, 2], [1.0, 2.0]).shape.as_list() == [3, 2, 2]
    assert tf.random_gamma([], np.ones([4, 1]), np.ones(3)).shape.as_list() == [4, 3]
    assert tf.random_poisson([[1.0], [2.0]], [5]).shape.as_list() == [5, 2, 1]
    assert tf.random_poisson(3.0, tf.placeholder(tf.int32, [2])).shape.as_list() == [None, None]


def test_dtypes() -> None:
    logits = tf.zeros([1, 2])
    assert tf.multinomial(logits, 1).dtype == tf.int64
    assert tf.multinomial(logits, 1, output_dtype=tf.int32).dtype == tf.int32
    assert tf.random.categorical(logits, 1, tf.int32).dtype == tf.int32
    assert tf.random_poisson(2.0, [3], tf.int64).dtype == tf.int64
    assert run(tf.random_gamma([3], 1.0, dtype=tf.float16)).dtype == np.float16


def test_streams_go_on_and_are_those_of_the_spec() -> None:
    logits = np.array([[0.0, 1.0, 2.0]])
    drawn, rates = tf.multinomial(logits, 4, seed=5), tf.random_poisson([3.0, 30.0], [2], tf.float64, seed=6)
    with tf.Session() as session:
        for ordinal in range(3):
            got = session.run([drawn, rates])
            key = (87654321, 5)
            np.testing.assert_array_equal(
                got[0], oracle.multinomial(logits, 4, np.int64, key=key, counter=(ordinal, 0))
            )
            want = oracle.random_poisson(
                [2], np.array([3.0, 30.0]), np.float64, key=(87654321, 6), counter=(ordinal, 0)
            )
            np.testing.assert_array_equal(got[1], want)


def test_a_number_does_not_depend_on_its_neighbours() -> None:
    """Element i of n numbers has blocks of its own, whatever was rejected before it."""
    one, other = (tf.random_gamma([], [a, 2.0, 0.5], seed=3) for a in (1.0, 50.0))
    first, second = run(one, other)
    np.testing.assert_array_equal(first[1:], second[1:])


def test_stateless_draws_depend_on_the_seed_alone() -> None:
    seed = tf.placeholder(tf.int64, [2])
    drawn = tf.random.stateless_normal([4], seed)
    with tf.Session() as session:
        first, again = (session.run(drawn, {seed: [1, 2]}) for _ in range(2))
        other = session.run(drawn, {seed: [1, 3]})
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(drawn, {seed: [1, 2]}), first)


def test_a_gradient_flows_to_beta() -> None:
    beta = tf.constant([2.0, 4.0])
    draws = tf.random_gamma([3], 5.0, beta, seed=1)
    (slope,) = tf.gradients(draws, beta)
    values, by_beta = run(draws, slope)
    np.testing.assert_allclose(by_beta, (-values / [2.0, 4.0]).sum(0), rtol=1e-5)


def test_errors() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="rank 2"):
        tf.multinomial([1.0, 2.0], 1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="negative"):
        tf.multinomial([[1.0, 2.0]], -1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="row 1 of logits has no class"):
        run(tf.multinomial([[1.0, 2.0], [-np.inf, np.nan]], 1))
    count = tf.placeholder(tf.int32, [])
    with pytest.raises(tf.errors.InvalidArgumentError, match="negative"):
        run(tf.multinomial([[1.0, 2.0]], count), feed={count: -2})
    with pytest.raises(tf.errors.InvalidArgumentError, match="needs maxval"):
        tf.random.stateless_uniform([2], [1, 2], dtype=tf.int32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="seed"):
        tf.random.stateless_uniform([2], [1, 2, 3])


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float32, tf.float64])
@pytest.mark.parametrize("beta", [None, 2.0])
def test_gamma_numbers_of_small_shapes_are_positive(dtype, beta):
    draws = run(tf.random_gamma([2000], 0.001, beta, dtype, seed=1)).astype(np.float64)
    assert (draws > 0).all() and draws.min() == float(dtype.as_numpy_dtype(tf.as_dtype(dtype)._limits().tiny))


def test_distributions_of_small_concentrations_are_drawn():
    c, d = np.full(3, 1e-4, np.float32), tf.distributions
    drawn = run(
        [
            d.Dirichlet(c).sample(200, 1),
            d.Beta(1e-4, 1e-4).sample(200, 1),
            d.DirichletMultinomial(4.0, c).sample(200, 1),
        ]
    )
    assert all(np.isfinite(v).all() for v in drawn)
    np.testing.assert_allclose(drawn[0].sum(-1), 1, rtol=1e-5)
    assert (drawn[2].sum(-1) == 4).all()
