"""A child that is forked while another thread holds something of the host gets an answer: a result, or an error that says why.

Nothing here waits for a time: the other thread says when it holds what it is to hold, and holds it until the child has ended.
"""

from __future__ import annotations

import os
import subprocess
import sys

import lab
import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")

#: Arguments: where the step runs, what the other thread holds, seconds until a child that hangs is ended.
_SCRIPT = """
import os, random, signal, sys, threading
import numpy as np
import graphdock as tf
import lab
from graphdock import locks
from graphdock.contracts import KernelDef
from graphdock.plugin.host import Host
from graphdock_testing import queued

where, state, patience = sys.argv[1], sys.argv[2], int(sys.argv[3])
host = Host()
device = queued.install(host, seed=3)
gate = lab.Gate(host)
plain = KernelDef("lab.Gate", "cpu", gate._bind)
if state == "driver":
    host.kernels.add(queued.wrap(plain, gate.opdef), "user", "lab")
backends = {"cpu": ("cpu",), "queued": ("queued", "cpu")}[where]
flying = {"steps_in_flight": 3} if state == "flight" else {}
limit = {"operation_timeout": 600.0} if state == "timed" else {}
config = tf.SessionConfig(backends=backends, **flying, **limit)
writer, coordinator = tf.summary.FileWriter(sys.argv[4]), tf.train.Coordinator()

graph = tf.Graph(host=host)
with graph.as_default():
    v = tf.Variable([1.0, 2.0], name="v")
    other = tf.Variable([5.0], name="other")
    inside = gate(v.assign_add([1.0, 1.0]))
    step = v.assign_add(tf.tanh(v) * 0.0, read_value=False)
    aside = other * 2.0
    later = other * 3.0
sess = tf.Session(graph=graph, config=config, host=host)
sess.run([v.initializer, other.initializer])
sess.run(aside)
for _ in range(3):
    sess.run(step)

holds, release = threading.Event(), threading.Event()

def in_a_step():
    sess.run(inside)

def with_locks(taken):
    for lock in taken:
        lock.acquire()
    holds.set()
    release.wait()

if state in ("driver", "kernel", "flight", "timed"):
    work = in_a_step
elif state == "driver lock":
    work = lambda: with_locks([device.driver.lock])
elif state == "every lock":
    work = lambda: with_locks(list(locks._all))
else:
    some = random.Random(int(state))
    work = lambda: with_locks([l for l in list(locks._all) if some.random() < 0.3])
threading.Thread(target=work, daemon=True).start()
if state in ("driver", "kernel", "flight", "timed"):
    assert gate.inside.acquire(timeout=patience)
else:
    assert holds.wait(patience)

child = os.fork()
if child == 0:
    signal.alarm(patience)  # ends the child if it hangs
    code = 1
    try:
        for fetch, value in ((aside, 10.0), (later, 15.0)):
            try:
                got = sess.run(fetch).tolist()
                assert where == "cpu" and got == [value], got
            except tf.errors.FailedPreconditionError as error:
                assert where == "queued" and "forked" in str(error), error
        try:
            sess.run(step)
            assert where == "cpu"
        except tf.errors.GraphdockError as error:
            assert "fork" in str(error), error
        try:
            writer.add_run_metadata(tf.RunMetadata(), "tag")
        except tf.errors.GraphdockError:
            pass  # it is the parent's, and closed here
        tf.summary.FileWriterCache.clear()
        coordinator.request_stop()
        with tf.Session(graph=graph, config=config, host=host) as own:
            own.run([v.initializer, other.initializer])
            assert own.run([aside, v])[0].tolist() == [10.0]
            own.run(step)
            assert own.run(v).tolist() == [1.0, 2.0]
        sess.close()
        code = 0
    finally:
        sys.stderr.flush()
        if code:
            import traceback
            traceback.print_exc()
        os._exit(code)
_, status = os.waitpid(child, 0)
gate.open.set()
release.set()
print(os.waitstatus_to_exitcode(status))
sys.stdout.flush()
os._exit(0)
"""

STATES = ["kernel", "driver", "flight", "timed", "driver lock", "every lock", *map(str, range(20))]
CASES = [(w, s) for w in ("cpu", "queued") for s in STATES if w == "queued" or s != "driver"]


@pytest.mark.parametrize(("where", "state"), CASES)
@pytest.mark.sampled(30)
def test_a_forked_child_gets_an_answer(where, state, patience, tmp_path):
    script = tmp_path / "fork.py"
    script.write_text(_SCRIPT)
    folder = os.path.dirname(lab.__file__)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([folder, *sys.path])}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", script, where, state, str(max(int(patience), 1)), tmp_path / "events"],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "0", f"the child ended with {done.stdout or done.returncode} {done.stderr}"
