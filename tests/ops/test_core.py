"""The host's own functions: known shapes, defaults, groups, tuples.

Python operators on tensors: whose dtype the other side takes, and what is said where no library declares one.
"""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import ShapeError, UnknownOpError
from graphdock.ops.core import apply_operator


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


def test_a_known_shape_is_a_constant():
    assert tf.shape(tf.placeholder(tf.float32, [2, 3])).op.type == "Const"
    assert tf.shape(tf.placeholder(tf.float32, [2, None])).op.type == "Shape"


def test_a_default_must_have_the_shape_that_may_be_fed():
    with pytest.raises(ShapeError, match=r"does not have the shape \[3\]"):
        tf.placeholder_with_default([1.0, 2.0], [3])


def test_a_default_is_used_until_it_is_fed():
    x = tf.placeholder_with_default([1.0, 2.0], [None])
    with tf.Session() as sess:
        assert sess.run(x * 2.0).tolist() == [2, 4]
        assert sess.run(x * 2.0, {x: [5.0]}).tolist() == [10]


def test_likes_have_the_shape_and_the_dtype_that_is_asked_for():
    x = tf.placeholder(tf.int32, [2, None])
    zeros, ones = tf.zeros_like(x), tf.ones_like(x, dtype=tf.float64)
    assert (zeros.dtype, ones.dtype, zeros.shape) == (tf.int32, tf.float64, [2, None])
    with tf.Session() as sess:
        got = sess.run([zeros, ones], {x: np.ones((2, 3), np.int32)})
    np.testing.assert_array_equal(got[0], np.zeros((2, 3), np.int32))
    np.testing.assert_array_equal(got[1], np.ones((2, 3)))


def test_a_cast_to_its_own_dtype_is_no_op():
    x = tf.placeholder(tf.float32, [])
    assert tf.cast(x, tf.float32) is x and tf.cast(x, "int8").dtype is tf.int8


def test_a_tuple_is_ready_when_all_of_it_is():
    w = tf.Variable(1.0)
    first, _, none = tf.tuple([tf.constant(7.0), tf.assign(w, 5.0), None])
    with tf.Session() as sess:
        sess.run(w.initializer)
        assert sess.run(first) == 7.0 and none is None
        assert sess.run(w) == 5.0


def test_a_group_runs_everything():
    v, w = tf.Variable(1.0), tf.Variable(2.0)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run(tf.group(tf.assign(v, 3.0), tf.assign_add(w, 1.0).op)) is None
        assert sess.run([v, w]) == [3.0, 3.0]


@pytest.mark.parametrize("dtype", ["int8", "int64", "float16", "float64", "uint8"])
def test_the_other_side_takes_the_tensors_dtype(dtype):
    x = tf.placeholder(dtype, [2])
    assert {(x + 1).dtype, (1 + x).dtype, (x * np.ones(2, np.int8)).dtype, (2 - x).dtype} == {x.dtype}


def test_a_reflected_operator_keeps_the_order():
    x = tf.constant([2.0, 4.0])
    with tf.Session() as sess:
        got = sess.run([1.0 - x, 8.0 / x, 2.0**x, 9.0 % x, 9.0 // x])
    want = [[-1, -3], [4, 2], [4, 16], [1, 1], [4, 2]]
    assert [g.tolist() for g in got] == want


def test_an_operator_that_no_library_declares(graph):
    with pytest.raises(UnknownOpError, match="declares the operator __rshift__") as caught:
        apply_operator("__rshift__", tf.constant(1), 1)
    assert "std" in caught.value.hint
    with pytest.raises(TypeError):
        _ = tf.constant(1) >> 1


@pytest.mark.parametrize("known", [True, False])
def test_zeros_and_ones_like_text_and_text_like_numbers(known: bool) -> None:
    text, numbers = np.array([["a"], ["b"]], object), np.ones((2, 1), np.float32)
    with tf.Graph().as_default(), tf.Session() as sess:
        t, n = (
            (tf.constant(text), tf.constant(numbers))
            if known
            else (tf.placeholder("string"), tf.placeholder("float32"))
        )
        made = sess.run(
            [tf.zeros_like(t, tf.int32), tf.ones_like(t, tf.float16), tf.zeros_like(n, tf.string), tf.zeros_like(t)],
            {} if known else {t: text, n: numbers},
        )
        with pytest.raises(tf.errors.DTypeError):
            tf.ones_like(n, tf.string)
    assert [v.tolist() for v in made] == [[[0], [0]], [[1], [1]], [[b""], [b""]], [[b""], [b""]]]
    assert [v.dtype for v in made[:2]] == [np.int32, np.float16]
