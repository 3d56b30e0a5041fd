"""Steps that wait: nobody is kept from what the step holds, all that stops a step wakes it, and a wait that ends takes nothing."""

import ctypes
import threading

import graphdock as tf
import lab
import numpy as np
import pytest
from graphdock.plugin.host import Host


@pytest.fixture
def host():
    host = Host()
    yield host
    host.close()


class Step:
    """A step on a thread of its own."""

    def __init__(self, run):
        self.results, self.errors = [], []
        self._thread = threading.Thread(target=self._work, args=(run,), daemon=True)
        self._thread.start()

    def _work(self, run):
        try:
            self.results.append(run())
        except tf.errors.OpError as error:
            self.errors.append(error)

    def join(self):
        self._thread.join(60)
        assert not self._thread.is_alive(), "the step still waits"
        return self


def test_a_step_gets_what_is_handed_over_before_it_or_later(host):
    mailbox = lab.Mailbox(host)
    y = mailbox() * 2.0
    sess = tf.Session(host=host)
    mailbox.hand_over([1.0])
    assert sess.run(y).tolist() == [2.0]
    step = Step(lambda: sess.run(y))
    assert mailbox.came.acquire(timeout=60) and mailbox.came.acquire(timeout=60)
    mailbox.hand_over([3.0])
    assert step.join().results[0].tolist() == [6.0]


def test_a_step_that_waits_holds_no_variable(host, patience):
    mailbox = lab.Mailbox(host)
    v = tf.Variable([1.0])
    first = v.assign_add([1.0], read_value=False)
    with tf.control_dependencies([first]):
        waited = mailbox() + 0.0
    with tf.control_dependencies([waited]):
        last = v.assign_add([100.0], read_value=False)
    update = v.assign_add([10.0], read_value=False)
    sess = tf.Session(host=host)
    sess.run(v.initializer)
    step = Step(lambda: sess.run(last))
    assert mailbox.came.acquire(timeout=60)
    lab.within(patience, lambda: sess.run(update))
    assert sess.run(v).tolist() == [12.0]
    mailbox.hand_over([0.0])
    assert not step.join().errors and sess.run(v).tolist() == [112.0]


ENDS = {
    "close": (tf.errors.CancelledError, lambda sess, metadata: sess.close()),
    "deadline": (tf.errors.DeadlineExceededError, lambda sess, metadata: live(metadata).limit(0.0)),
    "cancelled": (tf.errors.AbortedError, lambda sess, metadata: live(metadata).cancel(tf.errors.AbortedError("stop"))),
}


def live(metadata):
    (step,) = metadata.plan._live
    return step


@pytest.mark.parametrize("end", ENDS)
def test_what_stops_a_step_wakes_it_and_takes_nothing(host, end):
    """Also in a loop, and behind an update; the node that waited is named, and the next step of the context is whole."""
    mailbox = lab.Mailbox(host)
    loop = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a + mailbox()), [0, tf.zeros([1])])[1]
    sess = tf.Session(host=host)
    metadata = tf.RunMetadata()
    mailbox.kept.extend(np.float32([1.0]) for _ in range(3))
    assert sess.run(loop, run_metadata=metadata).tolist() == [3.0]
    for _ in range(3):
        assert mailbox.came.acquire(timeout=60)
    step = Step(lambda: sess.run(loop, None, None, tf.RunMetadata()))
    mailbox.hand_over([1.0])
    for _ in range(2):
        assert mailbox.came.acquire(timeout=60)
    kind, act = ENDS[end]
    act(sess, metadata)
    (error,) = step.join().errors
    assert isinstance(error, kind) and error.op_name.endswith("Mailbox") and "lab.py" in error.site
    mailbox.hand_over([5.0])  # the wait that ended takes nothing
    assert [k.tolist() for k in mailbox.kept] == [[5.0]]
    if end != "close":
        mailbox.kept.extend(np.float32([1.0]) for _ in range(2))
        assert sess.run(loop).tolist() == [7.0]


@pytest.mark.parametrize("end", ENDS)
def test_what_stops_a_step_stops_a_loop_of_scalars_alone(host, end):
    """It calls no kernel, whose place an error could take."""
    entered = threading.Event()
    gate = lab.Gate(host)
    gate.on_entry = entered.set
    gate.open.set()
    with tf.control_dependencies([gate(tf.zeros([1]))]):
        first = tf.constant(0)
    turns = tf.while_loop(lambda i: i >= 0, lambda i: i * 1, [first])
    sess = tf.Session(host=host)
    metadata = tf.RunMetadata()
    step = Step(lambda: sess.run(turns, None, None, metadata))
    assert entered.wait(60)
    kind, act = ENDS[end]
    act(sess, metadata)
    (error,) = step.join().errors
    assert isinstance(error, kind)


def test_an_interrupted_thread_cancels_what_it_waits_for(host):
    """KeyboardInterrupt, raised in the thread that waits."""
    mailbox = lab.Mailbox(host)
    y = mailbox() + 0.0
    sess = tf.Session(host=host)
    caught = []

    def work():
        try:
            sess.run(y)
        except KeyboardInterrupt as error:
            caught.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    assert mailbox.came.acquire(timeout=60)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(KeyboardInterrupt))
    (future,) = mailbox.waiting
    thread.join(60)
    assert caught and future.cancelled()


def test_an_error_of_a_future_names_its_node(host):
    mailbox = lab.Mailbox(host)
    y = mailbox() + 0.0
    sess = tf.Session(host=host)
    step = Step(lambda: sess.run(y))
    assert mailbox.came.acquire(timeout=60)
    mailbox.waiting.popleft().set_exception(tf.errors.OutOfRangeError("the mailbox is closed"))
    (error,) = step.join().errors
    assert isinstance(error, tf.errors.OutOfRangeError) and error.op_name.endswith("Mailbox")


def test_waits_in_an_order_run_and_others_are_refused_by_the_executor_of_straight_lines(host):
    first, second = lab.Mailbox(host, "First"), lab.Mailbox(host, "Second")
    sess = tf.Session(host=host, config=tf.SessionConfig(executor="straight_line"))
    a = first()
    with tf.control_dependencies([a]):
        ordered = second()
    first.hand_over([1.0])
    second.hand_over([2.0])
    assert sess.run(a + ordered).tolist() == [3.0]
    with pytest.raises(
        tf.errors.UnimplementedError, match="straight_line: .*First.* and .*Second.* may wait, and nothing says"
    ):
        sess.run(first() + second())
    branch = tf.cond(tf.constant(True), lambda: first() + 1.0, lambda: tf.zeros([1]))
    with pytest.raises(
        tf.errors.UnimplementedError, match="straight_line: cond.* and .*Second.* may wait|Second.* and cond"
    ):
        sess.run(branch + second())
