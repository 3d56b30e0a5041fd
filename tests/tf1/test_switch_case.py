"""A branch by its number, beside Python's own choice; TensorFlow 2.21 gives the same."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest

BRANCHES = [lambda: tf.constant(10), lambda: tf.constant(20), lambda: tf.constant(30)]


@pytest.mark.parametrize(
    "given", [BRANCHES, dict(enumerate(BRANCHES)), [(2, BRANCHES[2]), (0, BRANCHES[0]), (1, BRANCHES[1])]]
)
def test_the_branch_of_a_number(given):
    index = tf.placeholder(tf.int32, [])
    last, default = tf.switch_case(index, given), tf.switch_case(index, given, default=lambda: tf.constant(-1))
    with tf.Session() as sess:
        for number in (-1, 0, 1, 2, 3):
            inside = 0 <= number < 3
            want = [10, 20, 30][number] if inside else 30, [10, 20, 30][number] if inside else -1
            assert tuple(sess.run([last, default], {index: number})) == want


def test_only_the_branch_that_is_taken_computes_and_gives_gradients():
    counts = [tf.Variable(0) for _ in range(3)]
    index, x = tf.placeholder(tf.int32, []), tf.constant(3.0)
    done = tf.switch_case(index, [lambda c=c: tf.assign_add(c, 1) for c in counts])
    y = tf.switch_case(index, [lambda: x, lambda: x * x, lambda: x * x * x])
    (slope,) = tf.gradients(y, [x])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for number, times in ((1, 2), (2, 1)):
            for _ in range(times):
                sess.run(done, {index: number})
        assert sess.run(counts) == [0, 2, 1]
        np.testing.assert_allclose([sess.run(slope, {index: n}) for n in range(3)], [1, 6, 27])
    only = tf.switch_case(index, [lambda: tf.constant(7)])
    assert tf.Session().run(only, {index: 5}) == 7


def test_what_does_not_fit_is_refused():
    index = tf.constant(0)
    for given, words in (([], "empty"), ({1: BRANCHES[0]}, "from 0 on"), ([(0, BRANCHES[0])] * 2, "from 0 on")):
        with pytest.raises(ValueError, match=words):
            tf.switch_case(index, given)
    for given in ([1], {"a": BRANCHES[0]}):
        with pytest.raises(TypeError, match="branch_fns"):
            tf.switch_case(index, given)
    with pytest.raises(TypeError, match="int32"):
        tf.switch_case(tf.constant(0.0), BRANCHES)
