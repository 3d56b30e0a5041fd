"""Threads of the library: how many, for whom, in a child, under Ctrl-C, and beside others."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import graphdock as tf
import numpy as np
import pytest
from graphdock_onednn.threads import CLAIMS, Pace

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="threads are counted in /proc")

PROGRAM = """
import os, signal, sys, threading, time
import graphdock as tf
import numpy as np

x = tf.placeholder(tf.float32, [4, 28, 28, 32])
w = tf.constant(np.ones((3, 3, 32, 64), np.float32))
y = tf.reduce_sum(tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME"))
u = np.ones((4, 28, 28, 32), np.float32)
want = 64 * 32 * 4 * (28 * 3 - 2) ** 2

def session(threads):
    return tf.Session(config=tf.SessionConfig(backends=("onednn", "cpu"), intra_op_threads=threads))

def count():
    return len(os.listdir("/proc/self/task"))
"""


def started(text, **environment):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + text],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done


def run(text, **environment):
    return started(text, **environment).stdout


def test_as_many_threads_as_the_session_may_have():
    text = """
with session(1) as sess:
    sess.run(y, {x: u})
    before = count()
with session(3) as sess:
    assert sess.run(y, {x: u}) == want
    print(count() - before)
"""
    assert run(text).split() == ["2"]


def test_threads_sleep_when_no_step_runs_and_the_environment_is_left_as_it_was():
    text = """
def asleep(task):
    return open(f"/proc/self/task/{task}/stat").read().rpartition(") ")[2][0] == "S"

with session(2) as sess:
    for _ in range(20):
        sess.run(y, {x: u})
    others = set(os.listdir("/proc/self/task")) - {str(threading.get_native_id())}
    assert others
    looks = 0
    while looks < 1000:  # for good, where somebody spins
        looks = looks + 1 if all(map(asleep, others)) else 0
print({name for name in os.environ if name.startswith(("GOMP", "OMP"))} - {"OMP_DISPLAY_ENV"})
"""
    assert run(text).strip() == "set()"


@pytest.mark.parametrize(("said", "read"), [({}, "1000"), ({"GOMP_SPINCOUNT": "77"}, "77")])
def test_the_runtime_reads_how_long_threads_look_for_work(said, read):
    text = "with session(2) as sess: sess.run(y, {x: u})\nprint(os.environ.get('GOMP_SPINCOUNT'))"
    told = started(text, OMP_DISPLAY_ENV="verbose", **said)
    assert f"GOMP_SPINCOUNT = '{read}'" in told.stderr
    assert told.stdout.strip() == str(said.get("GOMP_SPINCOUNT"))


def test_a_child_of_a_fork_computes_and_its_parent_goes_on():
    text = """
with session(2) as sess:
    sess.run(y, {x: u})
    for _ in range(3):
        child = os.fork()
        if not child:
            signal.alarm(30)
            os._exit(0 if sess.run(y, {x: u}) == want else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert sess.run(y, {x: u}) == want
"""
    run(text)


def test_a_child_that_forks_in_a_step_of_another_thread_computes():
    text = """
sess = session(2)
sess.run(y, {x: u})
stop = threading.Event()
def work():
    while not stop.is_set():
        sess.run(y, {x: u})
other = threading.Thread(target=work)
other.start()
for _ in range(5):
    child = os.fork()
    if not child:
        signal.alarm(30)
        with session(2) as mine:
            os._exit(0 if mine.run(y, {x: u}) == want else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
stop.set()
other.join()
"""
    run(text)


def test_interrupts_leave_everything_as_it_was():
    text = """
from graphdock_onednn.threads import CLAIMS
sess = session(2)
sess.run(y, {x: u})
caught = 0
signal.signal(signal.SIGALRM, signal.default_int_handler)
for i in range(60):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0005 + i * 1e-5)
        while True:
            sess.run(y, {x: u})
    except KeyboardInterrupt:
        caught += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
assert caught == 60 and not CLAIMS and sess.run(y, {x: u}) == want
"""
    run(text)


def test_interrupts_while_a_variable_is_written_and_read_leave_nothing_half_made():
    text = """
v, k = tf.Variable(np.ones((3, 3, 32, 64), np.float32)), tf.placeholder(tf.float32, [])
z = tf.reduce_sum(tf.nn.conv2d(x, v, [1, 1, 1, 1], "SAME"))
grown, put = tf.assign_add(v, tf.ones_like(v)).op, tf.assign(v, tf.ones_like(v) * k).op
sess = session(2)
sess.run(v.initializer)
sess.run(z, {x: u})
fired = []
def interrupt(*_):
    fired.append(1)
    raise KeyboardInterrupt
signal.signal(signal.SIGALRM, interrupt)
for i in range(60):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0005 + i * 2e-5)
        while len(fired) == i:  # a finalizer may have got the interrupt, which Python leaves at that
            sess.run(grown)
            sess.run(z, {x: u})
    except KeyboardInterrupt:
        pass
    sess.run(put, {k: i + 1.0})
    assert sess.run(z, {x: u}) == (i + 1) * want
"""
    run(text)


@pytest.mark.parametrize("threads", [1, 2])
def test_variables_written_beside_steps_of_many_threads_are_read_whole(threads, rng):
    x = tf.placeholder(tf.float32, [1, 9, 9, 16])
    start = rng.normal(size=(3, 3, 16, 32)).astype(np.float32)
    with tf.container("read_whole"):
        w = tf.Variable(start)
    times = tf.placeholder(tf.float32, [])
    y, put = tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME"), tf.assign(w, start * times)
    both, feed = [y, tf.reshape(w, [-1])[0]], {x: rng.normal(size=(1, 9, 9, 16))}
    config = tf.SessionConfig(backends=("onednn", "cpu"), intra_op_threads=threads)
    wrong: list[float] = []
    reads: list[int] = []
    stop = threading.Event()
    with tf.Session(config=config) as one, tf.Session(config=config) as other:
        one.run(w.initializer)
        first = one.run(y, feed)

        def read(sess):
            while not stop.is_set():
                made, element = sess.run(both, feed)
                if not np.allclose(made, first * (element / start.flat[0]), rtol=1e-3, atol=1e-3):
                    wrong.append(element)
                reads.append(1)

        several = [threading.Thread(target=read, args=(s,)) for s in (one, other) * 3]
        for thread in several:
            thread.start()
        for number in range(60):
            (one, other)[number % 2].run(put, {times: float(1 + number % 7)})
        stop.set()
        for thread in several:
            thread.join()
        tf.Session.reset(containers=["read_whole"])
    assert reads and not wrong


@pytest.mark.parametrize("threads", [1, 2])
def test_steps_at_once_give_what_each_gives_alone(threads, rng):
    x = tf.placeholder(tf.float32, [2, 14, 14, 16])
    w = tf.constant(rng.normal(size=(3, 3, 16, 32)).astype(np.float32))
    y = tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME")
    given = rng.normal(size=(8, 2, 14, 14, 16)).astype(np.float32)
    wrong: list[int] = []
    with tf.Session(config=tf.SessionConfig(backends=("onednn", "cpu"), intra_op_threads=threads)) as sess:
        want = [sess.run(y, {x: u}) for u in given]

        def work(number):
            for _ in range(20):
                if not np.allclose(sess.run(y, {x: given[number]}), want[number], rtol=1e-4, atol=1e-4):
                    wrong.append(number)

        several = [threading.Thread(target=work, args=(i,)) for i in range(len(given))]
        for thread in several:
            thread.start()
        for thread in several:
            thread.join()
    assert not wrong and not CLAIMS


def test_a_deterministic_session_gives_the_same_bits(rng):
    x, w = tf.placeholder(tf.float32, [8, 14, 14, 16]), tf.placeholder(tf.float32, [3, 3, 16, 32])
    slope = tf.gradients(tf.reduce_sum(tf.square(tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME"))), w)[0]
    feed = {x: rng.normal(size=(8, 14, 14, 16)), w: rng.normal(size=(3, 3, 16, 32))}
    with tf.Session(config=tf.SessionConfig(backends=("onednn", "cpu"), deterministic=True)) as sess:
        first = sess.run(slope, feed)
        assert all((sess.run(slope, feed) == first).all() for _ in range(20))


def paced(pace, calls, several, alone):
    """Seconds of so many calls, and how many of them were on one thread."""
    spent, single = 0.0, 0
    for _ in range(calls):
        took = several if pace.several else alone
        single += not pace.several
        spent += took
        pace.took(took)
    return spent, single


def test_calls_that_wait_for_a_busy_core_are_given_to_one_thread_and_tried_again():
    pace = Pace(2)
    assert paced(pace, 50, 1e-3, 2e-3)[1] == 0
    spent, single = paced(pace, 1000, 15e-3, 2e-3)
    assert single > 900 and spent < 1000 * 3e-3, "all threads cost 15 ms a call, one 2 ms"
    paced(pace, 3000, 1e-3, 2e-3)
    assert paced(pace, 200, 1e-3, 2e-3)[1] == 0, "the core is free again"


def test_first_calls_that_find_cold_memory_try_nothing():
    pace = Pace(2)
    assert paced(pace, 2, 50e-3, 2e-3)[1] == 0
    assert paced(pace, 50, 1e-3, 2e-3)[1] == 0


def test_one_thread_that_is_as_slow_among_much_else_is_left():
    pace = Pace(2)
    paced(pace, 50, 1e-3, 2e-3)
    assert paced(pace, 2000, 5e-3, 10e-3)[1] < 150, "two threads get twice the time of one"
