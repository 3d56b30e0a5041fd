"""cpu and the third-party toy device in one program, and sessions beside broken plugins."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import DeviceUnavailable, PluginError
from graphdock.plugin.host import Host

_spec = importlib.util.spec_from_file_location("broken_table", Path(__file__).parents[1] / "plugin" / "test_ledger.py")
_table = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_table)
BROKEN, FAULTS, install = _table.BROKEN, _table.FAULTS, _table.install


@pytest.fixture
def launches(toy, process_host):
    process_host(Host())
    from graphdock_toy.device import LAUNCHES

    LAUNCHES.clear()
    return LAUNCHES


def perceptron():
    """One training step of a small network, in float32."""
    rng = np.random.default_rng(3)
    x = tf.placeholder(tf.float32, [8, 6], name="x")
    w = tf.Variable(rng.normal(size=(6, 4)).astype(np.float32), name="w")
    hidden = tf.nn.relu(tf.matmul(x, w))
    loss = tf.reduce_sum(tf.square(hidden))
    (slope,) = tf.gradients(loss, [w])
    step = tf.assign_sub(w, slope * 0.01)
    return [loss, step], {x: rng.normal(size=(8, 6)).astype(np.float32)}


def test_the_kernel_table_equals_the_launch_counts(launches):
    with tf.Graph().as_default():
        fetches, feed = perceptron()
        with tf.Session(config=tf.SessionConfig(backends=["toy", "cpu"], fallback="allow")) as sess:
            sess.run(tf.global_variables_initializer())
            table = sess.explain(fetches, feed).kernels()
            launches.clear()
            for _ in range(3):
                sess.run(fetches, feed)
    told = Counter({name.removeprefix("toy."): 3 * n for name, n in table.items() if name.startswith("toy.")})
    assert sum(told.values()) > 10
    assert told == launches


def half_and_half():
    x = tf.placeholder(tf.float32, [3, 4], name="x")
    with tf.device("cpu"):
        a = tf.add(x, tf.square(x))
    with tf.device("toy"):
        b = tf.multiply(a, a)
        _, c = tf.while_loop(lambda i, v: i < 4, lambda i, v: (i + 1, tf.add(tf.multiply(v, 0.5), b)), [0, b])
    with tf.device("cpu"):
        d = tf.subtract(c, a)
    return [d, c, b], {x: np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)}


def test_a_program_half_on_each_equals_the_one_device_result_bitwise(launches):
    with tf.Graph().as_default():
        fetches, feed = half_and_half()
        with tf.Session(config=tf.SessionConfig(backends=["cpu", "toy"])) as sess:
            got = sess.run(fetches, feed)
            rows = sess.explain(fetches, feed).rows
    inside = [r for r in rows if r.node.startswith("while") or r.device == "toy:0"]
    assert {r.kernel for r in rows if r.op == "Less"} == {"host"}
    assert {r.op for r in inside if r.device == "toy:0"} >= {"Mul", "Add"}
    assert launches == {"mul": 4, "square": 1, "add": 4}  # the host keeps the counter itself
    with tf.Graph().as_default():
        text = "\n".join(line for line in _source(half_and_half).splitlines() if "tf.device" not in line)
        names = {"tf": tf, "np": np}
        exec(text, names)
        fetches, feed = names["half_and_half"]()
        with tf.Session(config=tf.SessionConfig(backends=["cpu"])) as sess:
            want = sess.run(fetches, feed)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_array_equal(g, w)


def _source(function):
    """The function's source with the bodies of its ``with tf.device`` blocks moved out."""
    import inspect

    lines, shift = [], False
    for line in inspect.getsource(function).splitlines():
        if "with tf.device" in line:
            shift = True
            lines.append(line)
        elif shift and line.startswith("        "):
            lines.append(line[4:])
        else:
            shift = False
            lines.append(line)
    return "\n".join(lines)


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.sampled(2)
def test_beside_a_broken_plugin_cpu_and_toy_give_the_right_numbers(launches, builder, toy, process_host, name):
    install(toy, builder, name)
    host = process_host(Host())
    try:
        host.backend(name)
        for kind in host.backend(name).device_types:
            host.device_infos(kind)
    except (PluginError, DeviceUnavailable):
        pass
    with tf.Graph().as_default():
        fetches, feed = perceptron()
        with tf.Session(config=tf.SessionConfig(backends=["toy", "cpu"], fallback="allow")) as sess:
            sess.run(tf.global_variables_initializer())
            w = sess.run("w/Read/ReadVariableOp:0")
            loss, after = sess.run(fetches, feed)
    x = next(iter(feed.values())).astype(np.float64)
    hidden = np.maximum(x @ w, 0)
    np.testing.assert_allclose(loss, (hidden**2).sum(), rtol=1e-5)
    np.testing.assert_allclose(after, w - 0.01 * (x.T @ (2 * hidden)), rtol=1e-4, atol=1e-5)


def one_of_each_stage():
    """Broken plugins; the status depends on where a plugin stands, so that one of each stage is enough for `make test`."""
    seen = set()
    for name, (_, _, stage, _) in BROKEN.items():
        if stage in FAULTS:
            yield pytest.param(name, marks=[pytest.mark.exhaustive] if stage in seen else [])
            seen.add(stage)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(one_of_each_stage()))
@pytest.mark.sampled(16)
def test_doctor_strict_exits_1_on_each(toy, builder, name):
    stage, _ = install(toy, builder, name)
    env = {**os.environ, "PYTHONPATH": str(toy.folder)}
    done = subprocess.run(
        [sys.executable, "-m", "graphdock", "doctor", "--strict", "--json", name],
        env=env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    entries = json.loads(done.stdout)["plugins"]
    assert next(e for e in entries if e["plugin"] == name)["stage"] == stage


def test_a_target_is_opened_by_the_plugin_that_owns_its_scheme(launches):
    with tf.Graph().as_default() as graph:
        fetches, feed = perceptron()
        with tf.Session("toy://here", graph=graph) as sess:
            sess.run(tf.global_variables_initializer())
            sess.run(fetches, feed)
        assert launches["mat_mul"] > 0
        with pytest.raises(tf.errors.NotFoundError, match="nowhere://x"):
            tf.Session("nowhere://x")


def test_only_what_the_fetches_need_runs_and_a_fed_intermediate_cuts_the_graph(launches):
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2, 2])
        a = tf.square(x)
        b = tf.nn.relu(a)
        c = tf.subtract(b, 1.0)
        config = tf.SessionConfig(backends=["toy", "cpu"], fallback="allow")
        with tf.Session(config=config) as sess:
            value = np.full((2, 2), -3, np.float32)
            counts = []
            for fetch, feed in ((a, {x: value}), (c, {x: value}), (c, {b: value}), (b, {b: value})):
                launches.clear()
                result = sess.run(fetch, feed)
                counts.append((dict(launches), float(np.asarray(result)[0, 0])))
    assert counts == [
        ({"square": 1}, 9.0),
        ({"square": 1, "relu": 1, "sub": 1}, 8.0),
        ({"sub": 1}, -4.0),
        ({}, -3.0),
    ]
