"""What a random op draws is told by its seeds, the step, and the iteration of its loop; by nothing else."""

import graphdock as tf
import numpy as np


def test_a_draw_of_an_iteration_does_not_depend_on_whether_earlier_ones_drew():
    first = tf.placeholder(tf.int32, [])

    def body(i, kept):
        drawn = tf.cond(i >= first, lambda: tf.random_uniform([4], seed=3), lambda: tf.zeros([4]))
        return i + 1, drawn

    _, last = tf.while_loop(lambda i, kept: i < 5, body, [0, tf.zeros([4])])
    drawn = []
    for begin in (0, 2, 4):
        with tf.Session() as sess:
            drawn.append(sess.run(last, {first: begin}).tolist())
    assert drawn[0] == drawn[1] == drawn[2]


def test_iterations_and_steps_draw_anew():
    def body(i, kept):
        return i + 1, tf.concat([kept[1:], [tf.random_uniform([], seed=3)]], 0)

    _, drawn = tf.while_loop(lambda i, kept: i < 3, body, [0, tf.zeros([3])], [tf.TensorShape([]), tf.TensorShape([3])])
    with tf.Session() as sess:
        values = [*sess.run(drawn), *sess.run(drawn)]
    assert len(set(values)) == 6


def test_draws_of_an_inner_loop_are_told_by_both_iterations():
    limit = tf.placeholder(tf.int32, [])

    def inner(j, kept):
        return j + 1, tf.random_uniform([], seed=3)

    def outer(i, kept):
        rounds = tf.cond(tf.equal(i, 0), lambda: limit, lambda: tf.constant(2))
        return i + 1, tf.while_loop(lambda j, k: j < rounds, inner, [0, 0.0])[1]

    _, last = tf.while_loop(lambda i, k: i < 2, outer, [0, 0.0])
    drawn = []
    for rounds in (1, 5):
        with tf.Session() as sess:
            drawn.append(sess.run(last, {limit: rounds}))
    assert drawn[0] == drawn[1]


def test_the_gradient_of_a_loop_sees_the_numbers_that_it_drew():
    x = tf.placeholder(tf.float32, [3])
    _, y = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * tf.random_uniform([3], seed=3)), [0, x])
    (slope,) = tf.gradients(y, x)
    with tf.Session() as sess:
        value, by_x = sess.run([y, slope], {x: np.ones(3)})
    np.testing.assert_allclose(by_x, value, rtol=1e-6)


def test_dropout_inside_a_loop_differentiates():
    x = tf.placeholder(tf.float32, [64])
    _, y = tf.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, tf.nn.dropout(a, rate=0.5, seed=4)), [0, x])
    (slope,) = tf.gradients(y, x)
    with tf.Session() as sess:
        value, by_x = sess.run([y, slope], {x: np.ones(64)})
    assert 0 < np.count_nonzero(value) < 64
    np.testing.assert_allclose(by_x, value, rtol=1e-6)
