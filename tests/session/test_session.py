"""A session's life: containers, reset, closing, two sessions on one graph, several threads."""

from __future__ import annotations

import threading

import graphdock as tf
import numpy as np
import pytest
from graphdock.plugin.host import Host


@pytest.fixture(autouse=True)
def graph():
    graph = tf.Graph()
    with graph.as_default():
        yield graph


def test_variables_of_two_sessions_are_apart():
    w = tf.Variable(1.0)
    step = tf.assign_add(w, 1.0)
    with tf.Session() as one, tf.Session() as two:
        one.run(w.initializer)
        one.run(step)
        with pytest.raises(tf.errors.UninitializedError, match="'Variable'.*read before"):
            two.run(w)
        two.run(w.initializer)
        assert (one.run(w), two.run(w)) == (2.0, 1.0)


def test_a_named_container_is_shared_by_disjoint_graphs_and_reset():
    def build():
        graph = tf.Graph()
        with graph.as_default(), tf.container("shared_by_the_test"):
            w = tf.Variable(5.0, name="w")
            return graph, w, tf.assign_add(w, 1.0)

    graph_a, w_a, step_a = build()
    graph_b, w_b, step_b = build()
    with tf.Session(graph=graph_a) as a, tf.Session(graph=graph_b) as b:
        a.run(w_a.initializer)
        threads = [
            threading.Thread(target=lambda s=s, step=step: [s.run(step) for _ in range(100)])
            for s, step in ((a, step_a), (b, step_b))
        ]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert a.run(w_a) == b.run(w_b) == 205.0
        tf.Session.reset("", ["shared_by_the_test"])
        for session, w in ((a, w_a), (b, w_b)):
            with pytest.raises(tf.errors.UninitializedError):
                session.run(w)


def test_a_closed_session_says_so():
    x = tf.constant(1.0)
    sess = tf.Session()
    sess.run(x)
    sess.close()
    sess.close()
    with pytest.raises(tf.errors.FailedPreconditionError, match="closed"):
        sess.run(x)


def test_with_makes_it_the_default_session_and_closes_it():
    x = tf.constant(3.0)
    with tf.Session() as sess:
        assert tf.get_default_session() is sess
        assert x.eval() == 3.0
    assert tf.get_default_session() is None
    with pytest.raises(tf.errors.InvalidArgumentError, match="no default session"):
        x.eval()
    with pytest.raises(tf.errors.FailedPreconditionError, match="closed"):
        sess.run(x)


def test_nested_fetches_keep_their_structure():
    from collections import namedtuple

    Pair = namedtuple("Pair", "left right")
    a, b = tf.constant(1.0), tf.constant([2.0, 3.0])
    op = tf.no_op()
    with tf.Session() as sess:
        got = sess.run({"pair": Pair(a, [b, op]), "name": ("Const:0", b.name)})
    assert got["pair"].left == 1.0 and got["pair"].right[1] is None
    assert got["name"][0] == 1.0
    np.testing.assert_array_equal(got["name"][1], [2, 3])


def test_make_callable_takes_values_in_order():
    x, y = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    with tf.Session() as sess:
        divide = sess.make_callable(x / y, [x, y])
        assert divide(6.0, 3.0) == 2.0
        with pytest.raises(tf.errors.InvalidArgumentError, match="takes 2 values"):
            divide(1.0)


def test_two_sessions_with_different_device_counts_agree():
    x = tf.placeholder(tf.float32, [4])
    with tf.device("cpu:1"):
        y = tf.sqrt(x)
    z = y + x
    fed = np.array([1, 4, 9, 16], np.float32)
    with tf.Session(config=tf.SessionConfig(device_count={"cpu": 2})) as many:
        np.testing.assert_array_equal(many.run(z, {x: fed}), [2, 6, 12, 20])
        assert {r.device for r in many.explain(z).rows} == {"cpu:0", "cpu:1"}
    with tf.Session() as one, pytest.raises(tf.errors.InvalidArgumentError, match="cpu:1") as caught:
        one.run(z, {x: fed})
    assert "test_session.py" in str(caught.value)


@pytest.mark.parametrize("fed", [np.zeros((2, 4), np.float32), np.zeros((2, 4), np.float64), [[0.0] * 4] * 2, 1.0])
def test_a_feed_of_another_shape_is_refused_whatever_form_it_has(fed):
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    y = x * 2.0
    with tf.Session() as sess:
        for _ in range(2):
            with pytest.raises(tf.errors.ShapeError, match="fed to x:0 has the wrong shape"):
                sess.run(y, {x: fed})
            assert sess.run(y, {x: np.ones((1, 3), np.float32)}).tolist() == [[2, 2, 2]]


def test_an_integer_that_is_fed_must_fit():
    n = tf.placeholder(tf.int32, [])
    with tf.Session() as sess:
        assert [sess.run(n, {n: v}) for v in (2**31 - 1, -(2**31))] == [2**31 - 1, -(2**31)]
        for v in (2**31, -(2**31) - 1, np.int64(2**31)):
            with pytest.raises(tf.errors.OutOfRangeError, match="does not fit into int32"):
                sess.run(n, {n: v})


def test_placements_are_logged_to_standard_error(capsys):
    x = tf.placeholder(tf.float32, [2])
    with tf.Session(config=tf.SessionConfig(log_device_placement=True)) as sess:
        sess.run(tf.exp(x, name="power"), {x: [1.0, 2.0]})
    told = capsys.readouterr()
    assert told.out == "" and "power: (Exp): cpu:0 cpu.exp" in told.err


@pytest.mark.parametrize("kind", [tf.Session, tf.InteractiveSession])
def test_what_belongs_elsewhere_in_a_session_is_told_where(kind):
    for given, argument in ((tf.SessionConfig(), "config"), (tf.Graph(), "graph")):
        with pytest.raises(tf.errors.InvalidArgumentError, match="target is of the wrong type") as raised:
            kind(given)
        assert raised.value.hint == f"pass it as {argument}=..."
    with pytest.raises(tf.errors.InvalidArgumentError, match="has no argument 'backends'") as raised:
        kind(backends=["cpu"])
    assert raised.value.hint == f"write tf.{kind.__name__}(config=tf.SessionConfig(backends=...))"
    with pytest.raises(tf.errors.InvalidArgumentError, match="has no argument 'confg'") as raised:
        kind(confg=tf.SessionConfig())
    assert raised.value.hint == "did you mean 'config'?"


def test_a_pin_to_a_device_that_is_not_there_names_one_that_is():
    with tf.device("/tpu:0"):
        made = tf.placeholder(tf.float32, [2]) + 1.0
    only_cpu, absent = tf.SessionConfig(backends=["cpu"]), "asks for the device tpu:0"
    with tf.Session(config=only_cpu) as sess, pytest.raises(tf.errors.InvalidArgumentError, match=absent) as raised:
        sess.run(made, {made.op.inputs[0]: [1.0, 2.0]})
    assert raised.value.hint.startswith('write tf.device("/cpu:0"), or set')


def test_a_device_that_is_planned_for_has_to_be_known():
    with pytest.raises(
        tf.errors.ConfigError, match="plan_for names queued, of which none of the backends cpu has devices"
    ):
        tf.Session(config=tf.SessionConfig(plan_for={"queued": "any"}), host=Host(allow=["queued"]))
    with pytest.raises(tf.errors.DeviceUnavailable, match="devices of type 'cpu' can't be planned for without one"):
        tf.Session(config=tf.SessionConfig(plan_for={"cpu": "any"}))
