"""Rows that regions read where indices say: beside the cpu's kernels, of any shape, on threads, and indices that are none."""

from __future__ import annotations

import threading

import graphdock as tf
import numpy as np
import pytest

_DTYPES = ("float32", "float64", "float16", "bfloat16", "int32", "int64", "bool")


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default():
        yield


def session(generic=False, threads=1, backends=("llvm", "cpu")):
    policy = "generic" if generic else "exact"
    return tf.Session(config=tf.SessionConfig(backends=backends, intra_op_threads=threads, shape_policy=policy))


def drawn(rng, dtype, *shape):
    if dtype.np.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    return (rng.normal(size=shape) * 3).astype(dtype.np)


def computed(rng, rows, other):
    """Values that are made of rows: elementwise, and of floats reductions along them and over them."""
    if rows.dtype == tf.bool:
        return [tf.logical_xor(rows, other), tf.reduce_any(tf.logical_and(rows, other), -1)]
    made = rows * other - rows
    if rows.dtype.is_integer:
        return [tf.maximum(made, other), tf.reduce_sum(made, -1)]
    centred = tf.tanh(made) - tf.reduce_mean(made, -1, keepdims=True)
    ways = (tf.nn.softmax(made), tf.reduce_sum(centred, list(range(len(rows.shape) - 1))), tf.reduce_max(made, -1))
    return [centred, ways[int(rng.integers(len(ways)))]]


@pytest.mark.parametrize("generic", [False, True])
@pytest.mark.parametrize("seed", range(21))
def test_random_regions_of_gathered_rows_agree_with_the_cpu(seed, generic):
    rng = np.random.default_rng(seed)
    dtype = tf.as_dtype(_DTYPES[seed % len(_DTYPES)])
    high, trailing = int(rng.choice([1, 5, 700])), [int(n) for n in rng.choice([2, 3, 16, 33, 130], rng.integers(1, 3))]
    few = int(rng.integers(1, 3))
    shapes = [[int(n) for n in rng.choice([1, 2, 6, 19], few)] for _ in range(3)]
    ids = tf.placeholder((tf.int32, tf.int64)[seed // 2 % 2], [None] * few if generic else shapes[0])
    table, other = tf.placeholder(dtype, [high, *trailing]), tf.placeholder(dtype, trailing)
    fetches = computed(rng, tf.gather(table, ids), other)
    with session(generic, 1 + seed % 2) as sess, session(generic, backends=("cpu",)) as plain:
        for shape in shapes if generic else shapes[:1] * 2:
            feed = {
                ids: rng.integers(0, high, shape).astype(ids.dtype.as_numpy_dtype),
                table: drawn(rng, dtype, high, *trailing),
                other: drawn(rng, dtype, *trailing),
            }
            half = dtype.np.itemsize == 2
            for got, want in zip(sess.run(fetches, feed), plain.run(fetches, feed), strict=True):
                assert got.dtype == want.dtype and got.shape == want.shape
                kept = {"rtol": 2e-2, "atol": 5e-2} if half else {"rtol": 1e-4, "atol": 1e-4}
                np.testing.assert_allclose(got.astype(float), want.astype(float), **kept)
        kernels = sess.explain(fetches, feed).kernels()
        assert "llvm.region" in kernels and not {"llvm.gather", "cpu.gather"} & kernels.keys(), kernels


@pytest.mark.parametrize("generic", [False, True])
def test_threads_share_rows_and_their_number_changes_no_bit(generic):
    rng = np.random.default_rng(3)
    table, ids = tf.placeholder(tf.float32, [5000, 320]), tf.placeholder(tf.int32, [None] if generic else [9000])
    rows = tf.gather(table, ids)
    y = [tf.reduce_sum(tf.tanh(rows), -1), tf.exp(rows * 0.1)]
    feed = {table: rng.normal(size=(5000, 320)), ids: rng.integers(0, 5000, 9000)}
    found = []
    for threads in (1, 2, 2):
        with session(generic, threads) as sess:
            sess.run(y, feed)
            found.append(sess.run(y, feed))
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)
    with session(threads=2, generic=generic) as sess:
        bad = feed | {ids: np.where(np.arange(9000) == 8123, -5, feed[ids])}
        for _ in range(2):
            with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[8123\] is -5"):
                sess.run(y, bad)
        np.testing.assert_array_equal(sess.run(y, feed)[0], found[0][0])


def test_two_tables_of_one_input_of_indices_are_each_held_to_it():
    ids = tf.placeholder(tf.int32, [6])
    large, small = tf.placeholder(tf.float32, [9, 8]), tf.placeholder(tf.float32, [4, 8])
    one, other = tf.gather(large, ids), tf.gather(small, ids)
    y = one * other + one
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(9, 8)).astype("f"), rng.normal(size=(4, 8)).astype("f")
    with session() as sess:
        assert sess.explain(y).kernels() == {"llvm.region": 1}
        for _ in range(2):
            good = rng.integers(0, 4, 6)
            np.testing.assert_allclose(sess.run(y, {ids: good, large: a, small: b}), a[good] * b[good] + a[good], 1e-5)
            with pytest.raises(tf.errors.InvalidArgumentError, match="size 4") as refused:
                sess.run(y, {ids: [0, 1, 2, 3, 4, 0], large: a, small: b})
            assert refused.value.op is other.op


@pytest.mark.plain  # debug mode finds out that an input changes
def test_indices_that_are_written_meanwhile_lead_beyond_nothing():
    """A thread puts wild numbers into the array that is fed: each step gives something, or fails of an index."""
    ids, table = tf.placeholder(tf.int64, [4096]), tf.placeholder(tf.float32, [16, 64])
    y = tf.tanh(tf.gather(table, ids)) * 2.0
    fed, done, seen = np.zeros(4096, np.int64), threading.Event(), set()

    def write():
        while not done.is_set():
            fed[::7] = 1 << 40
            fed[::7] = 3

    writer = threading.Thread(target=write)
    with session(threads=2) as sess:
        call = sess.make_callable(y, [ids, table])
        call(fed, np.ones((16, 64), np.float32))
        writer.start()
        try:
            for _ in range(300):
                try:
                    got = call(fed, np.ones((16, 64), np.float32))
                    np.testing.assert_allclose(got, np.tanh(1) * 2, 1e-6)
                    seen.add("made")
                except tf.errors.InvalidArgumentError:
                    seen.add("refused")
        finally:
            done.set()
            writer.join()
    assert seen


def test_an_embedding_with_its_norm_is_one_call_and_what_is_fetched_too_is_made():
    rng = np.random.default_rng(1)
    table, place = (tf.Variable(rng.normal(size=s).astype("f")) for s in ((100, 48), (12, 48)))
    ids = tf.placeholder(tf.int32, [3, 12])
    rows = tf.gather(table, ids)
    x = rows + place
    y = (x - tf.reduce_mean(x, -1, keepdims=True)) * tf.rsqrt(tf.reduce_mean(x * x, -1, keepdims=True) + 1e-6)
    with session() as sess:
        sess.run([table.initializer, place.initializer])
        assert sess.explain(y).kernels() == {"llvm.region": 1}
        assert sess.explain([y, rows]).kernels() == {"llvm.region": 1}
        chosen = rng.integers(0, 100, (3, 12))
        got, made, t, p = sess.run([y, rows, table, place], {ids: chosen})
    x = t[chosen] + p
    np.testing.assert_array_equal(made, t[chosen])
    want = (x - x.mean(-1, keepdims=True)) / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)
    np.testing.assert_allclose(got, want, 1e-4, 1e-5)


def test_rows_before_a_reduction_over_the_last_axis_and_others_are_in_a_region_before_it():
    rng = np.random.default_rng(1)
    table, ids = tf.placeholder(tf.float32, [40, 24]), tf.placeholder(tf.int32, [3, 50])
    rows = tf.gather(table, ids)
    y = tf.reduce_sum(tf.tanh(rows) * rows, [0, 2])
    feed = {table: rng.normal(size=(40, 24)), ids: rng.integers(0, 40, (3, 50))}
    with session() as sess:
        assert sess.explain(y, feed).kernels() == {"llvm.region": 2}
        taken = feed[table][feed[ids]]
        np.testing.assert_allclose(sess.run(y, feed), (np.tanh(taken) * taken).sum((0, 2)), 1e-4, 1e-4)


@pytest.mark.parametrize("generic", [False, True])
@pytest.mark.parametrize("beside", ["nothing", "draws", "a product", "parts"])
def test_rows_that_nobody_reads_are_checked_beside_anything(beside, generic):
    """A gather that is only waited for, of an unknown number of rows too: good indices compute, and others write nothing."""
    state = tf.Variable(np.zeros((16, 16), np.float32), use_resource=True)
    table, ids = tf.placeholder(tf.float32, [None if generic else 9, 16]), tf.placeholder(tf.int32, [16])
    x = tf.placeholder(tf.float32, [16, 16])
    rows = tf.gather(table, ids)
    with tf.control_dependencies([rows]):
        made = {
            "nothing": lambda: tf.tanh(x) * 2.0,
            "draws": lambda: tf.nn.dropout(x * 2.0, rate=0.5, seed=1) + x,
            "a product": lambda: tf.nn.relu(tf.matmul(x, x)),
            "parts": lambda: tf.tanh(tf.split(tf.concat([x, x], 1), 2, axis=1)[1]) + x,
        }[beside]()
        write = tf.assign(state, made)
    good = {table: np.ones((9, 16)), ids: np.arange(16) % 9, x: np.ones((16, 16))}
    with session(generic) as sess:
        sess.run(state.initializer)
        for _ in range(2):
            with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[0\] is 99") as refused:
                sess.run(write.op, {**good, ids: [99] * 16})
            assert refused.value.op is rows.op
            assert not sess.run(state).any()
        for _ in range(2):
            sess.run(write.op, good)
        assert sess.run(state).all()
