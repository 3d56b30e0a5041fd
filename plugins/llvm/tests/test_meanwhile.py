"""Steps that run node by node until the code of their regions is compiled (``options.llvm.compile = "meanwhile"``)."""

from __future__ import annotations

import threading

import graphdock as tf
import numpy as np
import pytest
from graphdock_llvm import launch, target

CONFIG = {"backends": ("llvm", "cpu"), "options": {"llvm": {"compile": "meanwhile"}}}


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache of objects that is empty, on disk and in the process."""
    monkeypatch.setenv("GRAPHDOCK_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(target, "_alive", {})
    return tmp_path


@pytest.fixture
def go(monkeypatch):
    """Event that compilation waits for, beside steps."""
    event, main = threading.Event(), threading.current_thread()

    def compiled(*args, **facts):
        assert threading.current_thread() is main or event.wait(60)
        return target.compiled(*args, **facts)

    monkeypatch.setattr(launch, "compiled", compiled)
    yield event
    event.set()


def kernels(sess, fetches, feed):
    """Results of a step, and its kernels."""
    told = tf.RunMetadata()
    results = sess.run(fetches, feed, run_metadata=told)
    names = [r.full_name for r in told.plan.placement.kernels.values()]
    return results, {name: names.count(name) for name in names}


def test_steps_run_node_by_node_and_then_as_regions(go):
    x = tf.placeholder(tf.float32, [3, 40])
    loop = tf.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, v * 0.5 + 1.0), [0, x])[1]
    fetches = [tf.nn.softmax(tf.tanh(x) * 2.0), loop]
    feed = {x: np.random.default_rng(0).normal(size=(3, 40)).astype(np.float32)}
    with tf.Session(config=tf.SessionConfig(backends=("cpu",))) as plain:
        want = plain.run(fetches, feed)
    with tf.Session(config=tf.SessionConfig(**CONFIG)) as sess:
        for _ in range(2):
            results, ran = kernels(sess, fetches, feed)
            assert "llvm.region" not in ran and "cpu.tanh" in ran
            for r, w in zip(results, want, strict=True):
                np.testing.assert_allclose(r, w, 2e-5, 2e-5)
        told = sess.explain(fetches, feed)
        assert "2 kernels are compiled while its steps run" in str(told)
        go.set()
        while "llvm.region" not in ran:
            results, ran = kernels(sess, fetches, feed)
            for r, w in zip(results, want, strict=True):
                np.testing.assert_allclose(r, w, 2e-5, 2e-5)
        assert ran == {"llvm.region": 2} == sess.explain(fetches, feed).kernels()


def test_a_plan_whose_objects_are_kept_has_its_regions_at_once(go):
    x = tf.placeholder(tf.float32, [40])
    y, feed = tf.tanh(x) * 2.0 + 1.0, {x: np.ones(40, np.float32)}
    with tf.Session(config=tf.SessionConfig(backends=("llvm", "cpu"))) as sess:
        sess.run(y, feed)
    target._alive.clear()  # another process
    with tf.Session(config=tf.SessionConfig(**CONFIG)) as sess:
        assert kernels(sess, y, feed)[1] == {"llvm.region": 1}


def test_training_goes_on_over_the_change(go):
    x, w = tf.placeholder(tf.float32, [8, 4]), tf.get_variable("w", [4, 1], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(tf.tanh(tf.matmul(x, w)) - 0.5))
    train = tf.train.AdamOptimizer(0.1).minimize(loss)
    feed = {x: np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)}
    found = []
    for fields in (CONFIG, {"backends": ("cpu",)}):
        with tf.Session(config=tf.SessionConfig(**fields)) as sess:
            sess.run(tf.global_variables_initializer())
            for number in range(8):
                if number == 3 and fields is CONFIG:
                    go.set()
                    while "llvm.region" not in sess.explain([loss, train], feed).kernels():
                        pass
                last = sess.run([loss, train], feed)[0]
            found.append(last)
    assert found[0] == pytest.approx(found[1], rel=1e-4)
