"""Cross-entropies with a class index per row, and sums of rows by number, by the plugin's functions beside NumPy's."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest


def _run(build, feed, kernel, threads=1):
    """The result of the plugin's kernel."""
    with tf.Session(config=tf.SessionConfig(backends=("llvm", "cpu"), intra_op_threads=threads)) as session:
        metadata = tf.RunMetadata()
        made = session.run(build, feed, run_metadata=metadata)
        assert kernel in {k.full_name for k in metadata.plan.placement.kernels.values()}
    return made


def _losses(x, labels):
    """Loss of each row, and its derivative, in float64."""
    d = x.astype(np.float64) - x.max(-1, keepdims=True)
    e = np.exp(d)
    s = e.sum(-1, keepdims=True)
    hot = np.arange(x.shape[-1]) == labels[..., None]
    return (np.log(s) - (d * hot).sum(-1, keepdims=True))[..., 0], e / s - hot


@pytest.mark.parametrize("seed", range(16))
def test_random_losses_agree_with_numpy(seed):
    rng = np.random.default_rng(seed)
    rows, classes = int(rng.choice([1, 3, 100, 4000])), int(rng.choice([1, 2, 10, 65, 300]))
    shape = (rows, classes) if seed % 2 else (2, rows, classes)
    x = (rng.normal(size=shape) * 5 + 1e3 * (seed % 3)).astype((np.float32, np.float64)[seed // 2 % 2])
    labels = rng.integers(0, classes, shape[:-1]).astype((np.int32, np.int64)[seed // 4 % 2])
    with tf.Graph().as_default():
        features, chosen = (
            tf.placeholder(tf.as_dtype(x.dtype), shape),
            tf.placeholder(tf.as_dtype(labels.dtype), shape[:-1]),
        )
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=chosen, logits=features)
        slope = tf.gradients(tf.reduce_sum(loss), features)[0]
        feed, kernel = {features: x, chosen: labels}, "llvm.sparse_softmax_cross_entropy_with_logits"
        both = _run([loss, slope], feed, kernel, 2)
        alone = _run(loss, feed, kernel)
    wanted, derivative = _losses(x, labels)
    exact = {"rtol": 1e-5, "atol": 1e-5 if x.dtype == np.float32 else 1e-12}
    np.testing.assert_allclose(both[0], wanted, **exact)
    np.testing.assert_allclose(both[1], derivative, **exact)
    np.testing.assert_array_equal(alone, both[0])


@pytest.mark.parametrize("label", [-1, 3, 1 << 30])
def test_a_label_that_is_no_class_is_an_error(label):
    with tf.Graph().as_default():
        labels = tf.placeholder(tf.int32, [2])
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=labels, logits=tf.placeholder_with_default(np.ones((2, 3)), [2, 3])
        )
        with pytest.raises(tf.errors.InvalidArgumentError, match=f"(?s)labels from 0 to 2.*{label}"):
            _run(loss, {labels: [0, label]}, "")


@pytest.mark.parametrize("seed", range(16))
def test_random_sums_of_rows_agree_with_numpy(seed):
    rng = np.random.default_rng(seed)
    rows, wide, count = (int(n) for n in rng.integers(1, 70, 3))
    shape = [(rows,), (rows, wide), (rows, 3, wide)][seed % 3]
    x = rng.normal(size=shape).astype((np.float32, np.float64)[seed // 2 % 2])
    ids = rng.integers(-1, count, (rows, 3) if seed % 6 == 5 else rows).astype((np.int32, np.int64)[seed // 4 % 2])
    with tf.Graph().as_default():
        data, numbers = tf.placeholder(tf.as_dtype(x.dtype), shape), tf.placeholder(tf.as_dtype(ids.dtype), ids.shape)
        y, feed = tf.unsorted_segment_sum(data, numbers, count), {data: x, numbers: ids}
        made = _run(y, feed, "llvm.unsorted_segment_sum")
        inside = _run(tf.nn.relu(y) + 1.0, feed, "llvm.unsorted_segment_sum")
    wanted = np.zeros((count, *shape[ids.ndim :]), x.dtype)
    flat = x.reshape(ids.size, *shape[ids.ndim :])
    for row, number in zip(flat, ids.ravel(), strict=True):
        if number >= 0:
            wanted[number] += row
    np.testing.assert_array_equal(made, wanted)
    np.testing.assert_array_equal(inside, np.maximum(wanted, 0) + 1)


def test_a_number_that_is_no_segment_is_an_error():
    with tf.Graph().as_default():
        numbers = tf.placeholder(tf.int64, [3])
        y = tf.unsorted_segment_sum(tf.placeholder_with_default(np.ones((3, 4), np.float32), [3, 4]), numbers, 2)
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"segment_ids\[1\] is 2"):
            _run(y, {numbers: [0, 2, 1]}, "")


@pytest.mark.parametrize("index", ["int32", "int64", "uint8"])
def test_a_one_hot_tensor_is_compared_where_it_is_read(index):
    """Class indices beyond the classes give a row of zeros; no tensor of all classes is made."""
    random = np.random.default_rng(0)
    x, w = random.normal(size=(50, 70)).astype(np.float32), random.normal(size=70).astype(np.float32)
    classes = random.integers(0, 90, 50).astype(index)
    logits, labels = tf.placeholder(tf.float32, x.shape), tf.placeholder(index, [50])
    weight = tf.Variable(w, use_resource=True)
    hot = tf.one_hot(labels, 70, 0.9, 0.1)
    chosen = tf.reduce_sum(tf.one_hot(labels, 70) * logits, 1)
    loss = tf.nn.softmax_cross_entropy_with_logits_v2(logits=logits + weight, labels=hot)
    (slope,) = tf.gradients(tf.reduce_mean(loss), weight)
    with tf.Session(config=tf.SessionConfig(backends=("llvm", "cpu"))) as session:
        session.run(weight.initializer)
        for fetch in (chosen, loss, [loss, slope], hot):
            assert session.explain(fetch).kernels() == {"llvm.region": 1}
        got = session.run([chosen, loss, slope, hot], {logits: x, labels: classes})
    one = np.where(np.arange(70) == classes[:, None].astype(np.int64), 1.0, 0.0)
    y, z = one * 0.8 + 0.1, x.astype(np.float64) + w
    log = np.log(np.exp(z).sum(1, keepdims=True)) - z
    back = (np.exp(-log) - y).mean(0)
    for made, want in zip(got, ((one * x).sum(1), (log * y).sum(1), back, y), strict=True):
        np.testing.assert_allclose(made, want, 1e-5, 1e-5)


@pytest.mark.parametrize("seed", range(8))
def test_losses_of_any_number_of_rows_are_those_of_known_ones(seed):
    """One plan for few rows and many, of two dims or more; no rows, and more than one thread takes."""
    rng = np.random.default_rng(seed)
    dtype, index, classes = (
        (np.float32, np.float64)[seed % 2],
        (np.int32, np.int64)[seed // 2 % 2],
        int(rng.choice([1, 3, 70])),
    )
    few = 1 + seed // 4
    features, labels = tf.placeholder(dtype, [None] * few + [classes]), tf.placeholder(index, [None] * few)
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=features)
    fetches = [loss, tf.gradients(tf.reduce_sum(loss), features)[0]] if seed % 3 else [loss]
    config = {"backends": ("llvm", "cpu"), "shape_policy": "generic", "intra_op_threads": 2}
    with tf.Session(config=tf.SessionConfig(**config)) as session:
        for shape in ((5,), (5,), (1,), (0,), (30_000,), (7,)) if few == 1 else ((2, 3), (1, 1), (0, 4), (300, 70)):
            x = (rng.normal(size=(*shape, classes)) * 4).astype(dtype)
            chosen = rng.integers(0, classes, shape).astype(index)
            got = session.run(fetches, {features: x, labels: chosen})
            for a, b in zip(got, _losses(x, chosen), strict=False):
                np.testing.assert_allclose(a, b, 1e-5, 1e-5 if dtype == np.float32 else 1e-12)
            if 0 not in shape:
                for wrong in (classes, -1):
                    bad = chosen.copy()
                    bad.flat[-1] = wrong
                    with pytest.raises(tf.errors.InvalidArgumentError, match=f"(?s)labels from 0 to.*{wrong}"):
                        session.run(fetches, {features: x, labels: bad})
        kernels = session.explain(fetches, {features: x, labels: chosen}).kernels()
        assert "llvm.sparse_softmax_cross_entropy_with_logits" in kernels
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(
                fetches,
                {features: np.ones((4, classes)), labels: [0]}
                if few == 1
                else {features: np.ones((2, 2, classes)), labels: [[0, 0]]},
            )
