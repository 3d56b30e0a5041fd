"""Slices chosen by indices, beside NumPy's, in runs of native launches: what they give, and indices that are none."""

from __future__ import annotations

import re

import graphdock as tf
import numpy as np
import pytest

_DTYPES = ("bool", "int8", "float16", "bfloat16", "float32", "int64", "complex64", "complex128")


def session(generic=False, threads=2):
    policy = "generic" if generic else "exact"
    config = tf.SessionConfig(backends=("llvm", "cpu"), intra_op_threads=threads, shape_policy=policy)
    return tf.Session(config=config)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default():
        yield


def kernels(sess, fetches, feed):
    metadata = tf.RunMetadata()
    sess.run(fetches, feed, run_metadata=metadata)
    return {k.full_name for k in metadata.plan.placement.kernels.values()}


@pytest.mark.parametrize("generic", [False, True])
@pytest.mark.parametrize("seed", range(16))
def test_slices_are_those_of_numpy(seed, generic):
    rng = np.random.default_rng(seed)
    dtype = tf.as_dtype(_DTYPES[seed % len(_DTYPES)])
    rank, few = int(rng.integers(1, 4)), int(rng.integers(0, 3))
    axis = int(rng.integers(-rank, rank))
    x, i = tf.placeholder(dtype, [None] * rank), tf.placeholder((tf.int32, tf.int64)[seed // 2 % 2], [None] * few)
    y = tf.gather(x, i, axis=axis)
    with session(generic, 1 + seed % 2) as sess:
        for step in range(4):
            shape = [int(n) for n in rng.choice([1, 2, 7, 40, 300], rank)]
            chosen = [int(n) for n in rng.choice([0, 1, 3, 20, 1000], few)]
            if step == 3:  # slices of no elements, which have indices all the same
                shape[(axis + 1 + seed % 2) % rank] = 0 if rank > 1 and seed % 2 < rank - 1 else 1
            fed = rng.integers(0, 2, shape).astype(dtype.np) if dtype.np.kind == "b" else None
            fed = (rng.normal(size=shape) * 50).astype(dtype.np) if fed is None else fed
            numbers = rng.integers(0, shape[axis], chosen).astype(i.dtype.np)
            got = sess.run(y, {x: fed, i: numbers})
            want = np.take(fed, numbers, axis)
            assert got.dtype == want.dtype and got.tobytes() == want.tobytes()
        assert kernels(sess, y, {x: fed, i: numbers}) == {"llvm.gather"}


@pytest.mark.parametrize("generic", [False, True])
def test_parts_of_two_threads_meet(generic):
    x, i = tf.placeholder(tf.float32, [None, None, None]), tf.placeholder(tf.int32, [None])
    y = tf.gather(x, i, axis=1)
    rng = np.random.default_rng(0)
    with session(generic) as sess:
        for shape, count in (((3, 5000, 33), 4001), ((1, 70, 2), 90001), ((2, 3, 100003), 5)):
            fed, numbers = rng.normal(size=shape).astype(np.float32), rng.integers(0, shape[1], count).astype(np.int32)
            for _ in range(3):
                np.testing.assert_array_equal(sess.run(y, {x: fed, i: numbers}), np.take(fed, numbers, 1))


@pytest.mark.parametrize("generic", [False, True])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_an_index_out_of_range_is_the_error_of_the_cpu(generic, dtype):
    x, i = tf.placeholder(tf.float32, [None, None]), tf.placeholder(dtype, [None, None])
    y = tf.gather(x, i, axis=1)
    fed = np.float32([[1, 2, 3], [4, 5, 6]])
    said = {}
    for backends in (("llvm", "cpu"), ("cpu",)):
        config = tf.SessionConfig(backends=backends, shape_policy="generic" if generic else "exact")
        with tf.Session(config=config) as sess:
            for wrong in (3, -1, np.iinfo(dtype).min, np.iinfo(dtype).max):
                sess.run(y, {x: fed, i: [[0, 1], [2, 1]]})
                with pytest.raises(tf.errors.InvalidArgumentError) as refused:
                    sess.run(y, {x: fed, i: [[0, 1], [wrong, 1]]})
                assert refused.value.op is y.op
                said.setdefault(wrong, []).append(str(refused.value))
            for shape in ((2, 0), (0, 0)):
                with pytest.raises(tf.errors.InvalidArgumentError, match=re.escape("indices[0][0] is 0")):
                    sess.run(y, {x: np.zeros(shape, np.float32), i: [[0]]})
    for wrong, (mine, others) in said.items():
        assert mine == others and f"indices[1][0] is {wrong}" in mine


def network(batch):
    """A step of an embedding, a layer, a loss by class and updates: what is fetched, what is fed, and its variables."""
    rng = np.random.default_rng(1)
    ids, labels = tf.placeholder(tf.int32, [batch]), tf.placeholder(tf.int32, [batch])
    table = tf.Variable(rng.normal(size=(50, 32)).astype(np.float32))
    w = tf.Variable(rng.normal(size=(32, 10)).astype(np.float32))
    logits = tf.matmul(tf.tanh(tf.gather(table, ids)), w)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    slopes = tf.gradients(loss, [w])
    return [loss, w.assign_sub(0.1 * slopes[0])], ids, labels, (table, w)


@pytest.mark.plain
def test_a_step_that_chooses_rows_and_labels_is_one_native_call():
    """Embedding, product, loss by class and update: no kernel of Python ends the run."""
    fetches, ids, labels, variables = network(20)
    rng = np.random.default_rng(2)
    feed = {ids: rng.integers(0, 50, 20), labels: rng.integers(0, 10, 20)}
    with session() as sess:
        sess.run([v.initializer for v in variables])
        metadata = tf.RunMetadata()
        sess.run(fetches, feed, run_metadata=metadata)
        step = metadata.plan.program.source.partition("def step")[2]
    assert len(re.findall(r"\ba\d+\(", step)) == 1 and not re.search(r"\bk\d+\(", step), step


@pytest.mark.parametrize("batch", [20, None])
def test_a_step_that_fails_names_its_node_and_writes_nothing(batch):
    fetches, ids, labels, variables = network(batch)
    rng = np.random.default_rng(2)
    good = {ids: rng.integers(0, 50, 20), labels: rng.integers(0, 10, 20)}
    wrong = {
        "SparseSoftmaxCrossEntropyWithLogits": {**good, labels: np.where(np.arange(20) == 11, 10, good[labels])},
        "Gather": {**good, ids: np.where(np.arange(20) == 11, 50, good[ids])},
    }
    with session(batch is None) as sess, tf.Session(config=tf.SessionConfig(backends=("cpu",))) as other:
        for each in (sess, other):
            each.run([v.initializer for v in variables])
        for _ in range(3):
            np.testing.assert_allclose(sess.run(fetches, good)[0], other.run(fetches, good)[0], 1e-5)
            before = sess.run(variables)
            for op, feed in wrong.items():
                with pytest.raises(tf.errors.InvalidArgumentError) as refused:
                    sess.run(fetches, feed)
                assert refused.value.op.type == op
                for had, has in zip(before, sess.run(variables), strict=True):
                    np.testing.assert_array_equal(had, has)
