"""Sessions, as TensorFlow 1 answers."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest


def test_a_step_in_pieces(session):
    a, b = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    draw = tf.random_uniform([])
    c, d = a + draw, None
    d = c * b
    handle = session.partial_run_setup([c, d], [a, b])
    first = session.partial_run(handle, c, {a: 1.0})
    assert session.partial_run(handle, [d], {b: 2.0}) == [pytest.approx(first * 2.0)]
    for fetches, feeds in ((c, None), (a, None), (tf.constant(1), None)):
        with pytest.raises(ValueError, match="partial"):
            session.partial_run(handle, fetches, feeds)
    again = session.partial_run_setup([c], [a])
    with pytest.raises(ValueError, match="was not specified"):
        session.partial_run(again, c, {b: 1.0})
    with pytest.raises(ValueError, match="needed and was not fed"):
        session.partial_run(again, c)
    with pytest.raises(ValueError, match="needs something to fetch"):
        session.partial_run_setup([], [a])
    with pytest.raises(ValueError, match="handle"):
        session.partial_run("handle", c)


@pytest.mark.parametrize("debug", [False, True])
def test_an_update_of_a_step_in_pieces_runs_once(debug):
    with tf.Graph().as_default():
        p, q = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.float32, [])
        w, n = tf.Variable([1.0, 1.0]), tf.Variable(0)
        with tf.control_dependencies([n.assign_add(1)]):
            counted = p * 2.0
        update = w.assign_add(counted)
        drawn = tf.random_uniform([2], seed=1)
        own = w.read_value()
        ends = [update * 10.0, counted + drawn, drawn * q, own * q, w * q]
        with tf.control_dependencies([update]):
            waits = q + 1.0
        with tf.Session(config=tf.SessionConfig(debug=debug)) as sess:
            sess.run(tf.global_variables_initializer())
            handle = sess.partial_run_setup([update.op, counted, w, *ends, waits], [p, q])
            assert sess.partial_run(handle, update.op, {p: [1.0, 2.0]}) is None
            late, value = sess.partial_run(handle, [ends[0], w])
            assert (late.tolist(), value.tolist()) == ([30, 50], [3, 5])
            one, two = sess.partial_run(handle, [counted, ends[1]])
            assert one.tolist() == [2, 4]
            random = two - one
            scaled, snapshot, now = sess.partial_run(handle, ends[2:], {q: 2.0})
            np.testing.assert_allclose(scaled, random * 2.0, rtol=1e-5)
            assert (snapshot.tolist(), now.tolist()) == ([6, 10], [6, 10])
            assert sess.partial_run(handle, waits) == 3.0
            assert (sess.run(w).tolist(), sess.run(n)) == ([3, 5], 1)


def test_arrays_of_a_step_in_pieces_are_the_callers_own():
    with tf.Graph().as_default():
        p, q, text = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.float32, [2]), tf.placeholder(tf.string, [1])
        turned = tf.reshape(p, [2])
        sums, joined = turned + q, tf.string_join([text, text])
        with tf.Session() as sess:
            handle = sess.partial_run_setup([turned, sums, p, text, joined], [p, q, text])
            fed, word = np.ones(2, np.float32), np.array([b"a\0"], object)
            first, echo = sess.partial_run(handle, [turned, text], {p: fed, text: word})
            fed[:], first[:], word[0], echo[0] = 7, 8, b"b", b"c"
            again, last, both = sess.partial_run(handle, [p, sums, joined], {q: np.ones(2)})
            assert (again.tolist(), last.tolist(), both.tolist()) == ([1, 1], [2, 2], [b"a\0a\0"])
            assert (fed.tolist(), first.tolist()) == ([7, 7], [8, 8])


def test_a_piece_that_was_refused_may_be_run_with_its_feed(session):
    p = tf.placeholder(tf.float32, [])
    w = tf.Variable(1.0)
    update = w.assign_add(p)
    session.run(w.initializer)
    handle = session.partial_run_setup([update], [p])
    with pytest.raises(ValueError, match="needed and was not fed"):
        session.partial_run(handle, update)
    assert session.partial_run(handle, update, {p: 2.0}) == 3.0


def test_a_subclass_has_arguments_of_its_own():
    class Named(tf.Session):
        def __init__(self, name, scale=1):
            super().__init__()
            self.name, self.scale = name, scale

    with tf.Graph().as_default(), Named("mine", scale=3) as sess:
        assert sess.run(tf.constant(2)) * sess.scale == 6 and sess.name == "mine"

    class Plain(tf.InteractiveSession):
        pass

    with pytest.raises(ValueError, match="has no argument 'scale'"):
        Plain(scale=3)


def test_callables_take_options(session):
    x = tf.placeholder(tf.float32, [])
    double = session.make_callable(x * 2.0, [x], accept_options=True)
    metadata = tf.RunMetadata()
    assert double(3.0, options=tf.RunOptions(), run_metadata=metadata) == 6.0 and metadata.plan is not None
    with pytest.raises(ValueError, match="no argument 'options'"):
        session.make_callable(x, [x])(1.0, options=tf.RunOptions())


def test_a_closed_session_stays_closed(session):
    x = tf.constant(1)
    other = tf.Session()
    run = other.make_callable(x)
    other.close()
    other.close()
    for use in (lambda: other.run(x), run, lambda: other.__enter__(), lambda: other.partial_run_setup([x])):
        with pytest.raises(RuntimeError, match="closed"):
            use()


def test_default_sessions(session):
    x = tf.constant(3)
    with tf.Session() as inner:
        assert tf.get_default_session() is inner and x.eval() == 3
    with inner.graph.as_default(), session.as_default():
        assert tf.get_default_session() is session
    shell = tf.InteractiveSession()
    assert x.eval() == 3 and tf.get_default_session() is shell
    shell.close()
    assert [n.name for n in session.graph_def.node] == [x.op.name]
