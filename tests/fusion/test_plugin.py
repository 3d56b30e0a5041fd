"""The plugin: what is left out computes the same without it, and what a plan does not need is not imported."""

from __future__ import annotations

import json
import subprocess
import sys

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import ConfigError
from graphdock.passes.pipeline import known_passes
from graphdock.plugin.host import Host


def program():
    x = tf.placeholder(tf.float32, [4, 3], name="x")
    w = tf.get_variable("w", [3, 3], initializer=tf.ones_initializer())
    state, total = x, x
    for _ in range(3):
        state = tf.tanh(tf.matmul(tf.nn.softmax(state), w))
        total = total + state
    loss = tf.reduce_mean(total)
    return x, w, tf.train.GradientDescentOptimizer(0.5).minimize(loss), loss


def run(host, **fields):
    with tf.Graph(host=host).as_default():
        x, w, train, loss = program()
        with tf.Session(config=tf.SessionConfig(**fields), host=host) as session:
            session.run(tf.global_variables_initializer())
            feed = {x: np.arange(12, dtype=np.float32).reshape(4, 3) / 7}
            return [session.run([train, loss], feed)[1] for _ in range(3)] + [session.run(w)]


def test_programs_run_without_it():
    with_it, without = run(Host()), run(Host(block=["fusion"]))
    for a, b in zip(with_it, without, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)
    assert {row.plugin for row in known_passes(Host(block=["fusion"])).values()} == {"data", "host", "std"}
    with pytest.raises(ConfigError, match="no pass named 'products'"):
        run(Host(block=["fusion"]), passes={"products": False})


ONCE = """\
import json, sys
import graphdock as tf
x = tf.placeholder(tf.float32, [2])
with tf.Session() as session:
    session.run(tf.tanh(x) * 2.0 + 1.0, {x: [1.0, 2.0]})
print(json.dumps(sorted(m for m in sys.modules if m.startswith("graphdock_fusion"))))
"""


def test_a_plan_imports_what_it_needs():
    done = subprocess.run([sys.executable, "-c", ONCE], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == ["graphdock_fusion", "graphdock_fusion.plugin"]
