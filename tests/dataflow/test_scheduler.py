"""Steps that wait: no thread is held, the first error stops all that waits, and nothing that was handed over is lost."""

from __future__ import annotations

import os
import signal
import threading

import graphdock as tf
import lab
import numpy as np
import pytest
from graphdock.contracts import KernelDef
from graphdock.plugin.host import Host

PATIENCE = 60.0


@pytest.fixture
def host():
    """The host of a default graph, to which a test adds ops of its own."""
    host = Host()
    with tf.Graph(host=host).as_default():
        yield host


def dataflow(host, **settings):
    return tf.Session(config=tf.SessionConfig(executor="dataflow", **settings), host=host)


class Started(threading.Thread):
    """A call on a thread of its own: what it returned, or raised."""

    def __init__(self, function, *args):
        super().__init__(daemon=True)
        self.function, self.args = function, args
        self.result = self.error = None
        self.start()

    def run(self):
        try:
            self.result = self.function(*self.args)
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            self.error = error

    def ended(self):
        self.join(PATIENCE)
        assert not self.is_alive()
        if self.error is not None:
            raise self.error
        return self.result


def test_two_waits_end_in_whatever_order_they_can(host):
    first, second = lab.Mailbox(host, "First"), lab.Mailbox(host, "Second")
    fetches = [first() + 1.0, second() + 1.0]
    with dataflow(host) as sess:
        for givers in ((first, second), (second, first)):
            step = Started(sess.run, fetches)
            for mailbox in givers:
                assert mailbox.came.acquire(timeout=PATIENCE)
            for i, mailbox in enumerate(givers):
                mailbox.hand_over([10.0 * i])
            got = [float(a[0]) for a in step.ended()]
            assert got == ([1.0, 11.0] if givers[0] is first else [11.0, 1.0])


def test_a_wait_made_before_what_ends_it(host):
    """In one step: the straight-line executor would take them in the order in which they were made."""
    mailbox = lab.Mailbox(host)
    taken = mailbox() * 2.0
    given = tf.py_func(lambda: (mailbox.hand_over([4.0]), np.int32(7))[1], [], tf.int32)
    for executor in ("auto", "dataflow"):
        with tf.Session(config=tf.SessionConfig(executor=executor), host=host) as sess:
            got = Started(sess.run, [taken, given]).ended()
        assert (got[0].tolist(), int(got[1])) == ([8.0], 7)


def test_ten_thousand_waits_of_one_step_hold_no_thread(host):
    mailbox, count = lab.Mailbox(host), 10_000

    def body(i, total):
        return i + 1, total + mailbox()

    loop = tf.while_loop(lambda i, total: i < count, body, [0, tf.zeros([1])], parallel_iterations=count)
    with dataflow(host) as sess:
        before = set(threading.enumerate())
        step = Started(sess.run, loop[1])
        for _ in range(count):
            assert mailbox.came.acquire(timeout=PATIENCE)
        assert set(threading.enumerate()) - before == {step}
        for i in range(count):
            mailbox.hand_over([float(i % 7)])
        assert step.ended().tolist() == [sum(i % 7 for i in range(count))]


def test_iterations_that_end_in_another_order_keep_theirs(host):
    """What the forward loop keeps is read by the iteration that made it."""
    mailbox = lab.Mailbox(host)
    x = tf.placeholder(tf.float32, [1])

    def body(i, total):
        return i + 1, total + tf.square(x) * mailbox()

    total = tf.while_loop(lambda i, total: i < 3, body, [0, tf.zeros([1])])[1]
    (slope,) = tf.gradients(total, x)
    with dataflow(host) as sess:
        step = Started(sess.run, [total, slope], {x: [3.0]})
        for _ in range(3):
            assert mailbox.came.acquire(timeout=PATIENCE)
        mailbox.waiting.reverse()
        for value in (1.0, 10.0, 100.0):
            mailbox.hand_over([value])
        got = step.ended()
    assert [g.tolist() for g in got] == [[9.0 * 111.0], [6.0 * 111.0]]


def test_a_wait_in_a_branch_that_is_not_taken_does_not_begin(host):
    mailbox = lab.Mailbox(host)
    take = tf.placeholder(tf.bool, [])
    y = tf.cond(take, lambda: mailbox() + 1.0, lambda: tf.zeros([1]))
    with dataflow(host) as sess:
        assert Started(sess.run, y, {take: False}).ended().tolist() == [0.0]
        mailbox.hand_over([5.0])
        assert Started(sess.run, y, {take: True}).ended().tolist() == [6.0]


def test_the_first_error_cancels_what_waits_and_says_so(host):
    mailbox = lab.Mailbox(host)
    go = threading.Event()
    x = tf.placeholder(tf.float32, [])

    def fail():
        for _ in range(2):
            assert mailbox.came.acquire(timeout=PATIENCE)
        raise ValueError("no such file")

    waits = [mailbox() for _ in range(2)]
    with dataflow(host) as sess:
        fails = tf.py_func(fail, [], tf.float32, name="fails")
        with pytest.raises(tf.errors.InvalidArgumentError, match="no such file") as caught:
            Started(sess.run, [*waits, fails]).ended()
        assert caught.value.op.name == "fails"
        assert caught.value.__notes__ == [f"cancelled with it: {waits[0].op.name}, {waits[1].op.name}"]
        assert len(mailbox.waiting) == 2 and all(f.cancelled() for f in mailbox.waiting)
        for value in (1.0, 2.0):
            mailbox.hand_over([value])
        assert len(mailbox.kept) == 2  # nothing is lost to waits that were cancelled
        assert [a.tolist() for a in Started(sess.run, waits).ended()] in ([[1.0], [2.0]], [[2.0], [1.0]])
    del go, x


def test_a_future_that_fails_is_an_error_of_its_node(host):
    mailbox = lab.Mailbox(host)
    waits = [mailbox(), mailbox()]
    with dataflow(host) as sess:
        step = Started(sess.run, waits)
        for _ in range(2):
            assert mailbox.came.acquire(timeout=PATIENCE)
        failing, other = mailbox.waiting
        failing.set_running_or_notify_cancel()
        failing.set_exception(tf.errors.OutOfRangeError("the queue is closed"))
        with pytest.raises(tf.errors.OutOfRangeError, match="closed") as caught:
            step.ended()
    assert caught.value.op.type == "lab.Mailbox" and other.cancelled()


@pytest.mark.parametrize("how", ["close", "deadline"])
def test_a_step_that_is_stopped_while_it_waits(host, how):
    mailbox = lab.Mailbox(host)
    wait = mailbox()
    sess = dataflow(host)
    options = tf.RunOptions(timeout_in_ms=50) if how == "deadline" else None
    step = Started(lambda: sess.run(wait, options=options))
    assert mailbox.came.acquire(timeout=PATIENCE)
    if how == "close":
        sess.close()
    kind = tf.errors.DeadlineExceededError if how == "deadline" else tf.errors.CancelledError
    with pytest.raises(kind):
        step.ended()
    assert mailbox.waiting[0].cancelled()
    sess.close()


def test_an_interrupt_ends_a_wait(host):
    mailbox = lab.Mailbox(host)
    wait = mailbox()
    ended = threading.Event()

    def interrupt():
        assert mailbox.came.acquire(timeout=PATIENCE)
        while not ended.is_set():  # one may be lost in a finalizer or a callback of the garbage collector
            os.kill(os.getpid(), signal.SIGINT)
            ended.wait(1)

    def press(*args):
        if not ended.is_set():
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, press)
    try:
        with dataflow(host) as sess:
            thread = Started(interrupt)
            with pytest.raises(KeyboardInterrupt):
                try:
                    sess.run(wait)
                finally:
                    ended.set()
            thread.ended()
            assert mailbox.waiting[0].cancelled()
            mailbox.hand_over([2.0])
            assert sess.run(wait).tolist() == [2.0]
    finally:
        ended.set()
        signal.signal(signal.SIGINT, before)


def test_a_kernel_on_another_thread_ends_before_its_step_does(told, host):
    """It may write what the step has locked."""
    begun, end, ended = threading.Event(), threading.Event(), []

    def slow(x):
        begun.set()
        assert end.wait(PATIENCE)
        ended.append(x)
        return np.tanh(x)

    def fails(x):
        assert begun.wait(PATIENCE)
        threading.Timer(0.05, end.set).start()
        raise ValueError("failed")

    armed = []
    for op, kernel in (("Tanh", slow), ("Sin", fails)):
        usual = getattr(np, op.lower())
        build = lambda ctx, k=kernel, usual=usual: lambda x: k(x) if armed else usual(x)  # noqa: E731
        host.kernels.add(
            KernelDef(op, "cpu", build, modes=("fresh",), priority=9, name=f"{op}ing"), "cpu", "graphdock_cpu"
        )
    x = tf.placeholder(tf.float32, [2])
    fetches = [tf.tanh(x), tf.sin(x + 1.0), tf.exp(x)]
    with told(hand_off=0.0, host=host, inter_op_threads=3) as sess:
        sess.run(fetches, {x: [0.0, 1.0]})
        armed.append(True)
        with pytest.raises(tf.errors.InternalError, match="failed"):
            sess.run(fetches, {x: [0.0, 1.0]})
        assert len(ended) == 1


def test_what_a_step_returns_is_the_callers(host):
    x = tf.placeholder(tf.float32, [2, 2])
    v = tf.Variable([1.0, 2.0])
    fetches = [tf.identity(x), tf.reshape(x, [4]), v.read_value(), tf.cond(x[0, 0] > 0.0, lambda: x, lambda: x + 1.0)]
    fetches += [tf.tanh(x), tf.tanh(x)]
    feed = np.ones((2, 2), np.float32)
    with dataflow(host) as sess:
        sess.run(v.initializer)
        got = sess.run(fetches, {x: feed})
        for array in got:
            array[...] = 9.0
        assert feed.tolist() == [[1.0, 1.0], [1.0, 1.0]] and sess.run(v).tolist() == [1.0, 2.0]
        again = sess.run(fetches, {x: feed})
    for one, other in zip(got, again, strict=True):
        assert not np.may_share_memory(one, other)
    assert not np.may_share_memory(again[-1], again[-2])


def test_a_traced_wait_is_reported(host):
    mailbox = lab.Mailbox(host)
    wait = mailbox() + 1.0
    metadata = tf.RunMetadata()
    with dataflow(host) as sess:
        step = Started(lambda: sess.run(wait, options=tf.RunOptions(trace_level=3), run_metadata=metadata))
        assert mailbox.came.acquire(timeout=PATIENCE)
        mailbox.hand_over([1.0])
        assert step.ended().tolist() == [2.0]
        mailbox.hand_over([5.0])
        assert Started(sess.run, wait).ended().tolist() == [6.0]  # and a step that is not traced runs as before
    kinds = [event.kind for event in metadata.events]
    assert kinds.count("wait") == 1 and "kernel" in kinds
    assert all(event.seconds >= 0.0 for event in metadata.events)


def test_numbers_that_are_not_finite_name_their_node(host):
    x = tf.placeholder(tf.float32, [2])
    v = tf.Variable([1.0, 1.0])
    bad, update = tf.log(x, name="bad") * 0.0, v.assign_add(x, name="update")
    with dataflow(host, check_numerics=True) as sess:
        sess.run(v.initializer)
        sess.run([bad, update], {x: [1.0, 2.0]})
        with pytest.raises(tf.errors.InvalidArgumentError, match="bad.*NaN or infinity"):
            sess.run(bad, {x: [0.0, 1.0]})
        with pytest.raises(tf.errors.InvalidArgumentError, match="NaN or infinity"):
            sess.run(update, {x: [np.inf, 1.0]})


def test_many_threads_run_one_session_on_shared_workers(told, host):
    """Totals are exact: updates hold their locks whichever thread computes."""
    x = tf.placeholder(tf.float32, [4])
    v = tf.Variable(np.zeros(4, np.float32))
    loop = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, tf.tanh(a) + x), [0, x])[1]
    with tf.control_dependencies([loop]):
        more = v.assign_add(tf.ones([4]), read_value=False)
    with told(hand_off=0.0, host=host, inter_op_threads=3) as sess:
        sess.run(v.initializer)
        expected = sess.run(loop, {x: [0.1, 0.2, 0.3, 0.4]})

        def work():
            for _ in range(20):
                got = sess.run([loop, more], {x: [0.1, 0.2, 0.3, 0.4]})[0]
                np.testing.assert_array_equal(got, expected)

        threads = [Started(work) for _ in range(6)]
        for thread in threads:
            thread.ended()
        assert sess.run(v).tolist() == [120.0] * 4


def test_a_forked_child_hands_kernels_to_threads_of_its_own(told, host):
    x = tf.placeholder(tf.float32, [2])
    ys = [tf.tanh(x * float(i)) for i in range(4)]
    with told(hand_off=0.0, host=host, inter_op_threads=2) as sess:
        expected = [a.tolist() for a in [sess.run(ys, {x: [0.5, 1.0]}) for _ in range(2)][1]]
        child = os.fork()
        if not child:
            code = 1
            try:
                signal.alarm(50)
                code = 0 if [a.tolist() for a in sess.run(ys, {x: [0.5, 1.0]})] == expected else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
