"""Shapes of loop variables: what lasts stays known, what an iteration changes does not, and nests cost what they hold."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts.rewriter import Builder
from graphdock.planning.translate import translate

ANY = tf.TensorShape([None])


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def loop(start, body, invariants=None, times=3):
    """The loop variables after so many iterations of ``body``."""
    shapes = None if invariants is None else [tf.TensorShape([]), *invariants]
    step = lambda i, *values: (i + 1, *body(*values))  # noqa: E731
    return tf.while_loop(lambda i, *values: i < times, step, [0, *start], shapes)[1:]


def shapes(outputs, *feeds):
    return [v.shape for v in translate(outputs, [], feeds).outputs]


def test_a_dim_that_lasts_stays_known_beside_one_that_changes():
    x, y = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None, 3])
    grown, kept = loop([x, y], lambda a, b: (tf.concat([a, a], 0), b + 1.0), [ANY, tf.TensorShape([None, 3])])
    assert shapes([grown, kept], (x, (2,)), (y, (5, 3))) == [(None,), (5, 3)]
    got = tf.Session().run([grown, kept], {x: [1.0, 2.0], y: np.zeros((5, 3))})
    assert [g.shape for g in got] == [(16,), (5, 3)]


def test_variables_that_take_turns_are_found_at_last():
    """Each iteration moves the change one variable on, more of them than there are rounds."""
    count = 9
    feeds = [tf.placeholder(tf.float32, [None]) for _ in range(count)]
    turned = loop(feeds, lambda *v: (tf.concat([v[0], v[0]], 0), *v[:-1]), [ANY] * count, count + 2)
    assert shapes(turned, *[(f, (1,)) for f in feeds]) == [(None,)] * count
    values = tf.Session().run(turned, {f: [float(i)] for i, f in enumerate(feeds)})
    assert [len(v) for v in values] == [2 ** (count + 2 - i) for i in range(count)]


def test_a_rank_that_changes_is_unknown():
    x = tf.placeholder(tf.float32)
    (y,) = loop([x], lambda a: (a[None],), [tf.TensorShape(None)])
    assert shapes([y], (x, (2,))) == [None]
    assert tf.Session().run(y, {x: [1.0, 2.0]}).shape == (1, 1, 1, 2)


def test_a_loop_in_a_branch_in_a_loop_takes_part_in_the_outer_ones_rounds():
    x = tf.placeholder(tf.float32, [None])

    def body(a):
        inner = lambda: loop([a], lambda b: (tf.concat([b, b[:1]], 0),), [ANY], 1)[0]  # noqa: E731
        return (tf.cond(tf.reduce_sum(a) > 4.0, inner, lambda: tf.concat([a, a], 0)),)

    (y,) = loop([x], body, [ANY])
    assert tf.Session().run(y, {x: [1.0, 1.0]}).shape == (9,)


def translated(monkeypatch, outputs, *feeds):
    """How many nodes a translation makes, those that it drops included."""
    count, node = 0, Builder.node

    def counted(*args, **keywords):
        nonlocal count
        count += 1
        return node(*args, **keywords)

    with monkeypatch.context() as patch:
        patch.setattr(Builder, "node", counted)
        translate(outputs, [], feeds)
    return count


def len_of(outputs, *feeds):
    return sum(len(level.nodes) for level in translate(outputs, [], feeds).all_graphs())


def nest(x, depth, outer=()):
    """Loops in loops; each has a variable of changing shape, which all loops inside of it capture."""
    if depth == 0:
        return tf.tanh(x) + tf.add_n([tf.reduce_sum(c) for c in outer])

    def body(a):
        return (tf.reshape(nest(a * 2.0, depth - 1, (a, *outer))[:1], [1]),)

    return loop([x], body, [ANY], 1)[0]


def test_the_nodes_that_are_translated_are_linear_in_the_depth_of_a_nest(monkeypatch):
    x = tf.placeholder(tf.float32, [None])
    for depth in (4, 8, 16, 30):
        y = nest(x, depth)
        assert translated(monkeypatch, [y], (x, (2,))) <= 3 * len_of([y], (x, (2,))), depth
    assert tf.Session().run(y, {x: [1.0, 2.0]}).shape == (1,)
