"""Sessions, as TensorFlow 1 answers."""

from __future__ import annotations

import graphdock as tf
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
