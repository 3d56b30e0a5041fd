"""What each simplification takes out of a plan, and what it must leave in."""

from __future__ import annotations

from collections import Counter

import graphdock as tf
import numpy as np
import pytest


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


def ops(fetches, feed=None, **passes):
    """How often each op runs in a step."""
    with tf.Session(config=tf.SessionConfig(passes=passes)) as sess:
        return Counter(r.op for r in sess.explain(fetches, feed).rows)


def x(*dims, dtype=tf.float32):
    return tf.placeholder(dtype, dims)


def test_equal_nodes_are_one_and_different_ones_are_not():
    a, b = x(3), x(3)
    assert ops(tf.exp(a) + tf.exp(a))["Exp"] == 1 and ops(tf.exp(a) + tf.exp(b))["Exp"] == 2
    assert ops(tf.exp(a) + tf.exp(a), cse=False)["Exp"] == 2
    sums = [tf.reduce_sum(a, keepdims=k) for k in (True, False, True)]
    assert ops(sums)["Sum"] == 2
    first = tf.reshape(tf.exp(a), [3]), tf.reshape(tf.exp(a), [3])
    assert ops(first[0] * first[1])["Exp"] == 1, "equal constants are equal inputs"


def test_draws_and_updates_are_never_merged():
    assert ops(tf.random_uniform([2]) + tf.random_uniform([2]))["RandomUniform"] == 2
    v = tf.Variable(1.0)
    with tf.Session() as sess:
        sess.run(v.initializer)
        sess.run([tf.assign_add(v, 1.0).op, tf.assign_add(v, 1.0).op])
        assert sess.run(v) == 3.0


def test_what_depends_on_constants_only_is_computed_once():
    folded = tf.sqrt(tf.constant([4.0, 9.0])) * 2.0
    counts = ops(folded + x(2))
    assert counts == {"Add": 1}
    assert ops(folded + x(2), fold=False, cse=False)["Sqrt"] == 1
    with tf.Session() as sess:
        assert sess.run(folded).tolist() == [4.0, 6.0]


def test_a_large_result_is_not_folded():
    large = tf.fill([200, 200], 1.0) * 2.0
    assert ops(large + x(200, 200))["Fill"] == 1


@pytest.mark.parametrize(
    ("make", "gone"), [(lambda a: a * 1.0, "Mul"), (lambda a: 1.0 * a, "Mul"), (lambda a: a / 1.0, "RealDiv")]
)
def test_neutral_elements_are_dropped_where_shape_and_dtype_stay(make, gone):
    assert ops(tf.exp(make(x(3))))[gone] == 0
    assert ops(tf.exp(make(x(3))), algebra=False)[gone] == 1


def test_a_neutral_element_that_stretches_the_other_stays():
    a = x(3)
    y = tf.exp(a * tf.ones([2, 3]))
    assert ops(y)["Mul"] == 1
    with tf.Session() as sess:
        assert sess.run(y, {a: np.zeros(3)}).shape == (2, 3)


def test_zero_is_no_neutral_element_of_a_sum():
    """-0.0 + 0.0 is 0.0, so dropping the sum would change a bit."""
    a = x(1)
    y = a + 0.0
    with tf.Session() as sess:
        assert not np.signbit(sess.run(y, {a: [-0.0]}))[0]


def test_integers_known_from_shapes_are_constants():
    a = x(4, 5)
    flat = tf.reshape(a, [tf.shape(a)[0] * tf.shape(a)[1]])
    assert ops(flat * 2.0) == {"Reshape": 1, "Mul": 1}


def test_identities_are_forwarded_but_one_that_waits_stays():
    a, v = x(), tf.Variable(1.0)
    assert ops(tf.exp(tf.identity(tf.identity(a)))) == {"Exp": 1}
    with tf.control_dependencies([tf.assign(v, 5.0)]):
        later = tf.identity(a)
    with tf.Session() as sess:
        sess.run(v.initializer)
        assert sess.run(later * 1.0, {a: 2.0}) == 2.0
        assert sess.run(v) == 5.0
