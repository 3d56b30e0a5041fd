"""Updates of rows that indices name, beside the cpu's: scatter, and optimizers' steps for embeddings."""

from __future__ import annotations

import threading

import graphdock as tf
import numpy as np
import pytest

OPTIMIZERS = {
    "ResourceSparseApplyGradientDescent": lambda: tf.train.GradientDescentOptimizer(0.3),
    "ResourceSparseApplyMomentum": lambda: tf.train.MomentumOptimizer(0.3, 0.9),
    "ahead": lambda: tf.train.MomentumOptimizer(0.3, 0.9, use_nesterov=True),
    "ResourceSparseApplyAdagrad": lambda: tf.train.AdagradOptimizer(0.3),
}


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default():
        yield


def session(backends=("llvm", "cpu"), generic=False):
    return tf.Session(config=tf.SessionConfig(backends=backends, shape_policy="generic" if generic else "exact"))


def steps(build, feeds, backends, generic=False):
    """Values of variables after each step, and the names of its kernels."""
    fetch, variables = build
    with session(backends, generic) as sess:
        sess.run(tf.global_variables_initializer())
        found = []
        for feed in feeds:
            metadata = tf.RunMetadata()
            sess.run(fetch, feed, run_metadata=metadata)
            found.append(sess.run(variables))
    return found, {k.full_name for k in metadata.plan.placement.kernels.values()}


def applied(name, dtype, index, shape, count):
    """An optimizer's step for rows that are fed; its variables."""
    table = tf.Variable(np.random.default_rng(0).normal(size=shape).astype(dtype), use_resource=True)
    rows = tf.placeholder(dtype, [count, *shape[1:]])
    ids = tf.placeholder(index, [count])
    step = OPTIMIZERS[name]().apply_gradients([(tf.IndexedSlices(rows, ids, tf.constant(shape)), table)])
    return (step, tf.global_variables()), rows, ids


@pytest.mark.parametrize("generic", [False, True])
@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("seed", range(4))
def test_steps_for_named_rows_are_those_of_the_cpu(name, seed, generic):
    rng = np.random.default_rng([seed, len(name)])
    dtype, index = (np.float32, np.float64)[seed % 2], (np.int32, np.int64)[seed // 2]
    shape = [int(rng.choice([1, 7, 300])), *[(), (5,), (3, 33), (130,)][seed]]
    count = int(rng.choice([1, 9, 400]))
    build, rows, ids = applied(name, dtype, index, shape, None if generic else count)
    feeds = []
    for some in (count, count, *([0, 3, 1000] if generic else [])):
        high = int(rng.integers(1, shape[0] + 1))  # all rows, or few that are named often
        feeds.append({rows: rng.normal(size=(some, *shape[1:])), ids: rng.integers(0, high, some)})
    mine, kernels = steps(build, feeds, ("llvm", "cpu"), generic)
    want, _ = steps(build, feeds, ("cpu",), generic)
    assert any(k.startswith("llvm.resource_sparse_apply") for k in kernels), kernels
    for got, wanted in zip(mine, want, strict=True):
        for a, b in zip(got, wanted, strict=True):
            np.testing.assert_allclose(a, b, *((2e-5, 2e-5) if dtype == np.float32 else (1e-11, 1e-11)))


@pytest.mark.parametrize("op", ["assign_sub", "assign_add", "update"])
@pytest.mark.parametrize("shape", [(6,), (6, 5), (40, 2, 37)])
def test_scatters_are_those_of_numpy(op, shape):
    rng = np.random.default_rng(1)
    start = rng.normal(size=shape).astype("f")
    table = tf.Variable(start, use_resource=True)
    ids, rows = tf.placeholder(tf.int32, [2, 4]), tf.placeholder(tf.float32, [2, 4, *shape[1:]])
    made = {
        "assign_sub": lambda: tf.scatter_sub(table, ids, rows),
        "assign_add": lambda: tf.scatter_add(table, ids, rows),
        "update": lambda: tf.scatter_update(table, ids, rows),
    }[op]()
    chosen, given = rng.integers(0, shape[0], (2, 4)), rng.normal(size=(2, 4, *shape[1:])).astype("f")
    want = start.copy()
    for place, row in zip(chosen.reshape(-1), given.reshape(8, *shape[1:]), strict=True):
        want[place] = {"assign_sub": want[place] - row, "assign_add": want[place] + row, "update": row}[op]
    with session() as sess:
        sess.run(table.initializer)
        assert any(k.startswith("llvm.resource_scatter") for k in sess.explain(made).kernels())
        sess.run(made.op if hasattr(made, "op") else made, {ids: chosen, rows: given})
        np.testing.assert_array_equal(sess.run(table), want)


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("index", [-1, 9, 1 << 40])
def test_a_row_that_is_not_there_is_the_error_of_the_cpu_and_nothing_is_written(name, index):
    build, rows, ids = applied(name, np.float32, np.int64, (9, 4), 3)
    said = []
    for backends in (("llvm", "cpu"), ("cpu",)):
        with session(backends) as sess:
            sess.run(tf.global_variables_initializer())
            good = {rows: np.ones((3, 4)), ids: [1, 8, 1]}
            for _ in range(2):
                sess.run(build[0], good)
                before = sess.run(build[1])
                with pytest.raises(tf.errors.InvalidArgumentError) as refused:
                    sess.run(build[0], {rows: np.ones((3, 4)), ids: [1, 8, index]})
                for a, b in zip(before, sess.run(build[1]), strict=True):
                    np.testing.assert_array_equal(a, b)
            said.append(str(refused.value))
    assert said[0] == said[1] and "a row to update is not there" in said[0]


def test_a_scatter_out_of_range_is_the_error_of_the_cpu():
    table = tf.Variable(np.zeros((4, 3), np.float32), use_resource=True)
    ids = tf.placeholder(tf.int32, [2, 2])
    made, said = tf.scatter_add(table, ids, tf.ones([2, 2, 3])), []
    for backends in (("llvm", "cpu"), ("cpu",)):
        with session(backends) as sess:
            sess.run(table.initializer)
            with pytest.raises(tf.errors.InvalidArgumentError) as refused:
                sess.run(made, {ids: [[0, 1], [4, 2]]})
            said.append(str(refused.value))
            assert not sess.run(table).any()
    assert said[0] == said[1] and "indices[1][0] is 4" in said[0]


def test_what_is_not_computed_here_is_the_cpus():
    table = tf.Variable(np.zeros((4, 3), np.float32), use_resource=True)
    ids = tf.placeholder(tf.int32, [2])
    with session() as sess:
        sess.run(table.initializer)
        one_number = tf.scatter_add(table, ids, 2.0)
        assert any(k.startswith("cpu.resource_scatter") for k in sess.explain(one_number).kernels())
        np.testing.assert_array_equal(sess.run(one_number, {ids: [1, 1]})[1], 4.0)


def test_many_rows_whose_hashes_meet_are_each_summed():
    """Rows that lie far apart by powers of two, each named twice, and 100,000 names of few rows."""
    high = 1 << 17
    build, rows, ids = applied("ResourceSparseApplyAdagrad", np.float32, np.int64, (high, 2), None)
    rng = np.random.default_rng(0)
    far = np.concatenate([np.arange(0, high, 1 << 9)] * 2)
    feeds = [
        {rows: rng.normal(size=(far.size, 2)), ids: far},
        {rows: rng.normal(size=(100_000, 2)), ids: rng.integers(0, 50, 100_000)},
        {rows: rng.normal(size=(100_000, 2)), ids: rng.permutation(high)[:100_000]},
    ]
    mine, _ = steps(build, feeds, ("llvm", "cpu"), True)
    want, _ = steps(build, feeds, ("cpu",), True)
    for got, wanted in zip(mine, want, strict=True):
        for a, b in zip(got, wanted, strict=True):
            np.testing.assert_allclose(a, b, 1e-3, 1e-3)


def test_steps_on_several_threads_sum_in_memory_of_their_own():
    tables = [tf.Variable(np.zeros((50, 8), np.float32), use_resource=True) for _ in range(4)]
    rows, ids = tf.placeholder(tf.float32, [30, 8]), tf.placeholder(tf.int32, [30])
    slices = tf.IndexedSlices(rows, ids, tf.constant([50, 8]))
    updates = [tf.train.MomentumOptimizer(1.0, 0.0).apply_gradients([(slices, table)]) for table in tables]
    with session() as sess:
        sess.run(tf.global_variables_initializer())

        def work(number):
            for _ in range(50):
                sess.run(updates[number], {rows: np.full((30, 8), -1.0), ids: np.arange(30) % (number + 1)})

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for number, held in enumerate(sess.run(tables)):
            np.testing.assert_array_equal(held.sum(), 50 * 30 * 8)
            assert (held[number + 1 :] == 0).all()


def test_training_an_embedding_is_one_native_call_of_any_optimizer():
    rng = np.random.default_rng(5)
    ids, labels = tf.placeholder(tf.int32, [64]), tf.placeholder(tf.int32, [64])
    table = tf.Variable(rng.normal(size=(90, 32)).astype("f"), use_resource=True)
    w = tf.Variable(rng.normal(size=(32, 10)).astype("f"), use_resource=True)
    logits = tf.matmul(tf.nn.embedding_lookup(table, ids), w)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    feed = {ids: rng.integers(0, 90, 64), labels: rng.integers(0, 10, 64)}
    for make in OPTIMIZERS.values():
        train = make().minimize(loss)
        found = []
        for backends in (("llvm", "cpu"), ("cpu",)):
            with session(backends) as sess:
                sess.run(tf.global_variables_initializer())
                losses = [float(sess.run([loss, train], feed)[0]) for _ in range(6)]
                found.append([*losses, *(v.sum() for v in sess.run([table, w]))])
                kernels = sess.explain([loss, train], feed).kernels()
                assert not any(k.startswith("cpu.") for k in kernels) or backends == ("cpu",), kernels
        np.testing.assert_allclose(found[0], found[1], 1e-4)
        assert losses[-1] < losses[0]


def test_one_number_for_one_row_is_the_cpus():
    table = tf.Variable(np.ones((4, 8), np.float32), use_resource=True)
    made = tf.scatter_add(table, 2, 5.0)
    with session() as sess:
        sess.run(table.initializer)
        np.testing.assert_array_equal(sess.run(made)[:, 0], [1, 1, 6, 1])


def test_rows_that_do_not_fit_and_none_at_all_are_as_the_cpu_has_them():
    table = tf.Variable(np.ones((4, 8), np.float32), use_resource=True)
    rows, ids = tf.placeholder(tf.float32, None), tf.placeholder(tf.int32, [None])
    slices = tf.IndexedSlices(rows, ids, tf.constant([4, 8]))
    step, said = tf.train.MomentumOptimizer(0.1, 0.9).apply_gradients([(slices, table)]), []
    for backends in (("llvm", "cpu"), ("cpu",)):
        with session(backends, generic=True) as sess:
            sess.run(tf.global_variables_initializer())
            sess.run(step, {rows: np.zeros((0, 8)), ids: []})
            with pytest.raises(tf.errors.InvalidArgumentError) as refused:
                sess.run(step, {rows: np.ones((1, 3)), ids: [1]})
            said.append(str(refused.value))
            np.testing.assert_array_equal(sess.run(table), 1.0)
    assert said[0] == said[1]
