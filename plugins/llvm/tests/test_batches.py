"""Products of matrices in a batch by gathered rows, beside NumPy's in float64."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest


@pytest.mark.parametrize("seed", range(24))
def test_random_batches_agree_with_numpy(seed):
    rng = np.random.default_rng(seed)
    rows, columns = (int(n) for n in rng.integers(8, 90, 2))
    along = int(rng.choice([64, 70, 513, 600]))
    turn_a, turn_b = (bool(rng.integers(2)) for _ in range(2))
    batch = [int(n) for n in rng.integers(1, 4, int(rng.integers(1, 3)))]
    one = [1 if rng.random() < 0.3 else n for n in batch]
    a = rng.normal(size=(*batch, *((along, rows) if turn_a else (rows, along)))).astype(np.float32)
    b = rng.normal(size=(*one, *((columns, along) if turn_b else (along, columns)))).astype(np.float32)
    with tf.Graph().as_default():
        x, z = tf.placeholder(tf.float32, a.shape), tf.placeholder(tf.float32, b.shape)
        y = tf.nn.softmax(tf.matmul(x, z, transpose_a=turn_a, transpose_b=turn_b) * 0.1)
        with tf.Session(config=tf.SessionConfig(backends=("llvm", "cpu"))) as session:
            metadata = tf.RunMetadata()
            made = session.run(y, {x: a, z: b}, run_metadata=metadata)
            kernels = {n.op: k.full_name for n, k in metadata.plan.placement.kernels.items()}
        with tf.Session(config=tf.SessionConfig(backends=("llvm", "cpu"), fusion=False)) as session:
            np.testing.assert_allclose(session.run(y, {x: a, z: b}), made, rtol=1e-4, atol=1e-6)
    assert kernels["MatMul"] == "llvm.mat_mul"
    left, right = (np.swapaxes(m, -1, -2) if turn else m for m, turn in ((a, turn_a), (b, turn_b)))
    scores = 0.1 * np.matmul(left.astype(np.float64), right.astype(np.float64))
    wanted = np.exp(scores - scores.max(-1, keepdims=True))
    np.testing.assert_allclose(made, wanted / wanted.sum(-1, keepdims=True), rtol=1e-4, atol=1e-6)
