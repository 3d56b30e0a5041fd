"""Batch norm and its gradient by the plugin's kernels, against NumPy in float64 and the cpu's kernels."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock_llvm.target import converts_halves

HALVES = ("bfloat16", "float16") if converts_halves() else ("bfloat16",)
SHAPES = [
    (4, 3, 5, 7),
    (32, 16, 9, 11),
    (2, 5, 1, 1),
    (1, 1, 3, 4),
    (3, 1, 1, 1),
    (70, 2, 3, 1),
    (5, 130, 2, 2),
    (2, 3, 2, 4, 5),
]


def norm(shape, form, dtype="float32", training=True):
    """Image, and what is computed of it: y, mean and variance, then the gradients by image, scale and offset."""
    wide = "float64" if dtype == "float64" else "float32"
    channels = shape[1]
    placed = shape if form.startswith("NC") else (shape[0], *shape[2:], channels)
    x = tf.placeholder(dtype, placed)
    scale, offset = (tf.constant(np.linspace(a, b, channels), wide) for a, b in ((0.5, 1.5), (-1, 1)))
    mean, variance = (tf.constant(np.linspace(a, b, channels), wide) for a, b in ((-0.5, 0.5), (1, 3)))
    given = {} if training else {"mean": mean, "variance": variance}
    y, mean, variance = tf.nn.fused_batch_norm(
        x, scale, offset, epsilon=1e-3, data_format=form, is_training=training, **given
    )
    g = np.random.default_rng(1).normal(size=placed)
    return x, g, [y, mean, variance, *tf.gradients(y, [x, scale, offset], grad_ys=tf.constant(g, dtype))]


def wanted(a, g, axes, training=True):
    """The same in float64."""
    kept = [1 if i in axes else n for i, n in enumerate(a.shape)]
    channels, count = max(kept), a.size // max(kept)
    scale, offset = (np.linspace(p, q, channels).reshape(kept) for p, q in ((0.5, 1.5), (-1, 1)))
    mean, variance = (a.mean(axes), a.var(axes)) if training else (offset.ravel() / 2, scale.ravel() * 2)
    m, d = mean.reshape(kept), 1 / np.sqrt(variance.reshape(kept) + 1e-3)
    hat = (a - m) * d
    by_x = g * scale
    if training:
        by_x = by_x - by_x.mean(axes, keepdims=True) - hat * (by_x * hat).mean(axes, keepdims=True)
    unbiased = variance * count / max(count - 1, 1) if training else variance
    return [hat * scale + offset, mean, unbiased, by_x * d, (g * hat).sum(axes), g.sum(axes)]


def run(x, a, fetches, threads=1, backends=("llvm", "cpu")):
    with tf.Session(config=tf.SessionConfig(backends=backends, intra_op_threads=threads)) as session:
        return session.run(fetches, {x: a}), session.explain(fetches, {x: a}).kernels()


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


@pytest.mark.parametrize("form", ["NCHW", "NHWC"])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_it_is_what_numpy_computes(shape, form, training):
    form = form if len(shape) == 4 else form.replace("C", "DC") if form[-1] == "C" else "NCDHW"
    x, g, fetches = norm(shape, form.replace("NHWDC", "NDHWC"), "float64", training)
    a = np.random.default_rng(0).normal(3, 2, x.shape.as_list())
    got, kernels = run(x, a, fetches)
    short = form.endswith("C") and 1 < shape[1] < 4  # of rows that NumPy is quicker with
    assert not {"cpu.fused_batch_norm", "cpu.fused_batch_norm_grad"} & kernels.keys() or short
    channel = 1 if form.startswith("NC") else len(shape) - 1
    want = wanted(a, g, tuple(i for i in range(len(shape)) if i != channel), training)
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other, 1e-9, 1e-9)


@pytest.mark.parametrize("form", ["NCHW", "NHWC"])
@pytest.mark.parametrize("dtype", ["float32", *HALVES])
def test_other_dtypes_agree_with_the_cpu(dtype, form):
    x, _, fetches = norm((16, 6, 7, 9), form, dtype)
    a = np.random.default_rng(0).normal(3, 2, x.shape.as_list()).astype(x.dtype.as_numpy_dtype)
    (got, kernels), (want, _) = run(x, a, fetches), run(x, a, fetches, backends=("cpu",))
    assert kernels.keys() >= {"llvm.fused_batch_norm", "llvm.fused_batch_norm_grad"}
    near = 2e-5 if dtype == "float32" else 2e-2
    for one, other in zip(got, want, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one.astype(float), other.astype(float), near, near)


@pytest.mark.parametrize("form", ["NCHW", "NHWC"])
def test_threads_give_the_same_bits_and_large_means_keep_their_digits(form):
    x, _, fetches = norm((40, 24, 60, 41), form)
    a = np.random.default_rng(0).uniform(999, 1001, x.shape.as_list()).astype(np.float32)
    alone, _ = run(x, a, fetches)
    for threads in (2, 3):
        for one, other in zip(run(x, a, fetches, threads)[0], alone, strict=True):
            np.testing.assert_array_equal(one, other)
    axes = (0, 2, 3) if form == "NCHW" else (0, 1, 2)
    np.testing.assert_allclose(alone[1], a.mean(axes, dtype=float), 5e-7)
    np.testing.assert_allclose(alone[2], a.astype(float).var(axes), 1e-3)


@pytest.mark.parametrize(("shape", "channels"), [([None, 4, 4, 8], 8), ([2, 4, 4, 3], 3)])
def test_unknown_shapes_and_short_rows_are_left_to_the_cpu(shape, channels):
    x = tf.placeholder(tf.float32, shape)
    y = tf.nn.fused_batch_norm(x, tf.ones([channels]), tf.ones([channels]), is_training=True)[0]
    with tf.Session(config=tf.SessionConfig(backends=("llvm", "cpu"), shape_policy="generic")) as session:
        assert session.explain(y).kernels()["cpu.fused_batch_norm"] == 1
        np.testing.assert_allclose(session.run(y, {x: np.ones((2, *shape[1:]))}), 1)
