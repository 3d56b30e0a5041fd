"""Ops that move elements or check shapes, with the values that TensorFlow gives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import InvalidArgumentError, ShapeError


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def run(fetches: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        return session.run(fetches, feed)


def test_reverse_sequence_under_old_and_new_names() -> None:
    x = [[1, 2, 3], [4, 5, 6]]
    new = tf.reverse_sequence(x, [2, 3], seq_axis=1, batch_axis=0)
    old = tf.reverse_sequence(x, [2, 3], seq_dim=1, batch_dim=0)
    assert run([new, old])[0].tolist() == run(old).tolist() == [[2, 1, 3], [6, 5, 4]]
    with pytest.raises(InvalidArgumentError, match="both were given"):
        tf.reverse_sequence(x, [2, 3], seq_axis=1, seq_dim=1)


def test_roll_and_its_gradient() -> None:
    x, shift = tf.constant([1.0, 2.0, 3.0]), tf.placeholder(tf.int32, [])
    y = tf.roll(x, shift, 0)
    found = run(
        [y, tf.gradients(y * [1.0, 2.0, 3.0], x)[0], tf.manip.roll([[1, 2], [3, 4]], [1, 1], [0, 1])], {shift: -5}
    )
    assert [f.tolist() for f in found] == [[3, 1, 2], [2, 3, 1], [[4, 3], [2, 1]]]


def test_unravel_index() -> None:
    assert run(tf.unravel_index([2, 5, 7], [3, 3])).tolist() == [[0, 1, 2], [2, 2, 1]]
    assert run(tf.unravel_index(22, [2, 3, 4])).tolist() == [1, 2, 2]


def test_shapes_that_broadcast() -> None:
    assert tf.broadcast_static_shape([2, 1], [3]).as_list() == [2, 3]
    shape = tf.broadcast_dynamic_shape(tf.shape(tf.zeros([2, 1])), [3])
    assert tf.zeros(shape).shape.as_list() == [2, 3]
    assert run(shape).tolist() == [2, 3]
    with pytest.raises(ShapeError):
        tf.broadcast_static_shape([2], [3])


def test_ensure_shape() -> None:
    x = tf.placeholder(tf.float32)
    y = tf.ensure_shape(x, [None, 2])
    assert y.shape.as_list() == [None, 2]
    assert run(y, {x: np.ones((3, 2))}).shape == (3, 2)
    with pytest.raises((ShapeError, InvalidArgumentError), match=r"\[3,3\] does not have the shape \[\?,2\]"):
        run(y, {x: np.ones((3, 3))})
    with pytest.raises(ShapeError):
        tf.ensure_shape(tf.zeros([3]), [4])


def test_cumprod() -> None:
    x = tf.constant([2.0, 3.0, 4.0])
    found = run(
        [tf.cumprod(x), tf.math.cumprod(x, exclusive=True), tf.cumprod(x, reverse=True), tf.cumprod(x, 0, True, True)]
    )
    assert [f.tolist() for f in found] == [[2, 6, 24], [1, 2, 6], [24, 12, 4], [12, 4, 1]]


def test_the_gradient_of_cumprod_at_a_zero() -> None:
    x = tf.constant([2.0, 0.0, 3.0])
    (dx,) = tf.gradients(tf.cumprod(x), x)
    found = run([dx, tf.gradients(dx, x)[0]])
    # x + xy + xyz at (2, 0, 3), and the sums of the rows of its hessian
    assert [f.tolist() for f in found] == [[1, 8, 0], [4, 6, 2]]


def test_what_hands_tensors_on() -> None:
    shapes = tf.shape_n([tf.zeros([2]), tf.zeros([3, 1])], out_type=tf.int64)
    found = run([*shapes, tf.guarantee_const([1, 2]), tf.parallel_stack([[1], [2]])])
    assert [f.tolist() for f in found] == [[2], [3, 1], [1, 2], [[1], [2]]]
