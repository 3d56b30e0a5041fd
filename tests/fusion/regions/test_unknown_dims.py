"""Regions with axes of unknown extent, evaluated by the reference: what is one axis, what is refused and why, and which shapes get
a plan of their own."""

from __future__ import annotations

import types

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import hookimpl
from graphdock.errors import ShapeError
from graphdock.plugin.host import Host
from graphdock_testing.region_reference import ReferenceCompiler


class Lab:
    """A session for any shape whose regions the reference evaluates."""

    def __init__(self, host, **fields):
        self.compiler = ReferenceCompiler()
        hook = hookimpl(specname="register_region_compilers")(lambda: [self.compiler])
        host.register("lab", types.SimpleNamespace(register_region_compilers=hook, __name__="lab"))
        config = tf.SessionConfig(**{"backends": ("lab", "cpu"), "shape_policy": "generic", **fields})
        self.session = tf.Session(config=config, host=host)
        self.plans = set()

    def run(self, fetch, feed):
        metadata = tf.RunMetadata()
        result = self.session.run(fetch, feed, run_metadata=metadata)
        self.plans.add(metadata.plan)
        return result

    @property
    def programs(self):
        """The spaces of the programs, None for an axis of unknown extent."""
        return {p.name: tuple(a.extent for a in p.axes) for p in self.compiler.programs_built}


@pytest.fixture
def lab(process_host):
    with tf.Graph().as_default():
        yield Lab(process_host(Host()))


def ones(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) * 0.01


def test_dims_of_two_feeds_that_meet_are_one_axis_and_one_plan_serves_all_that_are_equal(lab):
    x, y = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.float32, [None, 4])
    z = tf.add(tf.tanh(x) * 2.0, tf.exp(y), name="meet")
    for a, b in ((3, 3), (0, 0), (1, 1), (7, 7)):
        np.testing.assert_allclose(
            lab.run(z, {x: ones(a, 4), y: ones(b, 4)}), np.tanh(ones(a, 4)) * 2 + np.exp(ones(b, 4)), 1e-5
        )
    assert len(lab.plans) == 1 and list(lab.programs.values()) == [(None, 4)]


def test_a_feed_of_one_row_beside_one_of_more_gets_a_plan_of_its_own(lab):
    x, y = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.float32, [None, 4])
    z = tf.add(tf.reduce_sum(x * 2.0, 0), tf.reduce_sum(tf.tanh(x) * y, 0), name="meet")
    for a, b in ((3, 3), (1, 5), (5, 1), (1, 5), (3, 3)):
        u, v = ones(a, 4), ones(b, 4)
        want = (u * 2).sum(0) + (np.tanh(u) * v).sum(0)
        np.testing.assert_allclose(lab.run(z, {x: u, y: v}), want, 1e-5)
    assert len(lab.plans) == 3
    with pytest.raises(ShapeError, match=r"\[2,4\] and \[3,4\]"):
        lab.run(z, {x: ones(2, 4), y: ones(3, 4)})


def test_without_such_a_region_one_plan_takes_those_too(process_host):
    with tf.Graph().as_default():
        lab = Lab(process_host(Host()), fusion=False)
        x, y = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
        z = tf.tanh(x) * y
        for a, b in ((3, 3), (1, 5)):
            np.testing.assert_allclose(lab.run(z, {x: ones(a), y: ones(b)}), np.tanh(ones(a)) * ones(b), 1e-5)
        (plan,) = lab.plans
        assert plan.graph.conditions.equal and not plan.graph.conditions.relied


def test_what_may_be_1_or_another_ones_size_is_no_region_and_explain_says_so(lab):
    x = tf.placeholder(tf.float32, [None, 4])
    z = tf.tanh(x) * 2.0 + tf.constant(ones(5, 4))
    for rows in (5, 1):
        np.testing.assert_allclose(lab.run(z, {x: ones(rows, 4)}), np.tanh(ones(rows, 4)) * 2 + ones(5, 4), 1e-5)
    assert "does not get 1 node on cpu:0 (Add): whether a dim of mul is 1 or another one's size" in str(
        lab.session.explain(z)
    )
    assert lab.session.explain(z).kernels() == {"lab.reference": 1, "cpu.add": 1}


def test_dims_that_follow_from_feeds_are_not_assumed_to_be_those_of_others(lab):
    """One of them may turn out to be 1: reading the other one's size off it would be wrong."""
    x, y = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
    long = tf.concat([y, y], 0)
    z = tf.fill([tf.shape(long)[0]], 2.0) * tf.tanh(x) + 1.0
    for a, b in ((4, 2), (1, 2), (1, 1), (2, 1)):
        want = np.full(2 * b, 2.0) * np.tanh(ones(a)) + 1
        np.testing.assert_allclose(lab.run(z, {x: ones(a), y: ones(b)}), want, 1e-5)
    with pytest.raises(ShapeError):
        lab.run(z, {x: ones(3), y: ones(2)})


def test_reductions_over_unknown_axes_and_what_nothing_measures(lab):
    x = tf.placeholder(tf.float32, [None, None])
    mean = tf.reduce_mean(x * x, 0)
    drawn = tf.fill([tf.shape(x)[0]], 3.0) * 2.0  # of the length of x, which it does not read
    for shape in ((3, 2), (1, 1), (5, 7)):
        got = lab.run([mean, drawn], {x: ones(*shape)})
        np.testing.assert_allclose(got[0], (ones(*shape) ** 2).mean(0), 1e-5)
        np.testing.assert_array_equal(got[1], np.full(shape[0], 6.0))
    assert (None, None) in lab.programs.values()
    assert "nothing that it reads is as long as axis i" in str(lab.session.explain(drawn))


def test_explain_says_what_a_compiler_of_known_dims_alone_does_not_get(lab):
    lab.compiler.__class__ = type("Known", (ReferenceCompiler,), {"unknown_dims": False})
    x, y = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.float32, [0, 4])
    z = [tf.tanh(x) * 2.0, tf.tanh(y) * 2.0]
    text = str(lab.session.explain(z))
    assert (
        "region  lab.reference does not get 2 nodes on cpu:0 (Mul, Tanh): dims are not known, and it does not say unknown_dims"
        in text
    )
    assert "region  lab.reference does not get 2 nodes on cpu:0 (Mul, Tanh): a tensor of it has no elements" in text
