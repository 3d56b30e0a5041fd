"""Convolutions and their gradients by gathered rows, beside the cpu's own kernels."""

from __future__ import annotations

import cffi
import graphdock as tf
import numpy as np
import pytest
from graphdock_llvm import convolutions, gathered, gathered_text
from graphdock_llvm.target import compiled, width


def _layer(rng):
    """A random layer: sizes of images and of a filter, and attributes."""
    window = [int(n) for n in rng.integers(1, 5, 2)]
    dilation = [int(n) for n in rng.integers(1, 4, 2)] if rng.random() < 0.4 else [1, 1]
    stride = [int(n) for n in rng.integers(1, 4, 2)]
    sides = [int(rng.integers((k - 1) * d + 1, 18)) for k, d in zip(window, dilation, strict=True)]
    channels, outputs = int(rng.choice([1, 3, 16, 19, 40])), int(rng.choice([1, 5, 16, 32, 48, 50, 80]))
    padding = ["SAME", "VALID", [[0, 0], [1, 2], [0, 1], [0, 0]]][int(rng.integers(3))]
    attrs = {"strides": [1, *stride, 1], "padding": padding, "dilations": [1, *dilation, 1]}
    return (int(rng.integers(1, 4)), *sides, channels), (*window, channels, outputs), attrs


def _results(backends, x, w, attrs, slopes):
    """Convolution and both gradients, and which plugins' kernels computed them."""
    with tf.Graph().as_default():
        images, filters = tf.constant(x), tf.constant(w)
        y = tf.nn.conv2d(tf.identity(images), tf.identity(filters), **attrs)
        if slopes is None:
            slopes = np.random.RandomState(3).normal(size=y.shape.as_list()).astype(np.float32)
        wanted = [y, *tf.gradients(y, [images, filters], grad_ys=[tf.constant(slopes)])]
        config = tf.SessionConfig(backends=backends, passes={"fold": False})
        with tf.Session(config=config) as session:
            metadata = tf.RunMetadata()
            made = session.run(wanted, run_metadata=metadata)
            kernels = {n.op: k.plugin for n, k in metadata.plan.placement.kernels.items()}
        return made, slopes, {op: kernels.get(op) for op in kernels if op.startswith("Conv2D")}


@pytest.mark.parametrize("seed", range(24))
def test_random_layers_agree_with_the_cpus_kernels(seed):
    rng = np.random.default_rng(seed)
    sizes, window, attrs = _layer(rng)
    x, w = (rng.normal(size=shape).astype(np.float32) for shape in (sizes, window))
    made, slopes, kernels = _results(("llvm", "cpu"), x, w, attrs, None)
    wanted, _, _ = _results(("cpu",), x, w, attrs, slopes)
    few = kernels.pop("Conv2DBackpropInput") if 2 * sizes[-1] < width() else "cpu"
    assert set(kernels.values()) == {"llvm"} and few == "cpu", kernels
    for ours, theirs in zip(made, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4 * np.abs(theirs).max())


def test_a_filter_of_few_places_that_lie_apart():
    """Two places, three pixels apart, of a block of four rows: the first and the repeated last look like four side by side."""
    attrs = {"strides": [1, 1, 2, 1], "padding": "VALID", "dilations": [1, 1, 3, 1]}
    x = np.arange(9, dtype=np.float32).reshape(1, 1, 9, 1)
    slopes = np.float32([1, 10, 100]).reshape(1, 1, 3, 1)
    (_, _, by_filter), _, kernels = _results(("llvm", "cpu"), x, np.ones((1, 2, 1, 1), np.float32), attrs, slopes)
    assert kernels["Conv2DBackpropFilter"] == kernels["Conv2D"] == "llvm"
    assert by_filter.ravel().tolist() == [420.0, 753.0]


def _called(works, arrays, threads, lanes):
    """The output of some work over arrays; memory behind it stays as it was."""
    (work, made), ffi = works, cffi.FFI()
    room = np.full(int(np.prod(made)) + 64, 7.5, np.float32)
    frame = np.full(work.frame.size if work.frame else 1, np.nan, np.float32)
    numbers = gathered.numbers(work, threads, lanes)
    function = ffi.cast("void (*)(void **, int64_t *)", compiled(gathered_text.text(lanes)))
    buffers = [ffi.from_buffer(a) for a in (*arrays, room, frame)]
    function(ffi.new("void *[]", buffers), ffi.cast("int64_t *", numbers.ctypes.data))
    assert (room[-64:] == 7.5).all(), "it wrote behind its output"
    return room[:-64].reshape(made).copy()


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("seed", range(6))
def test_other_widths_and_threads_give_what_one_thread_gives(seed, lanes):
    if lanes > width():
        pytest.skip("this CPU has no such registers")
    rng = np.random.default_rng(seed)
    sizes = int(rng.integers(1, 3)), int(rng.integers(5, 30)), int(rng.integers(5, 30)), int(rng.choice([3, 32, 90]))
    stride, window = int(rng.integers(1, 3)), int(rng.integers(1, 4))
    x = rng.normal(size=sizes).astype(np.float32)
    w = rng.normal(size=(window, window, sizes[3], int(rng.choice([7, 48, 150])))).astype(np.float32)
    made = (sizes[0], *(-(-side // stride) for side in sizes[1:3]), w.shape[3])
    layer = convolutions.convolution(sizes, w.shape, made, {"strides": [1, stride, stride, 1], "padding": "SAME"})
    dy, told = rng.normal(size=made).astype(np.float32), np.zeros(4, np.int32)
    for work, shape, arrays in (
        (convolutions.forward(layer, 3), made, (x, w)),
        (convolutions.by_input(layer), x.shape, (told, w, dy)),
        (convolutions.by_filter(layer), w.shape, (x, told, dy)),
    ):
        alone = _called((work, shape), arrays, 1, lanes)
        np.testing.assert_array_equal(_called((work, shape), arrays, 3, lanes), alone)
        other = _called((work, shape), arrays, 1, width())
        np.testing.assert_allclose(alone, other, rtol=1e-4, atol=1e-5 * np.abs(other).max())


def test_a_layer_with_a_bias_and_relu():
    rng = np.random.default_rng(0)
    x, w, b = (rng.normal(size=s).astype(np.float32) for s in ((2, 9, 9, 19), (3, 3, 19, 50), (50,)))
    layer = convolutions.convolution(x.shape, w.shape, (2, 9, 9, 50), {"strides": [1, 1, 1, 1], "padding": "SAME"})
    plain = _called((convolutions.forward(layer, 3), (2, 9, 9, 50)), (x, w), 1, width())
    work = convolutions.forward(layer, 4, bias=2, relu=True)
    made = _called((work, (2, 9, 9, 50)), (x, w, b), 2, width())
    np.testing.assert_array_equal(made, np.maximum(plain + b, 0))


def test_what_is_not_computed_here_is_the_cpus():
    with tf.Graph().as_default(), tf.Session(config=tf.SessionConfig(backends=("llvm", "cpu"))) as session:
        x = tf.placeholder(tf.float32, [1, 6, 4, 4])
        y = tf.nn.conv2d(x, tf.ones([2, 2, 6, 6]), [1, 1, 1, 1], "VALID", data_format="NCHW")
        assert session.explain(y, {x: np.zeros((1, 6, 4, 4))}).kernels() == {"cpu.conv2d": 1}
