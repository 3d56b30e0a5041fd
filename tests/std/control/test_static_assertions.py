"""Assertions about ranks, dtypes, initialisation and finiteness, as TensorFlow 1's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import graphdock as tf
import numpy as np
import pytest


@pytest.fixture(autouse=True)
def graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


@pytest.mark.parametrize(
    ("assertion", "rank", "good", "bad"),
    [
        (tf.assert_rank, 2, [(2, 3)], [(), (4,), (1, 1, 1)]),
        (tf.assert_rank_at_least, 1, [(4,), (2, 3)], [()]),
        (tf.assert_rank_in, [0, 2], [(), (2, 3)], [(3,), (1, 1, 1)]),
    ],
)
def test_ranks(assertion: Any, rank: Any, good: list[Any], bad: list[Any]) -> None:
    x = tf.placeholder(tf.float32)
    with tf.control_dependencies([assertion(x, rank, message="my input")]):
        after = tf.constant(1)
    with tf.Session() as session:
        for shape in good:
            assert session.run(after, {x: np.ones(shape)}) == 1
            assert isinstance(assertion(tf.ones(shape), rank), tf.Operation)
        for shape in bad:
            with pytest.raises(tf.errors.InvalidArgumentError, match="my input"):
                session.run(after, {x: np.ones(shape)})
            with pytest.raises(ValueError, match="my input.*another rank"):
                assertion(tf.ones(shape), rank, message="my input")


def test_a_rank_is_an_integer_and_may_be_fed() -> None:
    with pytest.raises(TypeError, match="integer"):
        tf.assert_rank(tf.ones([2]), 1.5)
    with pytest.raises(ValueError, match="scalar"):
        tf.assert_rank(tf.ones([2]), tf.constant([1, 2]))
    rank = tf.placeholder(tf.int64, [])
    with tf.control_dependencies([tf.assert_rank(tf.ones([2]), rank)]):
        after = tf.constant(1)
    with tf.Session() as session:
        assert session.run(after, {rank: 1}) == 1
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(after, {rank: 2})


def test_types() -> None:
    assert isinstance(tf.assert_integer(tf.constant(1)), tf.Operation)
    assert isinstance(tf.assert_type(tf.constant(1.0), tf.float32), tf.Operation)
    for wrong in (
        lambda: tf.assert_integer(tf.constant(1.0), message="mine"),
        lambda: tf.assert_type(1.0, "int32", "mine"),
    ):
        with pytest.raises(TypeError, match="mine"):
            wrong()
    one = tf.constant(1)
    assert tf.assert_scalar(one) is one
    with pytest.raises(ValueError, match="scalar"):
        tf.assert_scalar([1, 2])
    for wrong_list in (one, np.ones(2), "abc", b"abc", 3):
        with pytest.raises(TypeError):
            tf.assert_proper_iterable(wrong_list)
    tf.assert_proper_iterable([one])
    tf.assert_proper_iterable(x for x in (one,))


def test_variables_without_values_are_named() -> None:
    assert tf.assert_variables_initialized() is None
    v, w = tf.Variable(1.0, name="first"), tf.Variable(2.0, name="second")
    ready = tf.assert_variables_initialized()
    with tf.Session() as session:
        session.run(v.initializer)
        with pytest.raises(tf.errors.FailedPreconditionError, match="second"):
            session.run(ready)
        session.run(w.initializer)
        session.run(ready)


def test_finiteness() -> None:
    x = tf.placeholder(tf.float32, [None])
    old, new = tf.verify_tensor_all_finite(x, "bad weights"), tf.debugging.assert_all_finite(x=x, message="bad weights")
    with tf.Session() as session:
        for checked in (old, new):
            assert session.run(checked, {x: [1.0]}).tolist() == [1.0]
            for wrong in (np.inf, np.nan):
                with pytest.raises(tf.errors.InvalidArgumentError, match="bad weights"):
                    session.run(checked, {x: [wrong]})
    with pytest.raises(ValueError, match="newer names"):
        tf.verify_tensor_all_finite(x, "m", x=x)


def test_all_tensors_are_checked() -> None:
    x = tf.placeholder(tf.float32, [])
    y = tf.log(x, name="wrong")
    tf.cast(y, tf.int32)
    check = tf.add_check_numerics_ops()
    with tf.Session() as session:
        assert session.run([check, y], {x: 1.0}) == [None, 0.0]
        with pytest.raises(tf.errors.InvalidArgumentError, match="wrong:0"):
            session.run([check, y], {x: 0.0})


def test_print_counts(capsys: Any) -> None:
    x = tf.placeholder(tf.float32, [])
    shown = tf.Print(x, [x], "x is ", 2)
    with tf.Session() as session:
        assert [session.run(shown, {x: v}) for v in (1.0, 2.0, 3.0)] == [1.0, 2.0, 3.0]
    assert capsys.readouterr().err.splitlines() == ["x is [1.0]", "x is [2.0]"]


def test_the_floating_dtype_of_all() -> None:
    a, b = tf.constant(1.0), tf.constant(1.0, tf.float64)
    assert tf.assert_same_float_dtype([a, tf.placeholder(tf.float32)]) == tf.float32
    assert tf.assert_same_float_dtype([b]) == tf.float64 == tf.assert_same_float_dtype(dtype=tf.float64)
    assert tf.assert_same_float_dtype() == tf.float32
    for tensors, dtype, words in (
        ([a, b], None, "float64"),
        ([a], tf.float64, "float32"),
        ([tf.constant(1)], None, "int32"),
    ):
        with pytest.raises((ValueError, TypeError), match=words):
            tf.assert_same_float_dtype(tensors, dtype)
