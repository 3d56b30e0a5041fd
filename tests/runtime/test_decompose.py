"""A node without a kernel where it prefers to run becomes nodes that have one there: before fallback, and shown by explain."""

from __future__ import annotations

import json
import logging

import graphdock as tf
import numpy as np
import pytest
from graphdock.plugin.host import Host
from graphdock.runtime.decompose import Decomposer

X = np.array([[0.5, -1.0], [2.0, 0.25]], np.float32)


@pytest.fixture
def toy_session(toy, process_host):
    """Sessions on the toy device, which has Square and Sub but no SquaredDifference, then cpu."""
    host = process_host(Host())

    def make(**fields):
        return tf.Session(config=tf.SessionConfig(**{"backends": ["toy", "cpu"], **fields}), host=host)

    with tf.Graph().as_default():
        yield make


def program():
    x = tf.placeholder(tf.float32, [2, 2], name="x")
    y = tf.placeholder(tf.float32, [2, 2], name="y")
    z = tf.squared_difference(x, y, name="z")
    return x, y, z


def test_the_parts_run_on_the_preferred_device_and_explain_says_so(toy_session, caplog):
    x, y, z = program()
    feed = {x: X, y: X.T}
    with toy_session() as sess, caplog.at_level(logging.WARNING, "graphdock"):
        explained = sess.explain(z, feed)
        assert [(r.node, r.op, r.device) for r in explained.rows if r.kernel != "transfer"] == [
            ("z", "Sub", "toy:0"),
            ("z", "Square", "toy:0"),
        ]
        line = (
            "decomposed  z (SquaredDifference) on toy -> 2 nodes (Square, Sub): toy has no kernel for SquaredDifference"
        )
        assert line in str(explained).splitlines()
        (fact,) = json.loads(explained.to_json())["decomposed"]
        assert fact["node"] == "z" and fact["parts"] == ["Sub", "Square"]
        np.testing.assert_allclose(sess.run(z, feed), (X - X.T) ** 2)
        site = next(r.site for r in explained.rows if r.op == "Square")
        assert "test_decompose.py" in str(site)
    assert not [r for r in caplog.records if "back to another device" in r.getMessage()]


def test_it_comes_before_fallback_and_needs_none(toy_session):
    x, y, z = program()
    with toy_session(fallback="forbid") as sess:
        np.testing.assert_allclose(sess.run(z, {x: X, y: X.T}), (X - X.T) ** 2)


def test_where_the_op_has_a_kernel_nothing_is_decomposed(toy_session):
    x, y, z = program()
    with toy_session(backends=["cpu"]) as sess:
        explained = sess.explain(z, {x: X, y: X})
        assert [r.op for r in explained.rows] == ["SquaredDifference"]
        assert "decomposed" not in str(explained)


def test_an_explicit_device_is_the_preferred_one(toy_session):
    x, y = program()[:2]
    with tf.device("/device:toy:0"):
        z = tf.squared_difference(x, y, name="there")
    with toy_session(backends=["cpu", "toy"]) as sess:
        rows = [r for r in sess.explain(z, {x: X, y: X}).rows if r.kernel != "transfer"]
        assert {r.device for r in rows} == {"toy:0"} and len(rows) == 2


def test_gradients_are_those_of_the_op(toy_session):
    x, y, z = program()
    (slope,) = tf.gradients(tf.reduce_sum(z), [x])
    with toy_session() as sess:
        np.testing.assert_allclose(sess.run(slope, {x: X, y: X.T}), 2 * (X - X.T), rtol=1e-6)


def test_what_a_part_lacks_is_said_where_nothing_else_runs_it(toy_session):
    x = tf.placeholder(tf.float32, [2, 2])
    y = tf.rsqrt(x, name="root")
    with toy_session(backends=["toy"]) as sess, pytest.raises(tf.errors.KernelNotFoundError) as caught:
        sess.run(y, {x: X})
    assert "its decomposition: toy has no kernel for its part Sqrt" in caught.value.message


def test_equal_parts_are_merged_and_bodies_are_decomposed_too(toy_session):
    x, y, z = program()
    again = tf.squared_difference(x, y) + (x - y)
    looped = tf.while_loop(lambda i, v: i < 2, lambda i, v: (i + 1, tf.squared_difference(v, y)), [0, x])[1]
    feed = {x: X, y: X.T}
    with toy_session() as sess:
        explained = sess.explain([z, again], feed)
        assert sorted(r.op for r in explained.rows if r.kernel != "transfer") == ["Add", "Square", "Sub"]
        want = ((X - X.T) ** 2 - X.T) ** 2
        np.testing.assert_allclose(sess.run(looped, feed), want, rtol=1e-5)


def test_a_decomposition_is_traced_once_per_form(toy_session, monkeypatch):
    traced = []
    trace = Decomposer._trace
    monkeypatch.setattr(Decomposer, "_trace", lambda self, *a: traced.append(1) or trace(self, *a))
    x, y, z = program()
    wide = tf.placeholder(tf.float32, [3])
    with toy_session() as sess:
        sess.run(z, {x: X, y: X})
        sess.run([z, tf.squared_difference(y, x)], {x: X, y: X})
        assert len(traced) == 1
        sess.run(tf.squared_difference(wide, wide), {wide: [1.0, 2.0, 3.0]})
        assert len(traced) == 2
