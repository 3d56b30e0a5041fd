"""The passes ``channels_last`` and ``channels_first``: what is computed otherwise is what the program wrote."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock_opgen.samples import bindings, make_arrays
from graphdock_opgen.spec_cases import spec_cases
from graphdock_testing.programs import build

KNOWN = tf.default_host().ops.get
CASES = {
    name: case
    for name, case in spec_cases("graphdock_std", KNOWN).items()
    if any(a.name == "data_format" for a in KNOWN(name).attrs)
}
PASSES = ("channels_last", "channels_first")


def sessions(graph, **fields):
    """As written, then with each of the passes."""
    for passes in ({}, *({name: True} for name in PASSES)):
        yield tf.Session(graph=graph, config=tf.SessionConfig(passes=passes, **fields))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("how", ["planned", "fresh", "computed"])
@pytest.mark.parametrize("op", sorted(CASES))
def test_each_op_computes_in_the_other_format_what_it_was_asked_for(op, how):
    opdef, case = KNOWN(op), CASES[op]
    turned = 0
    for sample in case["samples"]:
        types = next(bindings(opdef, case, sample))
        arrays = make_arrays(case, sample, types, op)
        attrs = dict(sample["attrs"])
        with tf.Graph().as_default() as graph:
            program = build(graph, opdef, arrays, attrs, how)
            fetches, feed = program.outputs, program.feed(arrays)
            want, *others = (s.run(fetches, feed) for s in sessions(graph))
            for got in others:
                for a, b in zip(got, want, strict=True):
                    assert a.dtype == b.dtype and a.shape == b.shape
                    np.testing.assert_allclose(a, b, 1e-4, 1e-4, equal_nan=True)
            plans = [[r.op for r in s.explain(fetches, feed).rows] for s in sessions(graph)]
            images = any(np.ndim(a) >= 4 for a in arrays.values() if a is not None)
            turned += images and (plans[0] != plans[1] or plans[0] != plans[2])
    assert turned, "no sample was computed in another format"


class Network:
    """A random network of images, its gradients and a feed; written channels last or first, with a batch that is not known."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.first = bool(self.rng.integers(2))
        self.format = "NCHW" if self.first else "NHWC"
        images = self.dims(2, 3, 8, 8)
        self.x = tf.placeholder(tf.float64, [None, *images[1:]])
        self.feed = {self.x: self.rng.normal(size=images)}
        self.weights = []
        pool = [self.x]
        for _ in range(12):
            pool.append(self.step(pool[-1], pool))
        self.y = pool[-1]
        loss = tf.reduce_sum(tf.square(self.y))
        self.fetches = [self.y, loss, *[g for g in tf.gradients(loss, [self.x, *self.weights]) if g is not None]]

    def dims(self, batch, channels, *spatial):
        return [batch, channels, *spatial] if self.first else [batch, *spatial, channels]

    def constant(self, *shape):
        self.weights.append(tf.constant(self.rng.normal(size=shape)))
        return self.weights[-1]

    def step(self, value, pool):
        axis = 1 if self.first else 3
        over = [2, 3] if self.first else [1, 2]
        channels = value.shape.as_list()[axis]
        alike = [v for v in pool if v.shape.as_list() == value.shape.as_list()]
        other = alike[self.rng.integers(len(alike))]
        kind = self.rng.integers(15)
        if kind < 3:
            filters = self.constant(3, 3, channels, int(self.rng.integers(1, 5)))
            strides = self.dims(1, 1, *(int(n) for n in self.rng.integers(1, 3, 2)))
            return tf.nn.conv2d(value, filters, strides, "SAME", data_format=self.format)
        if kind == 3:
            return tf.nn.bias_add(value, self.constant(channels), data_format=self.format)
        if kind == 4:
            return tf.nn.max_pool(value, self.dims(1, 1, 2, 2), self.dims(1, 1, 2, 1), "SAME", data_format=self.format)
        if kind == 5:
            return tf.nn.relu(value) + other
        if kind == 6:
            return tf.concat([value, tf.tanh(value), other][: 2 + int(self.rng.integers(2))], axis)
        if kind == 7:
            return tf.pad(value, self.dims([0, 0], [1, 0], [0, 2], [1, 1]), "CONSTANT", constant_values=0.5)
        if kind == 8:
            mean = tf.reduce_mean(value, over, keep_dims=True)
            return value - mean
        if kind == 9:
            shape = [channels, 1, 1] if self.first else [channels]
            return value * self.constant(*shape)
        if kind == 10 and channels % 2 == 0:
            parts = tf.split(value, 2, axis)
            return parts[0] * tf.sigmoid(parts[1])
        if kind == 11:
            scale = tf.ones([channels], tf.float64)
            return tf.nn.fused_batch_norm(value, scale, scale, data_format=self.format)[0]
        if kind == 12:
            means = tf.reduce_max(value, over)
            return value + tf.reshape(means, self.dims(-1, channels, 1, 1))
        if kind == 13:
            return tf.where(value > 0.0, value, tf.zeros_like(other))
        return tf.reduce_sum(value, axis, keep_dims=True) + value


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.sampled(12)
def test_networks_compute_what_was_written(seed):
    with tf.Graph().as_default() as graph:
        network = Network(seed)
        want, *others = (s.run(network.fetches, network.feed) for s in sessions(graph))
        largest = max(np.abs(a).max(initial=1.0) for a in want)  # what cancels is as exact as what it is a sum of
        for got in others:
            for a, b in zip(got, want, strict=True):
                np.testing.assert_allclose(a, b, 1e-8, 1e-8 * largest)


def block(first):
    """A residual block and its training's gradients, as :mod:`tf.layers` writes it."""
    word, axis = ("channels_first", 1) if first else ("channels_last", 3)
    x = tf.placeholder(tf.float32, [4, 3, 16, 16] if first else [4, 16, 16, 3])
    y = tf.layers.conv2d(x, 8, 3, padding="same", data_format=word, activation=tf.nn.relu)
    z = tf.layers.batch_normalization(y, axis=axis, training=True)
    y = tf.nn.relu(y + tf.layers.conv2d(z, 8, 3, padding="same", data_format=word))
    y = tf.layers.max_pooling2d(y, 2, 2, data_format=word)
    y = tf.reduce_mean(tf.concat([y, tf.tanh(y)], axis), [2, 3] if first else [1, 2])
    loss = tf.reduce_mean(tf.square(tf.layers.dense(y, 2)))
    return x, [loss, tf.gradients(loss, tf.trainable_variables())]


@pytest.mark.parametrize("first", [False, True])
def test_transposes_stay_where_images_enter_and_leave(first):
    with tf.Graph().as_default() as graph:
        x, fetches = block(first)
        feed = {x: np.ones(x.shape.as_list())}
        written, last, fore = ([r.op for r in s.explain(fetches, feed).rows] for s in sessions(graph))
        same, other = (fore, last) if first else (last, fore)
        assert same == written
        # the images, and both halves of the gradient that the join of channels cuts
        assert other.count("Transpose") == 3 and len(other) == len(written) + 3


def test_branches_are_computed_so_too():
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2, 3, 4, 4])
        f = tf.ones([1, 1, 3, 3])
        y = tf.cond(x[0, 0, 0, 0] > 0, lambda: tf.nn.conv2d(x, f, [1] * 4, "SAME", data_format="NCHW"), lambda: x)
        with tf.Session(graph=graph, config=tf.SessionConfig(passes={"channels_last": True})) as sess:
            for sign in (1.0, -1.0):
                value = np.full(x.shape.as_list(), sign, np.float32)
                np.testing.assert_array_equal(sess.run(y, {x: value}), np.maximum(value * 3, value))
            told = str(sess.explain(y, {x: value}))
            assert "Transpose" in told


def test_what_waits_or_has_no_rank_is_left_as_it_is():
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32)
        with tf.control_dependencies([tf.assert_greater(x, -9.0)]):
            y = tf.nn.bias_add(x, tf.ones([2]), data_format="NCHW")
        value = np.arange(16, dtype=np.float32).reshape(2, 2, 2, 2)
        for sess in sessions(graph):
            np.testing.assert_array_equal(sess.run(y, {x: value}), value + 1)
        for sess in sessions(graph, shape_policy="generic"):
            np.testing.assert_array_equal(sess.run(y, {x: value}), value + 1)


def test_kernels_for_the_one_format_serve_programs_of_the_other():
    """A maximum pool of llvm is for channels last."""
    pytest.importorskip("llvmlite")
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [1, 8, 16, 16])
        y = tf.nn.relu(tf.nn.max_pool(x, [1, 1, 2, 2], [1, 1, 2, 2], "SAME", data_format="NCHW"))
        feed = {x: np.random.default_rng(0).normal(size=x.shape.as_list())}
        written, last, _ = sessions(graph, backends=("llvm", "cpu"))
        assert "llvm.max_pool" not in written.explain(y, feed).kernels()
        assert last.explain(y, feed).kernels()["llvm.max_pool"] == 1
        np.testing.assert_array_equal(written.run(y, feed), last.run(y, feed))
