"""Products of matrices in a batch by gathered rows, beside NumPy's in float64."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock import ops as tf_ops
from graphdock_llvm.target import width


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


@pytest.mark.parametrize("seed", range(16))
def test_random_sums_of_products_agree_with_numpy(seed):
    """As plans make them of the gradients by a weight that is used many times: matrices anywhere in memory."""
    rng = np.random.default_rng(seed)
    rows, columns = (int(n) for n in rng.integers(16, 150, 2))
    along, count = int(rng.choice([16, 50, 70, 513, 600])), int(rng.integers(2, 30))
    turns, batch = [bool(seed & bit) for bit in (1, 2)], [2, 3] if seed % 5 == 0 else []
    shapes = (along, rows) if turns[0] else (rows, along), (columns, along) if turns[1] else (along, columns)
    sides = [[rng.normal(size=(*batch, *shape)).astype(np.float32) for _ in range(count)] for shape in shapes]
    with tf.Graph().as_default():
        given = [[tf.placeholder(tf.float32, m.shape) for m in side] for side in sides]
        y = tf_ops.apply_op("MatMulSum", a=given[0], b=given[1], transpose_a=turns[0], transpose_b=turns[1])
        feed = dict(zip([*given[0], *given[1]], [*sides[0], *sides[1]], strict=True))
        made = []
        for threads in (1, 2):
            config = tf.SessionConfig(backends=("llvm", "cpu"), intra_op_threads=threads)
            with tf.Session(config=config) as session:
                assert session.explain(y).kernels() == {"llvm.mat_mul_sum": 1}
                made += [session.run(y, feed), session.run(tf.nn.relu(y), feed)]
    left, right = ([np.swapaxes(m, -1, -2) if t else m for m in side] for side, t in zip(sides, turns, strict=True))
    wanted = sum(p.astype(np.float64) @ q for p, q in zip(left, right, strict=True))
    np.testing.assert_array_equal(made[0], made[2])
    np.testing.assert_allclose(made[0], wanted, rtol=1e-4, atol=1e-5 * np.sqrt(along * count) * 4)
    np.testing.assert_allclose(made[1], np.maximum(wanted, 0), rtol=1e-4, atol=1e-5 * np.sqrt(along * count) * 4)


@pytest.mark.parametrize(("count", "size", "whose"), [(8, 16, "llvm"), (64, 16, "cpu"), (64, 32, "llvm")])
def test_many_small_products_are_the_cpus(count, size, whose):
    x = tf.placeholder(tf.float32, [count, size, size])
    with tf.Session(config=tf.SessionConfig(backends=("llvm", "cpu"))) as session:
        assert session.explain(tf.matmul(x, x)).kernels() == {f"{whose}.mat_mul": 1}


@pytest.mark.skipif(width() < 16, reason="OpenBLAS's with shorter registers")
@pytest.mark.parametrize(
    ("rows", "along", "columns", "turns"),
    [
        (1, 512, 600, (0, 0)),
        (5, 1000, 300, (0, 1)),
        (300, 1000, 7, (0, 0)),
        (12, 1024, 1024, (0, 0)),
        (130, 1024, 33, (1, 0)),
    ],
)
def test_products_that_no_region_takes_agree_with_numpy(rows, along, columns, turns):
    """Few rows or columns, rows that lie 4096 bytes apart, panels too large for a stack."""
    rng = np.random.default_rng(rows)
    a = rng.normal(size=(along, rows) if turns[0] else (rows, along)).astype(np.float32)
    b = rng.normal(size=(columns, along) if turns[1] else (along, columns)).astype(np.float32)
    with tf.Graph().as_default(), tf.Session(config=tf.SessionConfig(backends=("llvm", "cpu"))) as session:
        x, z = tf.placeholder(tf.float32, a.shape), tf.placeholder(tf.float32, b.shape)
        product = tf.matmul(x, z, *map(bool, turns))
        made = session.run([product, tf.nn.relu(product) + 1.0], {x: a, z: b})
        kernels = session.explain([product, tf.nn.relu(product) + 1.0], {x: a, z: b}).kernels()
    wanted = (a.T if turns[0] else a).astype(np.float64) @ (b.T if turns[1] else b)
    assert "cpu.mat_mul" not in kernels
    np.testing.assert_allclose(made[0], wanted, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(made[1], np.maximum(wanted, 0) + 1, rtol=1e-4, atol=1e-3)
