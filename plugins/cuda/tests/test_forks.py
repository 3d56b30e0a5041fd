"""A child that was forked once CUDA is open: it is told so, and makes no call of CUDA, at its exit neither."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_SCRIPT = """
import atexit, gc, os, sys
import numpy as np

@atexit.register  # the first to be registered is the last to run
def count():
    if os.getpid() != parent and fake.faults.calls:
        print("calls in the child:", [c.name for c in fake.log.calls], flush=True)
        os._exit(3)

import graphdock as tf
from graphdock.contracts import dtypes, errors
from graphdock.plugin.host import Host
from graphdock_cuda.testing import toolkit
from graphdock_cuda.testing.install import install

parent, tools, host = os.getpid(), toolkit(seed=1), Host()
fake = tools.driver.fake
device = install(host, tools)
with tf.Graph(host=host).as_default():
    x = tf.placeholder(tf.float32, [4])
    v = tf.Variable([1.0, 2.0, 3.0, 4.0])
    y = v.assign_add(tf.tanh(x))
config = tf.SessionConfig(backends=("cuda", "cpu"), fallback="forbid")
session = tf.Session(graph=x.graph, config=config, host=host)
session.run(v.initializer)
for _ in range(4):
    before = session.run(y, {x: np.zeros(4)})
kept, event = device.lasting(64), device.new_queue().record()

def told(do, kind, text):
    try:
        do()
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"{do} was done")

child = os.fork()
if child == 0:
    fake.log.reset()
    fake.faults.reset()
    told(lambda: session.run(y, {x: np.zeros(4)}), errors.FailedPreconditionError, "forked")
    got = np.empty(64, np.uint8)
    for do in (lambda: device.lasting(8), lambda: device.to_host(kept, got), lambda: device.passed(event), device.new_queue):
        told(do, errors.DeviceLostError, "cuda:0 is lost: this process was forked from the one that opened it")
    own = lambda: tf.Session(graph=x.graph, config=config, host=host)
    told(own, errors.UnavailableError, "forked from one that had opened CUDA")
    plain = tf.Session(graph=x.graph, config=tf.SessionConfig(backends=("cpu",)), host=host)
    plain.run(v.initializer)
    assert plain.run(y, {x: np.zeros(4)}).tolist() == [1, 2, 3, 4]
    session.close()
    del kept, event, session
    gc.collect()
    device.close()
    sys.exit(0)
_, status = os.waitpid(child, 0)
assert session.run(y, {x: np.zeros(4)}).tolist() == before.tolist()
session.close()
fake.verify()
print("child", os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_child_is_told_and_makes_no_call() -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _SCRIPT], env=env, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == ("child 0\n", 0), done.stdout + done.stderr
