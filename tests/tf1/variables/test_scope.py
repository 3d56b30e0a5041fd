"""get_variable and variable_scope: the names and the sharing that TensorFlow 1's guide shows."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import AlreadyExistsError, DTypeError, InvalidArgumentError, NotFoundError, ShapeError


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


def test_names_are_the_scopes():
    with tf.variable_scope("foo"):
        with tf.variable_scope("bar"):
            v = tf.get_variable("v", [1])
            x = 1.0 + v
        assert tf.get_variable("w", shape=[2, 3], dtype=tf.float64).dtype == tf.float64
    assert v.name == "foo/bar/v:0" and x.op.name == "foo/bar/add"
    assert tf.get_variable_scope().name == ""
    with tf.variable_scope("foo") as again:
        assert again.name == "foo" and tf.constant(1, name="c").name == "foo_1/c:0"


def test_sharing():
    with tf.variable_scope("foo"):
        v = tf.get_variable("v", [1])
    with tf.variable_scope("foo", reuse=True) as scope:
        assert tf.get_variable("v", [1]) is v
        with pytest.raises(NotFoundError) as info:
            tf.get_variable("vv", [1])
        assert "foo/v" in info.value.hint
        with tf.variable_scope("inner", reuse=False) as inner:
            assert inner.reuse is True
    with pytest.raises(AlreadyExistsError, match="test_scope.py"), tf.variable_scope("foo"):
        tf.get_variable("v", [1])
    with tf.variable_scope(scope):
        assert tf.get_variable("v") is v
        with pytest.raises(ShapeError):
            tf.get_variable("v", [2])
        with pytest.raises(DTypeError):
            tf.get_variable("v", dtype=tf.int32)
    made = []
    for _ in range(2):
        with tf.variable_scope("auto", reuse=tf.AUTO_REUSE):
            made.append(tf.get_variable("v", [1]))
    assert made[0] is made[1]


def test_default_names_are_made_unique():
    names = []
    for _ in range(3):
        with tf.variable_scope(None, default_name="layer"):
            names.append(tf.get_variable("w", [1]).op.name)
    assert names == ["layer/w", "layer_1/w", "layer_2/w"]


def test_initializers():
    with tf.variable_scope("foo", initializer=tf.constant_initializer(0.4)):
        a = tf.get_variable("a", [2])
        b = tf.get_variable("b", [2], initializer=tf.constant_initializer(0.3))
    c = tf.get_variable("c", initializer=tf.constant([1, 2, 3]))
    d = tf.get_variable("d", [3], tf.int32)
    e = tf.get_variable("e", [100, 50])
    f = tf.get_variable("f", initializer=7.5)
    g = tf.get_variable("g", [2], initializer=tf.ones_initializer)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        values = sess.run([a, b, c, d, f, g])
        np.testing.assert_allclose(values[0], [0.4, 0.4])
        np.testing.assert_allclose(values[1], [0.3, 0.3])
        assert [v.tolist() for v in values[2:]] == [[1, 2, 3], [0, 0, 0], 7.5, [1, 1]]
        limit = np.sqrt(6 / 150)
        glorot = sess.run(e)
        assert abs(glorot).max() <= limit and abs(glorot).max() > 0.9 * limit
    assert c.dtype == tf.int32 and tf.get_variable("n", initializer=7).dtype == tf.int32
    with pytest.raises(InvalidArgumentError, match="needs a shape"):
        tf.get_variable("h")


def test_regularizers_fill_their_collection():
    with tf.variable_scope("foo", regularizer=lambda w: tf.reduce_sum(tf.square(w))):
        tf.get_variable("a", initializer=tf.constant([3.0, 4.0]))
    (loss,) = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run(loss) == 25.0


def test_in_a_body_the_variable_is_outside(graph):
    def body(i):
        with tf.variable_scope("loop", reuse=tf.AUTO_REUSE):
            v = tf.get_variable("v", [], initializer=tf.ones_initializer())
        with tf.control_dependencies([v.assign_add(1.0)]):
            return i + 1

    out = tf.while_loop(lambda i: i < 3, body, [0])
    (v,) = tf.global_variables()
    assert v.graph is graph and v.name == "loop/v:0"
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(out)
        assert sess.run(v) == 4.0


def test_an_initial_value_has_its_own_shape_and_dtype():
    for value in (3, [3.0], np.ones(1), tf.constant([3.0])):
        with pytest.raises(InvalidArgumentError, match=r"get_variable\('b'\): an initial value has a shape") as raised:
            tf.get_variable("b", [1], initializer=value)
        assert raised.value.got == "the shape [1]" and "leave out shape" in raised.value.hint
        assert "test_scope.py" in raised.value.site
    for value, own in ((3, "int32"), (np.ones(1), "float64"), (tf.constant(True), "bool")):
        with pytest.raises(DTypeError, match="the initial value has another dtype") as wrong:
            tf.get_variable("b", dtype=tf.float32, initializer=value)
        assert (wrong.value.expected, wrong.value.got) == ("float32", own)
    with tf.variable_scope("s", initializer=3.0), pytest.raises(InvalidArgumentError, match=r"'s/b'.*has a shape"):
        tf.get_variable("b", [2])
    assert tf.get_variable("b", dtype=tf.float32, initializer=3.0).shape == []


def test_a_variable_that_exists_otherwise_names_the_line_that_made_it():
    made = tf.get_variable("a", [2])
    with tf.variable_scope("", reuse=True):
        for shape, dtype, kind in (([3], None, ShapeError), ([2], tf.int32, DTypeError)):
            with pytest.raises(kind, match="'a' exists with another") as raised:
                tf.get_variable("a", shape, dtype)
            assert raised.value.hint == f"it was made at {made.op.site}"
            assert "test_scope.py" in raised.value.site and raised.value.site != made.op.site


def test_validate_shape_is_true_or_false():
    with pytest.raises(InvalidArgumentError, match="Variable: validate_shape is of the wrong type"):
        tf.Variable(1.0, validate_shape="no")
