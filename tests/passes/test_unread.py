"""What a step need not do: branches' outputs that nobody reads, and what only they needed."""

from __future__ import annotations

import graphdock as tf
import pytest


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


def rows(fetches, feed=None, **config):
    with tf.Session(config=tf.SessionConfig(**config)) as sess:
        return [r.op for r in sess.explain(fetches, feed).rows]


@pytest.mark.parametrize(
    "passes", [{}, dict.fromkeys(("captures", "identities", "shapes", "cse", "fold", "algebra"), False)]
)
def test_an_output_of_a_cond_that_nobody_reads_is_not_computed(passes):
    p, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.float32, [])
    first, second = tf.cond(p, lambda: (tf.exp(x), tf.sin(x)), lambda: (x, tf.cos(x)))
    assert {"Exp", "Sin", "Cos"} & set(rows(first, passes=passes)) == {"Exp"}
    assert {"Exp", "Sin", "Cos"} & set(rows([first, second], passes=passes)) == {"Exp", "Sin", "Cos"}


def test_what_only_an_unread_output_needed_outside_is_not_computed():
    p, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.float32, [])
    costly = tf.exp(x)
    first, _ = tf.cond(p, lambda: (x, costly), lambda: (-x, -costly))
    assert "Exp" not in rows(first)


def test_an_update_in_a_branch_runs_though_its_outputs_are_not_read():
    p, v = tf.placeholder(tf.bool, []), tf.Variable(0.0)
    first, _ = tf.cond(p, lambda: (tf.constant(1.0), tf.assign_add(v, 1.0)), lambda: (tf.constant(2.0), v + 0.0))
    with tf.Session() as sess:
        sess.run(v.initializer)
        assert sess.run(first, {p: True}) == 1.0 and sess.run(v) == 1.0
        assert sess.run(first, {p: False}) == 2.0 and sess.run(v) == 1.0


def test_nested_branches_are_cut_to_the_innermost():
    p, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.float32, [])
    inner = lambda: tf.cond(x > 0.0, lambda: (x, tf.exp(x)), lambda: (x, tf.sin(x)))  # noqa: E731
    first, _ = tf.cond(p, inner, lambda: (x, tf.cos(x)))
    assert not {"Exp", "Sin", "Cos"} & set(rows(first))
