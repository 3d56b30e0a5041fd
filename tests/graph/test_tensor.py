"""A Tensor is a handle: its facts, what it refuses to be, and what is learnt of its shape."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import ShapeError


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


def test_its_facts(graph):
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    assert (x.name, x.value_index, x.dtype, x.shape, x.get_shape()) == ("x:0", 0, tf.float32, [None, 3], [None, 3])
    assert x.graph is graph and x.op.outputs[0] is x and x.device == ""
    assert repr(x) == "<tf.Tensor 'x:0' shape=(?, 3) dtype=float32>"
    parts = tf.split(tf.ones([4]), 2)
    assert [p.name.rpartition(":")[2] for p in parts] == ["0", "1"]


def test_two_tensors_are_equal_only_when_they_are_one():
    x, y = tf.constant(1.0), tf.constant(1.0)
    assert x != y and len({x, y, x}) == 2


def test_its_readers_in_order_of_creation():
    x = tf.placeholder(tf.float32, [])
    first, both, _ = x + 1.0, x * x, tf.constant(2.0)
    assert x.consumers() == [first.op, both.op]


@pytest.mark.parametrize(
    ("use", "match"),
    [
        (list, "cannot be iterated over; use tf.unstack"),
        (bool, "no truth value; use tf.cond"),
        (len, r"no len\(\); use tf.shape"),
        (float, "no number; run it"),
        (int, "no number; run it"),
        (np.asarray, "no NumPy value; run it"),
    ],
)
def test_it_holds_no_data(use, match):
    with pytest.raises(TypeError, match=match):
        use(tf.placeholder(tf.float32, [2], name="x"))


def test_more_may_be_said_of_its_shape_but_not_otherwise():
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    x.set_shape([2, None])
    assert x.shape == [2, 3]
    with pytest.raises(ShapeError, match="set_shape on x:0") as caught:
        x.set_shape([4, 3])
    assert caught.value.op == "x" and "test_tensor.py" in caught.value.site
    assert x.shape == [2, 3]


def test_what_set_shape_adds_later_holds_for_the_next_step():
    x = tf.placeholder(tf.float32)
    y = x * 2.0
    with tf.Session() as sess:
        assert sess.run(y, {x: [1.0, 2.0]}).tolist() == [2, 4]
        x.set_shape([3])
        with pytest.raises(ShapeError):
            sess.run(y, {x: [1.0, 2.0]})


def test_operators_are_those_of_numpy():
    a, b = np.array([7.0, -2.0]), np.array([2.0, 3.0])
    x, y = tf.constant(a), tf.constant(b)
    pairs = {
        "+": (x + y, a + b),
        "-": (x - y, a - b),
        "*": (x * y, a * b),
        "/": (x / y, a / b),
        "//": (x // y, a // b),
        "%": (x % y, a % b),
        "**": (abs(x) ** y, abs(a) ** b),
        "@": (tf.reshape(x, [1, 2]) @ tf.reshape(y, [2, 1]), a.reshape(1, 2) @ b.reshape(2, 1)),
        "neg": (-x, -a),
        "<": (x < y, a < b),
        "<=": (x <= y, a <= b),
        ">": (x > y, a > b),
        ">=": (x >= y, a >= b),
        "&": ((x > 0.0) & (y > 0.0), (a > 0) & (b > 0)),
        "|": ((x > 0.0) | (y > 0.0), (a > 0) | (b > 0)),
        "^": ((x > 0.0) ^ (y > 0.0), (a > 0) ^ (b > 0)),
        "~": (~(x > 0.0), ~(a > 0)),
        "[]": (x[1], a[1]),
        "reflected": (1.0 - x, 1.0 - a),
        "array on the left": (a - y, a - b),
    }
    with tf.Session() as sess:
        for name, (tensor, want) in pairs.items():
            np.testing.assert_array_equal(sess.run(tensor), want, name)


def test_eval_runs_in_the_default_session():
    x = tf.placeholder(tf.float32, [])
    with tf.Session():
        assert (x + 1.0).eval({x: 2.0}) == 3.0
