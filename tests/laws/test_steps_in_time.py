"""A step ends in time: by a deadline of its session, or of its own."""

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


@pytest.mark.xfail(strict=True, reason="5: operation_timeout is refused")
def test_a_step_that_runs_past_the_sessions_timeout_is_ended(patience):
    sess = tf.Session(config=tf.SessionConfig(operation_timeout=0.05))
    with pytest.raises(tf.errors.DeadlineExceededError):
        lab.within(patience, lambda: sess.run(slow_loop()))
    assert sess.run(tf.constant(3)) == 3


@pytest.mark.xfail(strict=True, reason="5: RunOptions has no timeout")
def test_a_step_that_runs_past_its_own_timeout_is_ended(patience):
    sess = tf.Session()
    options = tf.RunOptions(timeout_in_ms=50)
    with pytest.raises(tf.errors.DeadlineExceededError):
        lab.within(patience, lambda: sess.run(slow_loop(), options=options))
    assert sess.run(tf.constant(3), options=tf.RunOptions(timeout_in_ms=60_000)) == 3


@pytest.mark.xfail(strict=True, reason="5: a wait for another step's variable has no deadline")
def test_a_wait_for_a_variable_ends_with_the_steps_timeout(late, patience):
    import threading

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


@pytest.mark.xfail(strict=True, reason="8: executor= takes no plugin's executor")
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
