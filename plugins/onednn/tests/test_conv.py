"""Convolutions and their gradients beside the cpu's, whatever their windows."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock_onednn.library import library


def fed(rng, shape):
    return tf.placeholder(tf.float32, shape), rng.normal(size=shape).astype(np.float32)


def windows(count):
    """Images, a filter and attributes of convolutions: windows larger than the image, of one element, apart, at the edge."""
    rng = np.random.default_rng(11)
    found = []
    while len(found) < count:
        size, window = rng.integers(1, 12, 2), rng.integers(1, 6, 2)
        stride, dilation = rng.integers(1, 4, 2), rng.integers(1, 3, 2)
        channels, outputs, batch = int(rng.choice([1, 2, 3, 16])), int(rng.choice([1, 4, 17])), int(rng.integers(1, 4))
        span = (window - 1) * dilation + 1
        padding = str(rng.choice(["SAME", "VALID", "EXPLICIT"]))
        pads = rng.integers(0, 3, 4)
        around = pads if padding == "EXPLICIT" else np.zeros(4, int)
        if padding != "SAME" and (size + around[::2] + around[1::2] < span).any():
            continue
        attrs = {"strides": [1, *stride.tolist(), 1], "dilations": [1, *dilation.tolist(), 1], "padding": padding}
        if padding == "EXPLICIT":
            attrs["padding"] = [[0, 0], pads[:2].tolist(), pads[2:].tolist(), [0, 0]]
        found.append(([batch, *size.tolist(), channels], [*window.tolist(), channels, outputs], attrs))
    return found


@pytest.mark.parametrize(("image", "filter", "attrs"), windows(24))
def test_a_convolution_and_its_gradients_are_the_cpus(both, rng, image, filter, attrs):
    (x, u), (w, v) = fed(rng, image), fed(rng, filter)
    y = tf.nn.conv2d(x, w, **attrs)
    kernels = both([y, *tf.gradients(y * y, [x, w])], {x: u, w: v}, near=5e-5)
    assert kernels["onednn.conv2d"] + kernels.get("cpu.conv2d", 0) == 1
    of_library = [k for k in kernels if k.startswith("onednn.conv2d")]
    assert len(of_library) >= 2, "the library takes most of them"


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_channels_may_stand_first(both, rng, data_format):
    (x, u), (w, v) = fed(rng, [2, 7, 6, 5] if data_format == "NHWC" else [2, 5, 7, 6]), fed(rng, [3, 3, 5, 8])
    y = tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME", data_format=data_format)
    kernels = both([y, *tf.gradients(y * y, [x, w])], {x: u, w: v}, near=5e-5)
    assert {"onednn.conv2d", "onednn.conv2d_backprop_input", "onednn.conv2d_backprop_filter"} <= kernels.keys()


@pytest.mark.parametrize(("several", "stride"), [(1, 1), (1, 2), (3, 1)])
def test_depthwise_convolutions_and_their_gradients_are_the_cpus(both, rng, several, stride):
    (x, u), (w, v) = fed(rng, [2, 9, 8, 16]), fed(rng, [3, 3, 16, several])
    y = tf.nn.depthwise_conv2d_native(x, w, [1, stride, stride, 1], "SAME")
    kernels = both([y, *tf.gradients(y * y, [x, w])], {x: u, w: v}, near=5e-5)
    assert any(k.startswith("onednn.depthwise") for k in kernels)


def test_gradients_agree_with_numeric_ones(rng):
    (x, u), (w, v) = fed(rng, [1, 6, 5, 3]), fed(rng, [3, 2, 3, 4])
    y = tf.reduce_sum(tf.square(tf.nn.conv2d(x, w, [1, 2, 1, 1], "SAME")))
    with tf.Session(config=tf.SessionConfig(backends=("onednn", "cpu"))) as sess:
        by_x, by_w = sess.run(tf.gradients(y, [x, w]), {x: u, w: v})
        for tensor, value, slope in ((x, u, by_x), (w, v, by_w)):
            along = rng.normal(size=value.shape).astype(np.float32) * 1e-2
            feed = {x: u, w: v}
            high, low = (sess.run(y, {**feed, tensor: value + sign * along}) for sign in (1, -1))
            assert float((slope * along).sum()) == pytest.approx(float(high - low) / 2, rel=2e-3)


@pytest.mark.parametrize("name", ["none", "relu", "tanh", "sigmoid"])
@pytest.mark.parametrize("kind", ["add", "bias_add"])
def test_bias_and_activation_are_computed_with_the_convolution(both, rng, name, kind):
    (x, u), (w, v), (b, c) = fed(rng, [2, 6, 5, 3]), fed(rng, [3, 3, 3, 16]), fed(rng, [16])
    made = tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME")
    biased = made + b if kind == "add" else tf.nn.bias_add(made, b)
    y = {"none": tf.identity, "relu": tf.nn.relu, "tanh": tf.tanh, "sigmoid": tf.sigmoid}[name](biased)
    feed = {x: u, w: v, b: c}
    assert both([y], feed) == {"onednn.fused_conv2d": 1}
    kernels = both([y, *tf.gradients(y, [x, w, b])], feed, near=5e-5)
    assert kernels["onednn.fused_conv2d"] == 1


def test_what_a_session_does_not_list_changes_nothing(rng):
    (x, u), (w, v), (b, c) = fed(rng, [2, 6, 5, 3]), fed(rng, [3, 3, 3, 16]), fed(rng, [16])
    y = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME"), b))
    with tf.Session() as sess:
        told = sess.explain(y, {x: u, w: v, b: c})
    assert "cpu.conv2d" in told.kernels() and "onednn" not in str(told)


@pytest.mark.parametrize("shape", [[0, 5, 5, 3], [2, 5, 5, 0]])
def test_without_elements_it_is_the_cpus(both, rng, shape):
    (x, u), (w, v) = fed(rng, shape), fed(rng, [2, 2, shape[-1], 4])
    y = tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME")
    kernels = both([y, *tf.gradients(y, [x, w])], {x: u, w: v})
    assert not any(k.startswith("onednn") for k in kernels)


def test_a_variable_that_is_written_between_calls_is_read_anew(rng):
    x, u = fed(rng, [1, 6, 6, 16])
    w = tf.Variable(rng.normal(size=(3, 3, 16, 16)).astype(np.float32))
    y = tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME")
    with tf.Session(config=tf.SessionConfig(backends=("onednn", "cpu"))) as sess:
        sess.run(tf.global_variables_initializer())
        first = sess.run(y, {x: u})
        sess.run(tf.assign(w, w * 2.0))
        np.testing.assert_allclose(sess.run(y, {x: u}), 2 * first, rtol=1e-5, atol=1e-5)


class Calls:
    """The functions of a library, of which it counts the primitives that are run."""

    def __init__(self, api):
        self.api, self.count = api, 0

    def __getattr__(self, name):
        return getattr(self.api, name)

    def dnnl_primitive_execute(self, *args):
        self.count += 1
        return self.api.dnnl_primitive_execute(*args)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.plain
def test_a_variable_filter_is_brought_into_the_librarys_layout_once_per_write(rng, monkeypatch, threads):
    x, u = fed(rng, [1, 6, 6, 16])
    start = rng.normal(size=(3, 3, 16, 16)).astype(np.float32)
    w, other = tf.Variable(start), tf.Variable(1.0)
    y = tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME")
    doubled, changed = tf.assign(w, w * 2.0), tf.assign_add(other, 1.0)
    both_ways = [y, tf.nn.conv2d(x, doubled, [1, 1, 1, 1], "SAME")]
    calls = Calls(library().api)
    monkeypatch.setattr(library(), "api", calls)
    config = tf.SessionConfig(backends=("onednn", "cpu"), intra_op_threads=threads, deterministic=True)
    with tf.Session(config=config) as sess:

        def counted(fetches):
            before = calls.count
            found = sess.run(fetches, {x: u})
            return found, calls.count - before

        sess.run(tf.global_variables_initializer())
        first, _ = counted(y)
        same, count = counted(y)
        assert count == 1, "the convolution alone"
        sess.run(changed)
        assert counted(y)[1] == 1, "another variable was written"
        np.testing.assert_array_equal(first, same)
        for _ in range(2):
            sess.run(doubled)
            before, (same, count) = same, counted(y)
            assert count == 2, "the filter's layout, too"
            np.testing.assert_allclose(same, 2 * before, rtol=1e-5, atol=1e-5)
        w.load(start, sess)
        assert counted(y)[1] == 2
        np.testing.assert_array_equal(counted(y)[0], first)
        for _ in range(2):  # a plan that writes it brings it there in each step
            assert counted(both_ways)[1] >= 3


def test_a_shared_variable_that_another_session_writes_is_read_anew(rng):
    x, u = fed(rng, [1, 6, 6, 16])
    with tf.container("shared_filter"):
        w = tf.Variable(rng.normal(size=(3, 3, 16, 16)).astype(np.float32))
    y = tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME")
    doubled = tf.assign(w, w * 2.0)
    config = tf.SessionConfig(backends=("onednn", "cpu"))
    with tf.Session(config=config) as one, tf.Session(config=config) as other:
        one.run(tf.global_variables_initializer())
        first = one.run(y, {x: u})
        np.testing.assert_array_equal(other.run(y, {x: u}), first)
        other.run(doubled)
        np.testing.assert_allclose(one.run(y, {x: u}), 2 * first, rtol=1e-5, atol=1e-5)
        one.run(doubled)
        np.testing.assert_allclose(other.run(y, {x: u}), 4 * first, rtol=1e-5, atol=1e-5)
        tf.Session.reset(containers=["shared_filter"])


def test_two_steps_share_what_was_made_of_a_constant_filter(both, rng):
    x, u = fed(rng, [1, 6, 6, 16])
    w = tf.constant(rng.normal(size=(3, 3, 16, 16)).astype(np.float32))
    assert both([tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME")], {x: u})["onednn.conv2d"] == 1


def test_nan_stays_in_the_windows_that_hold_it(rng):
    (x, u), (w, v) = fed(rng, [1, 8, 8, 16]), fed(rng, [3, 3, 16, 16])
    u[0, 2, 2, 0] = np.nan
    with tf.Session(config=tf.SessionConfig(backends=("onednn", "cpu"))) as sess:
        got = np.isnan(sess.run(tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME"), {x: u, w: v}))
    assert got[0, 1:4, 1:4].all() and got.sum() == 9 * 16


def test_a_large_filter_gradient_takes_whichever_way_is_quicker(both, rng):
    (x, u), (w, v) = fed(rng, [4, 28, 28, 64]), fed(rng, [3, 3, 64, 64])
    y = tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME")
    assert both([tf.gradients(y * y, w)[0]], {x: u, w: v}, near=1e-4)["onednn.conv2d_backprop_filter"] == 1
    both([tf.gradients(y * y, w)[0]], {x: u, w: v}, near=1e-4, deterministic=True)
