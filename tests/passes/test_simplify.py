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


GENERIC = {"shape_policy": "generic"}


def generic(fetches, feed=None, **passes):
    """How often each op runs in a step of any shapes."""
    with tf.Session(config=tf.SessionConfig(passes=passes, **GENERIC)) as sess:
        return Counter(r.op for r in sess.explain(fetches, feed).rows)


def test_a_sum_over_what_broadcasting_did_not_stretch_is_dropped_where_dims_are_one_symbol():
    a, b = x(None, 3), x(None, 3)
    y = tf.exp(a) * b
    slopes = tf.gradients(tf.reduce_sum(y), [a, b])
    assert generic(slopes)["SumTo"] == 0 and generic(slopes, identities=False)["SumTo"] == 2
    with tf.Session(config=tf.SessionConfig(**GENERIC)) as sess:
        for rows, other in ((4, 4), (1, 1), (4, 1), (1, 4), (0, 0), (4, 4), (0, 1)):
            p, q = np.random.default_rng(rows).normal(size=(2, max(rows, other, 1), 3)).astype(np.float32)
            p, q = p[:rows], q[:other]
            made = sess.run(slopes, {a: p, b: q})
            wide = np.broadcast_shapes(p.shape, q.shape)
            want = [np.exp(p) * q, np.broadcast_to(np.exp(p), wide)]
            for got, each, fed in zip(made, want, (p, q), strict=True):
                stretched = fed.shape[0] == 1 and wide[0] != 1
                each = np.broadcast_to(each, wide)
                np.testing.assert_allclose(got, each.sum(0, keepdims=True) if stretched else each, 1e-5)
        with pytest.raises(tf.errors.InvalidArgumentError):
            sess.run(slopes, {a: np.ones((4, 3)), b: np.ones((3, 3))})


def test_what_may_have_stretched_a_dim_keeps_its_sum():
    """Rows that are counted in the step, and those that are one behind the other: they may be one."""
    a, b = x(None, 3), x(None, 3)
    some = tf.boolean_mask(a, a[:, 0] > 0)
    for y, sums in ((some * b, 1), (tf.concat([a, b], 0) * b, 2)):
        assert generic(tf.gradients(tf.reduce_sum(y), b))["SumTo"] == sums
    with tf.Session(config=tf.SessionConfig(**GENERIC)) as sess:
        feed = {a: np.float32([[1, 2, 3], [-1, 0, 0], [1, 1, 1]]), b: np.ones((1, 3), np.float32)}
        np.testing.assert_array_equal(sess.run(tf.gradients(tf.reduce_sum(some * b), b)[0], feed), [[2, 3, 4]])


def test_a_slice_that_only_the_step_places_is_checked_though_it_is_as_long_as_the_whole():
    a, begin = x(None, 3), tf.placeholder(tf.int32, [])
    whole = tf.slice(a, [begin, 0], [tf.shape(a)[0], 3]) * 2.0
    with tf.Session(config=tf.SessionConfig(**GENERIC)) as sess:
        np.testing.assert_array_equal(sess.run(whole, {a: np.ones((2, 3)), begin: 0}), np.full((2, 3), 2.0))
        with pytest.raises(tf.errors.InvalidArgumentError):
            sess.run(whole, {a: np.ones((2, 3)), begin: 1})
    first = tf.slice(a, [0, 0], [tf.shape(a)[0], 3]) * 2.0
    assert generic(first) == {"Mul": 1}


def test_within_a_loop_dims_are_the_same_where_they_are_numbers():
    a, b = x(None, 3), x(None, 3)
    loop = tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, tf.sin(v) * a), [0, b])[1]
    slopes = tf.gradients(tf.reduce_sum(loop), [a, b])
    with (
        tf.Session(config=tf.SessionConfig(**GENERIC)) as sess,
        tf.Session(config=tf.SessionConfig(shape_policy="exact")) as exact,
    ):
        for rows in (3, 1, 5):
            feed = {
                a: np.random.default_rng(1).normal(size=(rows, 3)),
                b: np.random.default_rng(2).normal(size=(rows, 3)),
            }
            for got, want in zip(sess.run(slopes, feed), exact.run(slopes, feed), strict=True):
                np.testing.assert_allclose(got, want, 1e-5, 1e-6)
