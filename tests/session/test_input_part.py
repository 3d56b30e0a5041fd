"""What waits for a step's inputs runs first and holds nothing; the rest is a step like one that is fed."""

from __future__ import annotations

import re
import threading

import graphdock as tf
import numpy as np
import pytest
from graphdock.plugin.host import Host

from tests.laws import lab


@pytest.fixture
def host():
    host = Host()
    with tf.Graph().as_default():
        yield host
    host.close()


def training(x, width=1):
    """A linear model, its loss, an update."""
    w = tf.Variable(tf.ones([width]), name="w")
    loss = tf.reduce_sum(tf.square(x * w.read_value() - 1.0), name="loss")
    return w, loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss)


def test_a_fed_step_and_one_whose_input_waits_train_alike_and_hold_their_variables(host):
    mailbox = lab.Mailbox(host)
    x = tf.placeholder(tf.float32, [1])
    results = []
    for given in (x, mailbox()):
        w, loss, train = training(given)
        with tf.Session(host=host) as sess:
            sess.run(tf.global_variables_initializer())
            seen = []
            for value in ([2.0], [3.0], [0.5]):
                mailbox.hand_over(value)
                feed = {x: value} if given is x else None
                metadata = tf.RunMetadata()
                seen.append(sess.run([loss, train], feed, None, metadata)[0])
            assert metadata.plan.program.holds
            seen.append(sess.run(w))
            results.append((seen, metadata.plan.source))
    (fed, source), (waited, same) = results
    np.testing.assert_array_equal(np.ravel(fed[:3]), np.ravel(waited[:3]))
    np.testing.assert_array_equal(fed[3], waited[3])
    assert re.sub(r"\w+", "x", source) == re.sub(r"\w+", "x", same)


def test_explain_shows_both_parts_and_all_kernels(host):
    mailbox = lab.Mailbox(host)
    _, loss, train = training(mailbox())
    with tf.Session(host=host) as sess:
        explained = sess.explain([loss, train])
    (part,) = explained.before
    assert part.kernels() == {"user.mailbox": 1} and explained.kernels()["user.mailbox"] == 1
    assert "user.mailbox" not in {r.kernel for r in explained.rows}
    text = str(explained)
    assert text.index("inputs first") < text.index("user.mailbox") < text.index("cpu.square")


def test_what_crosses_is_computed_once(host):
    """A random number and a call of Python that the inputs and the rest both use, and one that the rest awaits only."""
    mailbox, calls = lab.Mailbox(host), []

    def count(a):
        calls.append(a)
        return a

    drawn = tf.py_func(count, [tf.random_uniform([1], seed=1)], tf.float32)
    drawn.set_shape([1])
    noted = tf.py_func(lambda: calls.append("noted") or np.int32(0), [], tf.int32)
    with tf.control_dependencies([noted]):
        x = mailbox() + drawn
    w, _, train = training(x + drawn)
    with tf.Session(host=host) as sess:
        sess.run(tf.global_variables_initializer())
        mailbox.hand_over([1.0])
        number, got, _ = sess.run([drawn, x, train])
    assert [isinstance(c, str) for c in calls].count(True) == 1 and len(calls) == 2
    assert got == number + 1.0


def test_the_shapes_that_come_are_planned_for(host):
    """Rows of a batch are not known before; each plan is for the batch of its step, as of a feed."""
    batches = [np.ones([n], np.float32) for n in (3, 5, 3)]
    x = tf.py_func(lambda: batches.pop(0), [], tf.float32)
    x.set_shape([None])
    _, loss, train = training(tf.reshape(x, [-1, 1]))
    with tf.Session(host=host) as sess:
        sess.run(tf.global_variables_initializer())
        planned = []
        for _ in range(3):
            metadata = tf.RunMetadata()
            sess.run([loss, train], None, None, metadata)
            planned.append((metadata.plan.graph.inputs[0].shape, metadata.cached))
    assert planned == [((3,), False), ((5,), False), ((3,), True)]


def parts(fetches, host):
    with tf.Session(host=host) as sess:
        return len(sess.explain(fetches).before)


def test_what_comes_after_something_of_the_rest_stays_in_it(host):
    mailbox = lab.Mailbox(host)
    w, loss, train = training(tf.constant([2.0]))
    with tf.control_dependencies([train]):
        late = mailbox() + 0.0
    assert parts([late, w.assign(late)], host) == 0, "a control input"
    assert parts([mailbox() * 2.0], host) == 0, "the rest holds nothing"
    read = tf.py_func(lambda a: a, [w.read_value()], tf.float32)
    assert parts([read, train], host) == 0, "it reads a variable"
    branch = tf.cond(tf.constant(True), lambda: mailbox() + 1.0, lambda: tf.zeros([1]))
    assert parts([w.assign(branch)], host) == 1, "a wait in a branch"
    reading = tf.cond(tf.constant(True), lambda: mailbox() + w.read_value(), lambda: tf.zeros([1]))
    assert parts([w.assign(reading)], host) == 0, "a branch that reads a variable"
    printed = tf.Print(w.read_value(), [w.read_value()])
    call = tf.py_func(lambda: np.float32([1.0]), [], tf.float32)
    call.set_shape([1])
    assert parts([printed, w.assign(call)], host) == 0, "what talks to the world keeps its order"


def test_a_control_edge_on_what_has_run_holds(host):
    """The update follows a call of Python that gives it nothing."""
    calls = []
    call = tf.py_func(lambda: calls.append(1) or np.int32(0), [], tf.int32)
    w = tf.Variable([1.0])
    with tf.control_dependencies([call]):
        update = w.assign_add([1.0])
    with tf.Session(host=host) as sess:
        sess.run(w.initializer)
        assert sess.run(update).tolist() == [2.0] and calls == [1]
        sess.run([call, update.op])
        assert calls == [1, 1] and sess.run(w).tolist() == [3.0]


def test_no_variable_is_held_while_inputs_are_waited_for(host):
    mailbox = lab.Mailbox(host)
    w, _, train = training(mailbox())
    update = w.assign_add([1.0], read_value=False)
    with tf.Session(host=host) as sess:
        sess.run(w.initializer)
        step = threading.Thread(target=lambda: sess.run(train))
        step.start()
        assert mailbox.came.acquire(timeout=60)
        lab.within(60, lambda: sess.run(update))
        assert sess.run(w).tolist() == [2.0]
        mailbox.hand_over([1.0])
        step.join(60)
        assert sess.run(w).tolist() == [pytest.approx(1.8)]


@pytest.mark.parametrize("in_flight", [1, 2])
def test_a_deadline_is_one_for_both_parts_and_results_are_structures(host, in_flight):
    mailbox = lab.Mailbox(host)
    w, loss, train = training(mailbox())
    with tf.Session(host=host, config=tf.SessionConfig(steps_in_flight=in_flight)) as sess:
        sess.run(w.initializer)
        with pytest.raises(tf.errors.DeadlineExceededError) as caught:
            sess.run(train, options=tf.RunOptions(timeout_in_ms=20))
        assert caught.value.op.name == "Mailbox" and sess.run(w).tolist() == [1.0]
        mailbox.hand_over([1.0])
        got = sess.run({"a": (loss, train), "b": [loss]}, options=tf.RunOptions(timeout_in_ms=600_000))
        assert got == {"a": (0.0, None), "b": [0.0]}


def test_a_reset_between_steps_and_a_graph_that_grows(host):
    mailbox = lab.Mailbox(host)
    with tf.container("shared"):
        w, loss, train = training(mailbox())
    with tf.Session(host=host) as sess:
        sess.run(w.initializer)
        for _ in range(2):
            mailbox.hand_over([1.0])
            assert sess.run([loss, train])[0] == 0.0
        tf.Session.reset("", ["shared"], host=host)
        mailbox.hand_over([1.0])
        with pytest.raises(tf.errors.FailedPreconditionError):
            sess.run([loss, train])
        sess.run(w.initializer)
        more = tf.identity(loss, name="more")
        mailbox.hand_over([1.0])
        assert sess.run([more, train])[0] == 0.0
