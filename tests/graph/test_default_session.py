"""The default session: a stack per thread, left in the reverse order of entering."""

from __future__ import annotations

import threading

import graphdock as tf
import pytest
from graphdock.errors import FailedPreconditionError, InvalidArgumentError
from graphdock.graph.default_session import get_default_session, needed


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


def test_sessions_nest():
    assert tf.get_default_session() is None
    with tf.Session() as outer:
        with tf.Session() as inner:
            assert get_default_session() is inner
        assert get_default_session() is outer
    assert get_default_session() is None


def test_sessions_are_left_in_the_order_in_which_they_were_entered():
    with tf.Session() as outer:
        with pytest.raises(FailedPreconditionError, match="reverse order"), tf.Session():
            outer.__exit__(None, None, None)
        assert tf.get_default_session() is not None


def test_the_default_session_belongs_to_a_thread():
    seen = []
    with tf.Session():
        other = threading.Thread(target=lambda: seen.append(tf.get_default_session()))
        other.start()
        other.join()
    assert seen == [None]


def test_where_a_session_is_needed_there_must_be_one():
    with pytest.raises(InvalidArgumentError, match="no default session") as caught:
        tf.constant(1.0).eval()
    assert "with tf.Session()" in caught.value.hint
    with tf.Session() as one, tf.Session():
        assert needed(one) is one


def test_an_error_inside_leaves_no_session_behind():
    with pytest.raises(ZeroDivisionError), tf.Session():
        _ = 1 / 0
    assert get_default_session() is None
