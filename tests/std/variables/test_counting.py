"""A counter gives its value, grows, and ends with OutOfRangeError, as TensorFlow 1's."""

from __future__ import annotations

import graphdock as tf
import pytest


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_it_counts_up_to_its_limit(dtype: str) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable(0, dtype=dtype)
        count = tf.count_up_to(v, 3)
        assert count.dtype.name == dtype
        session.run(v.initializer)
        assert [session.run(count) for _ in range(3)] == [0, 1, 2]
        for _ in range(2):
            with pytest.raises(tf.errors.OutOfRangeError, match="limit of 3"):
                session.run(count)
        assert session.run(v) == 3


@pytest.mark.parametrize("executor", ["straight_line", "dataflow"])
@pytest.mark.parametrize("debug", [False, True])
def test_in_expressions_and_loops(executor: str, debug: bool) -> None:
    with tf.Graph().as_default(), tf.Session(config=tf.SessionConfig(executor=executor, debug=debug)) as session:
        v = tf.Variable(0)
        scaled = v.count_up_to(6) * 2 + 1
        total = tf.while_loop(lambda i, _: i < 5, lambda i, t: (i + 1, t + v.count_up_to(6)), [0, 0])[1]
        session.run(v.initializer)
        assert session.run([scaled, v.read_value()]) == [1, 1]
        assert session.run(total) == 1 + 2 + 3 + 4 + 5
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(total)
        assert session.run(v) == 6


def test_what_cannot_count_is_refused() -> None:
    with tf.Graph().as_default():
        with pytest.raises(TypeError, match="int32 or int64"):
            tf.count_up_to(tf.Variable(0.0), 3)
        with pytest.raises(ValueError, match="scalar"):
            tf.count_up_to(tf.Variable([0]), 3)
        with pytest.raises(ValueError, match="Variable"):
            tf.count_up_to(tf.constant(0), 3)
