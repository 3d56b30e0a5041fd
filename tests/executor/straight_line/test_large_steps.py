"""Errors of a step that is cut into functions say what those of a small step say."""

from __future__ import annotations

import graphdock as tf
import pytest
from graphdock_executor.step_program.printer import CHUNK


def message(statements: int) -> str:
    with tf.Graph().as_default():
        fed, n = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.int32, [2])
        x = fed
        for _ in range(statements):
            x = tf.tanh(x)
        y = tf.reshape(tf.boolean_mask(x, x > 0), n)
        with (
            tf.Session(config=tf.SessionConfig(fusion=False)) as session,
            pytest.raises(tf.errors.ShapeError) as caught,
        ):
            session.run(y, {fed: [1, 2, 3], n: [2, 2]})
    return str(caught.value).replace("\n", " ")


def test_a_shape_that_only_the_step_knows_is_refused_in_the_same_words() -> None:
    small, large = message(3), message(CHUNK + 3)
    assert "cannot reshape [3] (3 elements) to [2,2]" in small
    assert small == large
