"""A step ends in time: by a deadline of its session, or of its own."""

import threading

import graphdock as tf
import lab
import pytest
from graphdock.plugin.host import Host


@pytest.fixture
def late():
    """A step that stands in a kernel, and a session's host."""
    host = Host()
    gate = lab.Gate(host)
    yield host, gate
    gate.open.set()
    host.close()


def slow_loop():
    return tf.while_loop(lambda i: i < 10**9, lambda i: i + 1, [0])


def test_a_step_that_runs_past_the_sessions_timeout_is_ended(patience):
    sess = tf.Session(config=tf.SessionConfig(operation_timeout=0.05))
    loop = slow_loop()
    with pytest.raises(tf.errors.DeadlineExceededError, match="its limit of 0.05 s"):
        lab.within(patience, lambda: sess.run(loop))
    assert sess.run(tf.constant(3)) == 3


def test_a_step_that_runs_past_its_own_timeout_is_ended(patience):
    sess = tf.Session()
    loop = slow_loop()
    options = tf.RunOptions(timeout_in_ms=50)
    with pytest.raises(tf.errors.DeadlineExceededError):
        lab.within(patience, lambda: sess.run(loop, options=options))
    assert sess.run(tf.constant(3), options=tf.RunOptions(timeout_in_ms=60_000)) == 3


@pytest.mark.parametrize("long", [False, True], ids=["one function", "several functions"])
@pytest.mark.plain
def test_a_late_step_names_the_node_that_was_next_and_its_session_goes_on(late, long):
    """Late by itself: a kernel passes the deadline, and nothing after it runs."""
    host, gate = late
    x = tf.placeholder(tf.float32, [2])
    y = x
    for _ in range(1100 if long else 1):
        y = tf.tanh(y)
    count = tf.Variable([0.0, 0.0])
    held = gate(y)
    with tf.control_dependencies([held]):
        after = count.assign_add(x, name="the_next", read_value=False)
    sess = tf.Session(host=host)
    sess.run(count.initializer)
    gate.open.set()
    metadata, hour = tf.RunMetadata(), tf.RunOptions(timeout_in_ms=3_600_000)

    def pass_the_deadline():
        (step,) = metadata.plan._live
        ended = threading.Event()
        step.token.watch(lambda error: ended.set())
        step.limit(0.0)
        assert ended.wait(60)

    gate.on_entry = pass_the_deadline
    with pytest.raises(tf.errors.DeadlineExceededError) as caught:
        sess.run(after, {x: [1.0, 2.0]}, hour, metadata)
    assert caught.value.op.name == "the_next"
    assert "test_steps_in_time.py" in caught.value.site
    gate.on_entry = lambda: None
    sess.run(after, {x: [1.0, 2.0]}, hour)
    sess.run(after, {x: [1.0, 2.0]})
    assert sess.run(count).tolist() == [2.0, 4.0]


def test_a_step_with_a_deadline_runs_the_plan_that_one_without_has_made():
    x = tf.placeholder(tf.float32, [2])
    loop = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 2.0), [0, tf.tanh(x)])
    plain, timed = tf.RunMetadata(), tf.RunMetadata()
    with tf.Session() as sess:
        sess.run(loop, {x: [1.0, 2.0]}, None, plain)
        sess.run(loop, {x: [1.0, 2.0]}, tf.RunOptions(timeout_in_ms=60_000), timed)
    assert timed.cached and timed.plan is plain.plan


@pytest.mark.parametrize("given", [-1, 0.5, True, "10"])
def test_a_wrong_timeout(given):
    with pytest.raises(tf.errors.InvalidArgumentError, match="timeout_in_ms is wrong"):
        tf.RunOptions(timeout_in_ms=given)


def test_options_of_another_kind():
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match="options are no RunOptions"):
        sess.run(tf.constant(1), options={"timeout_in_ms": 5})


# -- cancellation


@pytest.mark.parametrize("limit", [0, 60_000], ids=["without a deadline", "with one"])
def test_closing_a_session_ends_the_steps_that_run(late, limit):
    host, gate = late
    x = tf.placeholder(tf.float32, [2])
    done = []
    last = tf.identity(tf.py_func(lambda a: done.append(a) or a, [gate(x)], tf.float32, name="the_last"))
    sess = tf.Session(host=host)
    errors = []

    def work():
        try:
            sess.run(last, {x: [1.0, 2.0]}, tf.RunOptions(timeout_in_ms=limit))
        except tf.errors.CancelledError as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
        assert gate.inside.acquire(timeout=60)
    sess.close()
    gate.open.set()
    for thread in threads:
        thread.join(60)
    assert [e.op.name for e in errors] == ["the_last"] * 3 and len(set(map(id, errors))) == 3
    assert not done


def test_a_cancelled_step_leaves_its_context_fit_for_the_next(late):
    host, gate = late
    x = tf.placeholder(tf.float32, [2])
    y = gate(x) + 1.0
    sess = tf.Session(host=host)
    metadata = tf.RunMetadata()
    gate.open.set()
    sess.run(y, {x: [1.0, 2.0]}, run_metadata=metadata)
    (step,) = metadata.plan.idle
    reason = tf.errors.AbortedError("another part failed")
    gate.on_entry = lambda: step.cancel(reason)
    with pytest.raises(tf.errors.AbortedError, match="another part failed") as caught:
        sess.run(y, {x: [1.0, 2.0]})
    assert caught.value is reason and reason.op is y.op
    gate.on_entry = lambda: None
    assert sess.run(y, {x: [1.0, 2.0]}).tolist() == [2.0, 3.0]


# -- waits


def test_a_wait_for_a_variable_ends_with_the_steps_timeout(late, patience):
    host, gate = late
    v = tf.Variable([1.0])
    holding = gate(v.assign_add([1.0]))
    update = v.assign_add([1.0], read_value=False)
    sess = tf.Session(host=host)
    sess.run(v.initializer)
    threading.Thread(target=sess.run, args=(holding,), daemon=True).start()
    assert gate.inside.acquire(timeout=60)
    options = tf.RunOptions(timeout_in_ms=50)
    with pytest.raises(tf.errors.DeadlineExceededError):
        lab.within(patience, lambda: sess.run(update, options=options))


def test_a_plugins_executor_is_asked_for_by_its_name(late):
    from graphdock.contracts import Executor

    class Other(Executor):
        name = "other"

        def compile(self, *args):
            raise tf.errors.UnimplementedError("the other executor compiles nothing")

    host, _ = late
    lab.plug(host, register_executors=lambda: [Other()])
    with pytest.raises(tf.errors.UnimplementedError, match="compiles nothing"):
        tf.Session(config=tf.SessionConfig(executor="other"), host=host).run(tf.constant(1.0) + 1.0)
