"""A linear layer with its cross-entropy on cpus, by chunks of a few classes, against the specs' oracles."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock import ops
from graphdock_cpu.kernels import linear_cross_entropy as kernels
from graphdock_std.reference.linear_cross_entropy import linear_cross_entropy, linear_cross_entropy_grad

OP = "LinearSparseSoftmaxCrossEntropy"
EXACT = {"float32": 1e-5, "float64": 1e-6, "float16": 4e-3, "bfloat16": 3e-2}


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Chunks of seven classes."""
    monkeypatch.setattr(kernels, "CHUNK", 0)
    monkeypatch.setattr(kernels, "LEAST", 7)


def run(arrays, factors, known=True, **attrs):
    """Loss, logarithm and gradients in one step, and each gradient by itself."""
    with tf.Graph().as_default():
        shapes = {n: a.shape if known else [None] * a.ndim for n, a in arrays.items()}
        feeds = {n: tf.placeholder(a.dtype, shapes[n]) for n, a in arrays.items()}
        made = list(ops.apply_op(OP, **feeds, **attrs))
        smooth = [feeds[n] for n in ("x", "w", "bias") if n in feeds]
        slopes = tf.gradients(made[0], smooth, tf.constant(factors, tf.float32))
        feed = {feeds[n]: a for n, a in arrays.items()}
        with tf.Session() as session:
            return session.run([*made, *slopes], feed), [session.run(s, feed) for s in slopes]


@pytest.mark.parametrize(("dtype", "known"), [(d, True) for d in EXACT] + [("float32", False)])
@pytest.mark.parametrize(("classes", "turned"), [(1, False), (7, True), (15, False)])
def test_chunks(dtype, known, classes, turned):
    """The largest logits are mostly in the last chunk."""
    random = np.random.default_rng(classes)
    x, w, bias = (random.standard_normal(s) for s in ((5, 3), (classes, 3) if turned else (3, classes), (classes,)))
    arrays = {
        n: a.astype(tf.as_dtype(dtype).as_numpy_dtype)
        for n, a in (("x", x), ("w", w), ("bias", bias + np.linspace(0.0, 6.0, classes)))
    }
    arrays["labels"] = np.array([0, classes - 1, classes // 2, 0, classes - 1])
    factors = np.linspace(0.5, 2.0, 5)
    if classes == 7:
        del arrays["bias"]
    want = linear_cross_entropy(**arrays, transpose_w=turned)
    slopes = linear_cross_entropy_grad(factors, **arrays, log_sum=want[1], transpose_w=turned)
    got, alone = run(arrays, factors, known, transpose_w=turned)
    for mine, theirs in zip([*got, *alone], [*want, *(2 * slopes[: len(alone)])], strict=True):
        np.testing.assert_allclose(mine.astype(float), theirs.astype(float), rtol=EXACT[dtype], atol=EXACT[dtype])


@pytest.mark.parametrize("label", [-1, 15])
def test_a_label_that_is_no_class(label):
    arrays = {"x": np.ones((2, 3), np.float32), "w": np.ones((3, 15), np.float32), "labels": np.array([3, label])}
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"labels from 0 to 14.*got {label}"):
        run(arrays, [1.0, 1.0])


def test_logits_that_are_not_finite():
    """None of the first chunk is finite; NaN of any chunk is the row's."""
    w = np.zeros((1, 15), np.float32)
    w[0, :7] = -np.inf
    arrays = {"x": np.ones((1, 1), np.float32), "w": w, "labels": np.array([9])}
    (loss, log_sum, _, dw), _ = run(arrays, [1.0])
    np.testing.assert_allclose([*loss, *log_sum], [np.log(8)] * 2, rtol=1e-6)
    np.testing.assert_allclose(dw[0], np.where(np.arange(15) < 7, 0, 0.125) - (np.arange(15) == 9), atol=1e-6)
    for value in (np.nan, np.inf):
        w[0, 14] = value
        (loss, log_sum, _, dw), _ = run(arrays, [1.0])
        assert np.isnan(loss).all() and not np.isfinite(log_sum).any() and np.isnan(dw).any()
    w[:] = -np.inf
    assert np.isnan(run(arrays, [1.0])[0][0]).all()
