"""Concurrent steps on one variable: nothing is lost, nobody starves, and what would wait for itself is told so."""

import os
import subprocess
import sys
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


def test_an_update_of_a_variable_of_unknown_shape_is_never_lost():
    """Another step runs whole at every point of an update at which a thread may be switched."""
    v = tf.Variable(np.zeros(2, np.float32), validate_shape=False)
    called = tf.py_func(lambda: np.int32(0), [], tf.int32)
    with tf.control_dependencies([called]):
        add = v.assign_add(tf.ones([2]), read_value=False)
    longer = v.assign(tf.concat([v.read_value(), [0.0]], 0)).op
    with tf.control_dependencies([longer]):
        resize = v.assign(v.read_value()[:2]).op
    sess = tf.Session()
    for step in (v.initializer, add, resize):
        sess.run(step)

    def points(at):
        """Run ``add`` with ``resize`` in the middle of it; whether it came so far."""
        seen = 0

        def hook(frame, event, arg):
            nonlocal seen
            seen += 1
            if seen == at + 1:
                other = threading.Thread(target=sess.run, args=(resize,), daemon=True)
                other.start()
                others.append(other)
                other.join(0.05)  # while the update holds its lock, the other one waits for it

        others = []
        sys.setprofile(hook)
        try:
            sess.run(add)
        finally:
            sys.setprofile(None)
        for other in others:
            other.join(60)
        return bool(others)

    at = 0
    while at < 200:
        sess.run(v.initializer)
        if not points(at):
            break
        assert sess.run(v).tolist() == [1.0, 1.0], f"the update is lost when the other step runs at its point {at}"
        at += 1


def test_who_arrives_after_a_waiting_writer_waits_behind_it(host):
    """Readers follow one another without a gap; the writer, which came after the first of them, runs before the hundredth."""
    v = tf.Variable([1.0])
    write = v.assign_add([1.0], read_value=False)
    gate = lab.Gate(host)
    gate.open.set()
    read = gate(v.read_value())
    sess = tf.Session(host=host)
    sess.run(v.initializer)
    threads, entered, written = [], [], threading.Event()

    def begin(function):
        threads.append(threading.Thread(target=function, daemon=True))
        threads[-1].start()

    def writing():
        sess.run(write)
        written.set()

    def reading():
        """Runs inside each read: start another reader, and stay until it is inside, or clearly not let in."""
        event = threading.Event()
        if entered:
            entered[-1].set()
        entered.append(event)
        if len(entered) == 1:
            begin(writing)
        if len(entered) < 100 and not written.is_set():
            begin(lambda: sess.run(read))
            event.wait(0.05)

    gate.on_entry = reading
    begin(lambda: sess.run(read))
    for thread in threads:  # grows meanwhile
        thread.join(60)
    assert len(entered) < 100, "the writer ran after all readers"


@pytest.mark.parametrize("reads", [True, False])
def test_a_kernel_that_waits_can_be_woken_by_a_step_on_the_same_variable(host, patience, reads):
    v = tf.Variable([1.0])
    gate = lab.Gate(host, waits=True)
    if reads:
        waiting = gate(v.read_value())
    else:
        with tf.control_dependencies([v.assign_add([1.0], read_value=False)]):
            waiting = gate(tf.constant([1.0]))
    update = v.assign_add([10.0], read_value=False)
    sess = tf.Session(host=host)
    sess.run(v.initializer)
    waiter = threading.Thread(target=sess.run, args=(waiting,), daemon=True)
    waiter.start()
    assert gate.inside.acquire(timeout=60)
    try:
        lab.within(patience, lambda: sess.run(update))
    finally:
        gate.open.set()
        waiter.join(60)
    assert sess.run(v).tolist() == ([11.0] if reads else [12.0])


@pytest.mark.parametrize("update", [True, False])
def test_a_kernel_that_runs_a_step_on_its_own_steps_variable_is_not_left_waiting(host, patience, update):
    """It may run, or be refused with an error that names the variable."""
    v = tf.Variable([1.0], name="counter")
    gate = lab.Gate(host)
    if update:
        with tf.control_dependencies([v.assign_add([1.0], read_value=False)]):
            outer = gate(tf.constant([5.0]))
    else:
        outer = gate(v.read_value())
    inner = v.assign_add([10.0], read_value=False)
    sess = tf.Session(host=host)
    sess.run(v.initializer)
    gate.on_entry = lambda: sess.run(inner)
    gate.open.set()
    try:
        lab.within(patience, lambda: sess.run(outer))
    except tf.errors.GraphdockError as error:
        assert "counter" in str(error)
    gate.on_entry = lambda: None
    assert lab.within(patience, lambda: sess.run(v)).shape == (1,)


_FORK = """
import os, signal, sys, threading
import graphdock as tf
import lab
from graphdock.plugin.host import Host

host = Host()
gate = lab.Gate(host)
v = tf.Variable([1.0])
inside = gate(v.assign_add([1.0]))
read = v.assign_add([1.0])
sess = tf.Session(host=host)
sess.run(v.initializer)
threading.Thread(target=sess.run, args=(inside,), daemon=True).start()
assert gate.inside.acquire(timeout=60)
child = os.fork()
if child == 0:
    signal.alarm(int(sys.argv[1]))  # ends the child if it hangs
    try:
        sess.run(read)
    except tf.errors.GraphdockError as error:
        assert "fork" in str(error), error
    os._exit(0)
_, status = os.waitpid(child, 0)
gate.open.set()
print(status)
os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_child_forked_while_a_thread_runs_a_step_gets_an_answer(patience, tmp_path):
    script = tmp_path / "fork.py"
    script.write_text(_FORK)
    folder = os.path.dirname(lab.__file__)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([folder, *sys.path])}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script), str(max(int(patience), 1))],
        env=env,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "0", f"the child ended with status {done.stdout} {done.stderr}"
