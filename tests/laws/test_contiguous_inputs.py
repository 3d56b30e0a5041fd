"""Contiguous inputs: debug mode sees that kernels get them row by row where they were told so, whatever made the value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphdock as tf
import numpy as np
import pytest

Build = Callable[[Any], Any]


def _flat(x: Any) -> Any:
    return tf.reshape(x, [-1])


def _turned(x: Any) -> Any:
    """Make a value whose elements NumPy leaves column by column."""
    return tf.exp(tf.transpose(x))


def _loop(x: Any) -> Any:
    unknown = [tf.TensorShape([]), tf.TensorShape([None, None])]
    body = lambda i, v: [i + 1, _turned(v) / 50.0]  # noqa: E731 - as users write it
    return tf.while_loop(lambda i, v: i < 2, body, [0, x], shape_invariants=unknown)[1]


def _variable(x: Any) -> Any:
    v = tf.get_variable("v", initializer=tf.zeros([1, 1]), validate_shape=False)
    with tf.control_dependencies([tf.assign(v, x, validate_shape=False)]):
        return _flat(v.read_value())


def _array(x: Any) -> Any:
    return tf.TensorArray(tf.float32, 2, infer_shape=False).write(0, x).write(1, x).stack()


def _queue(x: Any) -> Any:
    q = tf.FIFOQueue(1, tf.float32)
    with tf.control_dependencies([q.enqueue(x)]):
        return _flat(q.dequeue())


def _kept_of_a_branch(x: Any) -> Any:
    """A view that a branch within a loop leaves for the gradient's loop."""
    branch = lambda i, v: tf.cond(i > 0, lambda: tf.tanh(tf.reverse(v, [0]) * v), lambda: v * 2.0)  # noqa: E731
    unknown = [tf.TensorShape([]), tf.TensorShape([None, None])]
    y = tf.while_loop(lambda i, v: i < 3, lambda i, v: [i + 1, branch(i, v)], [0, x], shape_invariants=unknown)[1]
    return tf.gradients(y, x)[0]


PROGRAMS: dict[str, Build] = {
    "fetched": lambda x: x,
    "reshaped": _flat,
    "softmax": tf.nn.softmax,
    "gathered": lambda x: tf.gather(x, [0]),
    "summed by rows": lambda x: tf.cumsum(x, 1),
    "selected": lambda x: _flat(tf.where(x > 1, x, x * 2)),
    "carried by a loop": _loop,
    "differentiated through a loop": lambda x: tf.gradients(_loop(x), x)[0],
    "kept of a branch for a gradient": _kept_of_a_branch,
    "left by a branch": lambda x: _flat(tf.cond(tf.shape(x)[0] > 0, lambda: _turned(x), lambda: x)),
    "handed through a branch": lambda x: _flat(tf.cond(tf.shape(x)[0] > 0, lambda: x, lambda: x + 1)),
    "kept in a TensorArray": _array,
    "mapped": lambda x: tf.map_fn(tf.exp, x),
    "kept in a variable": _variable,
    "through a queue": _queue,
    "given to Python": lambda x: tf.py_func(lambda a: np.array(a.flags.c_contiguous), [x], tf.bool),
}


@pytest.mark.modes
@pytest.mark.parametrize("executor", ["auto", "dataflow"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_plan_for_any_shape(name: str, executor: str) -> None:
    a = np.arange(6, dtype=np.float32).reshape(2, 3) / 4
    results = []
    for policy in ("exact", "generic"):
        with tf.Graph().as_default():
            x = tf.placeholder(tf.float32, [None, None])
            fetch = PROGRAMS[name](_turned(x))
            config = tf.SessionConfig(shape_policy=policy, debug=True, executor=executor)
            with tf.Session(config=config) as session:
                session.run(tf.global_variables_initializer())
                results += [session.run(fetch, {x: a}) for _ in range(2)]
    for result in results:
        assert np.asarray(result).flags.c_contiguous
        np.testing.assert_allclose(result, results[0], rtol=1e-6)


def test_elements_that_a_map_makes_of_many_shapes_are_contiguous() -> None:
    """After eight shapes the function has one plan for any."""
    rows = [np.ones((2 + i, 3), np.float32) for i in range(10)]
    dataset = tf.data.Dataset.from_generator(lambda: iter(rows), tf.float32, [None, 3]).map(_turned)
    element = dataset.make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert all(session.run(element).flags.c_contiguous for _ in rows)
