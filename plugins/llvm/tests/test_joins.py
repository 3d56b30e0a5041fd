"""Tensors joined along an axis and cut along one by the plugin's function, beside NumPy's."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest

DTYPES = (np.bool_, np.int8, np.int16, np.float32, np.int64, np.complex128)


def _drawn(seed):
    """Sizes of parts along an axis, the whole, and the axis as it is written."""
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(2, 5))
    axis = int(rng.integers(1, rank))
    shape = [int(n) for n in rng.integers(2, 9, rank)]
    sizes = [int(n) for n in rng.integers(0, 40, int(rng.integers(2, 6)))]
    sizes[:2] = sizes[0] + 1, sizes[1] + 1
    shape[axis] = sum(sizes)
    if seed % 5 == 0:
        shape[0] = 3000  # enough for threads
    whole = rng.integers(0, 100, shape).astype(DTYPES[seed % len(DTYPES)])
    return sizes, whole, axis - rank if rng.random() < 0.5 else axis


def _run(build, feed, kernel):
    """The result of the plugin's kernel, also where it is read by a region."""
    with tf.Session(config=tf.SessionConfig(backends=("llvm", "cpu"), intra_op_threads=2)) as session:
        metadata = tf.RunMetadata()
        made = session.run(build, feed, run_metadata=metadata)
        assert kernel in {k.full_name for k in metadata.plan.placement.kernels.values()}
    return made


@pytest.mark.parametrize("seed", range(24))
def test_random_joins_agree_with_numpy(seed):
    sizes, whole, axis = _drawn(seed)
    parts = np.split(whole, np.cumsum(sizes)[:-1], axis)
    with tf.Graph().as_default():
        values = [tf.placeholder(tf.as_dtype(p.dtype), p.shape) for p in parts]
        made = _run(tf.concat(values, axis), dict(zip(values, parts, strict=True)), "llvm.concat")
    np.testing.assert_array_equal(made, whole)


@pytest.mark.parametrize("seed", range(24))
def test_random_cuts_agree_with_numpy(seed):
    sizes, whole, axis = _drawn(seed)
    with tf.Graph().as_default():
        value = tf.placeholder(tf.as_dtype(whole.dtype), whole.shape)
        made = _run(tf.split(value, sizes, axis), {value: whole}, "llvm.split_v")
    for part, wanted in zip(made, np.split(whole, np.cumsum(sizes)[:-1], axis), strict=True):
        np.testing.assert_array_equal(part, wanted)


def test_equal_parts_and_slices_go_into_regions_and_come_back():
    x = np.random.default_rng(1).normal(size=(50, 12, 32)).astype(np.float32)
    with tf.Graph().as_default():
        value = tf.placeholder(tf.float32, x.shape)
        halves = [tf.tanh(part) * 2.0 for part in tf.split(value, 2, 2)]
        rows = [tf.nn.relu(row) + 1.0 for row in tf.unstack(value, axis=1)]
        fetches, feed = [tf.concat(halves, -1), tf.stack(rows, axis=1), tf.stack(rows, axis=2)], {value: x}
        for kernel in ("llvm.concat", "llvm.pack"):
            both, stacked, last = _run(fetches, feed, kernel)
        rest = _run(tf.split(value, 2, 2)[1:], feed, "llvm.split")
    np.testing.assert_allclose(both, 2 * np.tanh(x), rtol=1e-5)
    np.testing.assert_array_equal(rest[0], x[..., 16:])
    np.testing.assert_array_equal(stacked, np.maximum(x, 0) + 1)
    np.testing.assert_array_equal(last, np.swapaxes(stacked, 1, 2))


def test_parts_without_gaps_stay_views():
    with tf.Graph().as_default(), tf.Session(config=tf.SessionConfig(backends=("llvm", "cpu"))) as session:
        value = tf.placeholder(tf.float32, [1, 6, 4])
        rows = session.explain(tf.split(value, 2, 1)).kernels()
        assert rows == {"cpu.split": 1}


@pytest.mark.plain
def test_a_recurrent_step_with_its_gates_is_one_native_call():
    """Two steps of an LSTM: what stands between the products and the cells is native too."""
    w, h = np.random.default_rng(2).normal(size=(48, 128)).astype(np.float32), np.ones((20, 32), np.float32)
    with tf.Graph().as_default(), tf.Session(config=tf.SessionConfig(backends=("llvm", "cpu"))) as session:
        weights, x = tf.placeholder(tf.float32, w.shape), tf.placeholder(tf.float32, [20, 16])
        cell, state = (tf.placeholder(tf.float32, h.shape) for _ in range(2))
        c, s = cell, state
        for _ in range(2):
            gates = tf.split(tf.matmul(tf.concat([x, s], 1), weights), 4, 1)
            c = tf.sigmoid(gates[0]) * c + tf.sigmoid(gates[1]) * tf.tanh(gates[2])
            s = tf.sigmoid(gates[3]) * tf.tanh(c)
        source = session.explain(tf.reduce_sum(s)).source.partition("def step")[2]
        assert source.count("    a0(") == 1 and "    k" not in source, source
