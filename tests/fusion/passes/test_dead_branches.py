"""Branches that a constant decides stand in the place of their Cond, with all their effects."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


def both(fetches, feed, variable=None):
    """Ops of the plan, and values, with the pass and without it; of a variable too, afterwards."""
    found = []
    for on in (True, False):
        with tf.Session(config=tf.SessionConfig(passes={"branches": on})) as sess:
            sess.run(tf.global_variables_initializer())
            ops = [row.op for row in sess.explain(fetches, feed).rows]
            values = sess.run(fetches, feed)
            found.append((ops, values, None if variable is None else sess.run(variable)))
    return found


@pytest.mark.parametrize("taken", [True, False])
def test_the_taken_branch_runs_with_its_updates(taken):
    v = tf.Variable([1.0, 2.0])
    x = tf.placeholder(tf.float32, [2])
    other = tf.logical_not(tf.constant(taken))

    def updating():
        with tf.control_dependencies([tf.assign_add(v, x)]):
            return tf.cond(other, lambda: x * 3.0, lambda: x * v)

    y = tf.cond(tf.constant(taken), updating, lambda: tf.assign_sub(v, x) + 1.0)
    (ops, got, after), (plain, want, expected) = both(y, {x: [3.0, 4.0]}, v)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(after, expected)
    assert "Cond" not in ops and "Cond" in plain and ("Mul" in ops) is taken


def test_fetched_operations_of_a_branch_run():
    v = tf.Variable(1.0)
    op = tf.cond(tf.constant(True), lambda: tf.assign(v, 5.0), lambda: tf.assign(v, 7.0)).op
    (ops, _, after), (_, _, expected) = both(op, {}, v)
    assert after == expected == 5.0 and "Cond" not in ops


def test_what_only_a_step_decides_stays():
    p, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.float32, [2])
    y = tf.cond(p, lambda: x + 1.0, lambda: x)
    (ops, *_), _ = both(y, {p: True, x: [1.0, 2.0]})
    assert ops == ["Cond"] or "Cond" in ops


def test_a_branch_in_a_loop_and_its_gradient():
    x = tf.placeholder(tf.float32, [3])
    _, y = tf.while_loop(
        lambda i, a: i < 3, lambda i, a: (i + 1, tf.cond(tf.constant(False), lambda: a, lambda: tf.tanh(a * x))), [0, x]
    )
    (_, got, _), (_, want, _) = both([y, *tf.gradients(y, x)], {x: [0.1, np.nan, 2.0]})
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)


def test_nodes_of_several_branches_under_one_name_are_told_apart():
    """An absolute scope, as cells open theirs, names nodes of several bodies alike."""
    x = tf.placeholder(tf.float32, [2])

    def taken():
        with tf.name_scope("cell/"):
            return tf.exp(x, name="rate") + 1.0

    branches = [tf.cond(tf.constant(True), taken, lambda: x) * float(n) for n in (2, 3)]
    with tf.Session(config=tf.SessionConfig(debug=True)) as sess:
        first, second = sess.run(branches, {x: [0.5, 1.0]})
    np.testing.assert_allclose(first * 3, second * 2, rtol=1e-6)
