"""Printed levels: the same results and errors as row by row, from the run on from which a level is text."""

from __future__ import annotations

from types import SimpleNamespace

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts.step import CancellationToken
from graphdock_dataflow import printed
from graphdock_dataflow.printed import DUE
from graphdock_dataflow.scheduler import Run


@pytest.fixture
def texts(monkeypatch):
    """The lines of what is printed."""
    lines: list[str] = []
    make = printed._compiled

    def compiled(made, names):
        lines.extend(made)
        return make(made, names)

    monkeypatch.setattr(printed, "_compiled", compiled)
    return lines


def session(**settings):
    return tf.Session(config=tf.SessionConfig(executor="dataflow", **settings))


@pytest.mark.plain  # in debug mode the first run is checked at once
def test_a_step_that_waits_for_nothing_becomes_text(texts):
    x = tf.placeholder(tf.float32, [3])
    parts = [tf.nn.relu(x * float(i) - 2.0) for i in range(40)]
    y, rest = tf.add_n(parts), tf.split(tf.concat(parts, 0), 5)
    with session() as sess:
        feed = np.float32([0.5, 1, 2])
        first = sess.run([y, *rest], {x: feed})
        for step in range(1, DUE + 4):
            assert bool(texts) == (step > DUE + 1)
            got = sess.run([y, *rest], {x: feed})
            assert all(np.array_equal(a, b) for a, b in zip(got, first, strict=True))
        assert any("= f" in line for line in texts)
        assert sess.run(y, {x: feed + 1}).tolist() == (np.maximum(np.outer(range(40), feed + 1) - 2, 0).sum(0).tolist())


@pytest.mark.parametrize("steps", [1, DUE + 5])
def test_an_error_names_its_node(texts, steps):
    x, i = tf.placeholder(tf.float32, [100]), tf.placeholder(tf.int32, [1])
    before = [tf.add(x, float(n)) for n in range(70)]  # more than one piece of text holds
    y = tf.gather(tf.add_n(before), i, name="fails_here") * 2.0
    with session() as sess:
        for _ in range(steps):
            assert sess.run(y, {x: np.ones(100), i: [3]}).tolist() == [2 * (70 + 69 * 35)]
        with pytest.raises(tf.errors.InvalidArgumentError, match="fails_here"):
            sess.run(y, {x: np.ones(100), i: [300]})
        assert sess.run(y, {x: np.zeros(100), i: [3]}).tolist() == [2 * 69 * 35]
    assert bool(texts) == (steps > DUE)


def test_a_body_becomes_text_and_its_errors_name_their_node(texts):
    x, last = tf.placeholder(tf.float32, [4]), tf.placeholder(tf.int32, [])
    value = tf.while_loop(
        lambda i, _: i < last, lambda i, v: (i + 1, v + tf.gather(x, tf.minimum(i, last), name="row")), [0, x]
    )[1]
    with session() as sess:
        assert sess.run(value, {x: [1, 2, 3, 4], last: 4}).tolist() == [11, 12, 13, 14]
        with pytest.raises(tf.errors.InvalidArgumentError, match="row"):
            sess.run(value, {x: [1, 2, 3, 4], last: 200})
        for _ in range(DUE):
            assert sess.run(value, {x: [1, 2, 3, 4], last: 4}).tolist() == [11, 12, 13, 14]
        assert texts
        with pytest.raises(tf.errors.InvalidArgumentError, match="row"):
            sess.run(value, {x: [1, 2, 3, 4], last: 200})


def test_state_and_checks_stay_as_they_are(texts):
    v = tf.Variable(0.0)
    y = tf.log(v.assign_add(1.0) - 40.0, name="logarithm")
    with session(check_numerics=True) as sess:
        sess.run(v.initializer)
        for _ in range(3):
            with pytest.raises(tf.errors.InvalidArgumentError, match="logarithm"):
                sess.run(y)
        sess.run(v.assign(40.0))
        for step in range(DUE + 4):
            assert sess.run(y) == np.log(np.float32(step + 1))
        sess.run(v.assign(0.0))
        with pytest.raises(tf.errors.InvalidArgumentError, match="logarithm"):
            sess.run(y)
        assert texts


def test_a_step_that_is_to_stop_ends_between_two_pieces():
    token, ran = CancellationToken(), []
    level = SimpleNamespace(
        pieces=[lambda v: token.cancel(tf.errors.CancelledError("closed")), lambda v: ran.append(v)], table=None
    )
    with pytest.raises(tf.errors.CancelledError, match="closed"):
        Run(SimpleNamespace(token=token)).straight(level, [])
    assert ran == []
