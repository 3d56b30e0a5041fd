"""map_fn, scan, foldl, foldr: values against NumPy and TensorFlow's documented answers, gradients against differences."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import DTypeError, InvalidArgumentError, ShapeError

E = np.arange(1, 7)


@pytest.fixture(autouse=True)
def sess():
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def lists(value):
    """Arrays as lists, in the structure they stand in."""
    if isinstance(value, dict):
        return {k: lists(v) for k, v in value.items()}
    return tuple(map(lists, value)) if isinstance(value, tuple) else value.tolist()


def test_tensorflow_s_own_examples(sess) -> None:
    found = sess.run(
        [
            tf.map_fn(lambda x: x * x, E),
            tf.map_fn(lambda x: x[0] * x[1], (np.array([1, 2, 3]), np.array([-1, 1, -1])), dtype=tf.int64),
            tf.map_fn(lambda x: (x, -x), np.array([1, 2, 3]), dtype=(tf.int64, tf.int64)),
            tf.scan(lambda a, x: a + x, E),
            tf.scan(lambda a, x: a + x, E, reverse=True),
            tf.scan(
                lambda a, x: x[0] - x[1] + a,
                (np.array([1, 2, 3]), np.array([4, 4, 4])),
                initializer=tf.constant(0, tf.int64),
            ),
            tf.scan(lambda a, _: (a[1], a[0] + a[1]), E, initializer=(np.array(0), np.array(1))),
            tf.foldl(lambda a, x: a - x, E),
            tf.foldr(lambda a, x: a - x, E),
            tf.foldl(lambda a, x: {"n": a["n"] + 1, "s": a["s"] + x}, E, initializer={"n": 0, "s": np.int64(10)}),
        ]
    )
    assert [lists(v) for v in found] == [
        [1, 4, 9, 16, 25, 36],
        [-1, 2, -3],
        ([1, 2, 3], [-1, -2, -3]),
        [1, 3, 6, 10, 15, 21],
        [21, 20, 18, 15, 11, 6],
        [-3, -5, -6],
        ([1, 1, 2, 3, 5, 8], [1, 2, 3, 5, 8, 13]),
        -19,
        -9,
        {"n": 6, "s": 31},
    ]


@pytest.mark.parametrize("known", [True, False])
def test_rows_of_any_number_with_gradients_to_rows_start_and_what_is_captured(sess, known: bool) -> None:
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(5, 3)), rng.normal(size=(3, 3))
    elems = tf.placeholder(tf.float64, [5, 3] if known else [None, 3])
    weights, start = tf.constant(w), tf.constant(np.ones(3))
    turn = lambda a, row: tf.tanh(tf.tensordot(a, weights, 1) + row)  # noqa: E731
    states = tf.scan(turn, elems, start)
    mapped = tf.map_fn(lambda row: tf.reduce_sum(row * row) * tf.reduce_max(weights), elems)
    assert states.shape.as_list() == [5 if known else None, 3]
    loss = tf.reduce_sum(states[-1]) + tf.reduce_sum(mapped) + tf.reduce_sum(tf.foldr(turn, elems, start))
    grads = tf.gradients(loss, [elems, weights, start])

    def by_hand(x, w, a):
        forth, back = a, a
        for row in x:
            forth = np.tanh(forth @ w + row)
        for row in x[::-1]:
            back = np.tanh(back @ w + row)
        return forth.sum() + back.sum() + (x * x).sum() * w.max()

    value, got = sess.run([loss, grads], {elems: x})
    np.testing.assert_allclose(value, by_hand(x, w, np.ones(3)), rtol=1e-12)
    given = [x, w, np.ones(3)]
    for i, grad in enumerate(got):
        for at in np.ndindex(grad.shape):
            ends = []
            for step in (1e-6, -1e-6):
                moved = [v.copy() for v in given]
                moved[i][at] += step
                ends.append(by_hand(*moved))
            np.testing.assert_allclose(grad[at], (ends[0] - ends[1]) / 2e-6, rtol=1e-5, atol=1e-7)
    if not known:
        assert sess.run(states, {elems: np.zeros((0, 3))}).shape == (0, 3)


def test_no_gradient_flows_unless_back_prop(sess) -> None:
    x = tf.constant([1.0, 2.0])
    stopped = tf.map_fn(lambda v: v * v, x, back_prop=False), tf.scan(tf.add, x, back_prop=False)
    assert tf.gradients(stopped[0], x) == [None] == tf.gradients(stopped[1], x)


def test_what_does_not_fit_is_told(sess) -> None:
    with pytest.raises(
        DTypeError, match=r"map_fn: fn returned another dtype[\s\S]*expected int64, got float32[\s\S]*pass dtype="
    ):
        tf.map_fn(lambda x: tf.to_float(x), E)
    with pytest.raises(DTypeError, match="scan: fn returned another dtype"):
        tf.scan(lambda a, x: tf.to_float(x), E)
    with pytest.raises(InvalidArgumentError, match="another structure[\\s\\S]*expected 1 tensors, got 2"):
        tf.map_fn(lambda x: (x, x), E)
    with pytest.raises(ShapeError, match="elems has a scalar"):
        tf.map_fn(lambda x: x, [1, 2, 3])
    with pytest.raises(InvalidArgumentError, match="elems is empty"):
        tf.foldl(lambda a, x: a, ())
