"""Random ops draw what the cpu draws: long streams, later steps, loops, sorts and searches of more than one block."""

from __future__ import annotations

from typing import Any

import graphdock as tf
import numpy as np
import pytest


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_uniform_streams_agree_to_the_bit(on_both: Any, dtype: str) -> None:
    ((got, expected),) = on_both(lambda: tf.random_uniform([3, 777], dtype=getattr(tf, dtype), seed=5), steps=3)
    assert got.tobytes() == expected.tobytes()


def test_integers_agree_to_the_bit(on_both: Any) -> None:
    def make() -> Any:
        return (
            tf.random_uniform([1025], -3, 1000, tf.int32, seed=1),
            tf.random_uniform([1025], -(2**62), 2**62, tf.int64, seed=2),
        )

    for got, expected in on_both(make, steps=2):
        assert np.array_equal(got, expected)


def test_normal_streams_agree(on_both: Any) -> None:
    def make() -> Any:
        return tf.random_normal([5001], seed=3), tf.truncated_normal([5001], dtype=tf.float64, seed=4)

    for got, expected in on_both(make, steps=2):
        assert np.allclose(got, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("rows", [2, 5000])
def test_shuffles_agree(on_both: Any, rows: int) -> None:
    x = np.arange(rows * 3, dtype=np.int16).reshape(rows, 3)
    ((got, expected),) = on_both(lambda x: tf.random_shuffle(x, seed=9), x, steps=2)
    assert np.array_equal(got, expected)


def test_a_loop_draws_other_numbers_in_each_iteration(on_both: Any) -> None:
    def make() -> Any:
        def body(i: Any, total: Any) -> Any:
            return i + 1, total + tf.random_uniform([33], seed=7)

        return tf.while_loop(lambda i, _: i < 4, body, [tf.constant(0), tf.zeros([33])])[1]

    ((got, expected),) = on_both(make)
    assert np.allclose(got, expected, rtol=1e-6)


def test_each_op_of_a_step_reads_its_own_ordinal(kit: Any) -> None:
    """Two ops of a step have run in different numbers of steps before it."""
    with tf.Graph(host=kit.host).as_default() as graph:
        a, b = tf.random_uniform([5], seed=1), tf.random_uniform([5], seed=2)
        found = []
        for backends in (("cuda", "cpu"), ("cpu",)):
            with tf.Session(graph=graph, config=tf.SessionConfig(backends=backends)) as session:
                session.run(a), session.run(a)
                found.append(session.run([a, b]))
    assert np.array_equal(found[0], found[1])


def test_classes_of_long_rows(on_both: Any) -> None:
    logits = np.random.default_rng(1).normal(size=(3, 700)).astype(np.float32)
    ((got, expected),) = on_both(lambda x: tf.multinomial(x, 400, seed=2), logits)
    assert (got == expected).mean() > 0.999


def test_unique_candidates_of_several_rounds(on_both: Any) -> None:
    true = np.array([[0], [299]], np.int64)

    def make(true: Any) -> Any:
        return tf.nn.log_uniform_candidate_sampler(true, 1, 280, True, 300, seed=6)

    (drawn, expected), *counts = on_both(make, true)
    assert np.array_equal(drawn, expected)
    for got, wanted in counts:
        assert np.allclose(got, wanted, rtol=1e-6)
