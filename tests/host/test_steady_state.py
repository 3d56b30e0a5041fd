"""Steps that run again and again: no allocation, exact totals from threads, the same source under two hash seeds."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import tracemalloc

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts.ir_print import print_graph

SEEDS_PROGRAM = """
import graphdock as tf
x = tf.placeholder(tf.float32, [10, 784])
y = tf.placeholder(tf.float32, [10, 10])
W_1 = tf.Variable(tf.random_uniform([784, 10], seed=1))
b_1 = tf.Variable(tf.zeros([10]))
layer_1 = tf.matmul(x, W_1) + b_1
loss = tf.nn.softmax_cross_entropy_with_logits(logits=layer_1, labels=y)
train_op = tf.train.AdagradOptimizer(0.01).minimize(loss)
"""


#: Bytes. A view's header takes 128, the smallest array of the program with elements of its own, [10, 10], 496.
VIEW, ITERATOR = 256, 2048


def peak(function, *args):
    """Bytes that a call holds at its worst moment beyond what was held before; tracemalloc must be on."""
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    result = function(*args)
    return tracemalloc.get_traced_memory()[1] - before, result


@pytest.fixture
def traced():
    tracemalloc.start(1)
    yield
    tracemalloc.stop()


def test_the_meter_sees_one_temporary(traced):
    a, out = np.ones((10, 10), np.float32), np.empty((10, 10), np.float32)
    np.add(a, a, out)
    assert peak(np.add, a, a, out)[0] < VIEW
    assert peak(lambda: np.add(a, a, out).T.ndim)[0] < VIEW
    assert peak(lambda: (a + a).ndim)[0] > VIEW


def test_a_broadcasting_ufunc_holds_a_work_buffer_of_bounded_size(traced):
    """NumPy's own, of ``np.getbufsize()`` elements at most: why bare ufuncs get another limit below."""
    peaks = {}
    for n in (10, 1000, 2000):
        a, row = np.ones((n, n), np.float32), np.ones(n, np.float32)
        np.add(a, row, a)
        peaks[n] = peak(np.add, a, row, a)[0]
    assert peaks[10] < ITERATOR, peaks
    assert abs(peaks[2000] - peaks[1000]) < VIEW, peaks
    assert peaks[2000] < np.getbufsize() * 4 + ITERATOR, peaks


@pytest.mark.parametrize("fetch", ["train_op", "loss"])
def test_two_hundred_steps_allocate_no_array_but_the_fetched_ones(fetch, traced):
    """Each kernel call on its own stays below the smallest array; a bare ufunc with ``out`` may hold NumPy's work buffer."""
    names: dict[str, object] = {}
    with tf.Graph().as_default():
        exec(SEEDS_PROGRAM, names)
        rng = np.random.default_rng(0)
        feed = {
            names["x"]: rng.normal(size=(10, 784)).astype(np.float32),
            names["y"]: rng.random(size=(10, 10)).astype(np.float32),
        }
        with tf.Session(config=tf.SessionConfig(debug=False)) as sess:
            sess.run(tf.global_variables_initializer())
            seen = tf.RunMetadata()
            for _ in range(50):
                sess.run(names[fetch], feed, run_metadata=seen)
            step = seen.plan.lease()
            calls: dict[str, list[int]] = {}
            limits: dict[str, int] = {}

            def metered(name, function):
                def call(*args):
                    used, result = peak(function, *args)
                    calls.setdefault(name, []).append(used)
                    return result

                return call

            namespace = step.state.namespace
            for name in [n for n in namespace if n[0] == "k" and n[1:].isdigit()]:
                limits[name] = ITERATOR if isinstance(namespace[name], np.ufunc) else VIEW
                namespace[name] = metered(name, namespace[name])
            seen.plan.give_back(step)
            for warm in (True, False):
                calls.clear()
                for _ in range(10 if warm else 200):
                    whole, _ = peak(sess.run, names[fetch], feed)
    assert set(calls) == set(limits) and all(len(c) == 200 for c in calls.values())
    assert {n: max(c) for n, c in calls.items() if max(c) >= limits[n]} == {}
    # the step around the kernels: frames, the list of feeds, the fetched array
    assert whole < ITERATOR + 1024


def test_debug_mode_changes_no_result():
    results = []
    for debug in (False, True):
        names: dict[str, object] = {}
        with tf.Graph().as_default():
            exec(SEEDS_PROGRAM, names)
            rng = np.random.default_rng(0)
            with tf.Session(config=tf.SessionConfig(debug=debug)) as sess:
                sess.run(tf.global_variables_initializer())
                for _ in range(5):
                    feed = {names["x"]: rng.normal(size=(10, 784)), names["y"]: rng.random(size=(10, 10))}
                    sess.run(names["train_op"], feed)
                results.append(sess.run([names["W_1"], names["b_1"]]))
    for plain, checked in zip(*results, strict=True):
        np.testing.assert_array_equal(plain, checked)


def test_many_threads_on_one_session_give_exact_totals():
    with tf.Graph().as_default():
        big = tf.Variable(np.zeros(50_000))
        count = tf.Variable(0, dtype=tf.int64)
        step = tf.group(
            tf.assign_add(big, tf.ones([50_000], tf.float64)), tf.assign_add(count, tf.constant(1, tf.int64))
        )
        x = tf.placeholder(tf.float64, [3])
        y = tf.reduce_sum(x * 2.0)
        torn, wrong = [], []
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())

            def write():
                for _ in range(100):
                    sess.run(step)

            def read(seed):
                for i in range(200):
                    whole = sess.run(big)
                    if whole.min() != whole.max():
                        torn.append(whole)
                    if sess.run(y, {x: np.full(3, seed * 1000 + i, float)}) != 6.0 * (seed * 1000 + i):
                        wrong.append(i)

            threads = [threading.Thread(target=write) for _ in range(3)]
            threads += [threading.Thread(target=read, args=(s,)) for s in range(3)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            assert sess.run(count) == 300
            assert (sess.run(big) == 300).all()
        assert not torn
        assert not wrong


@pytest.mark.slow
@pytest.mark.exhaustive
def test_source_and_graph_def_are_the_same_under_two_hash_seeds():
    code = SEEDS_PROGRAM + (
        "print(tf.get_default_graph().to_json())\n"
        "print(tf.get_default_graph().as_graph_def())\n"
        "sess = tf.Session()\n"
        "plan = sess.plan(train_op)\n"
        "print(plan.source)\nprint(plan.graph)\n"
    )
    texts = []
    for seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        texts.append(subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=True).stdout)
    assert texts[0] == texts[1]
    assert b"def step" in texts[0]


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [20_000, pytest.param(100_000, marks=pytest.mark.exhaustive)])
def test_a_long_chain_builds_plans_and_runs_without_recursion(nodes):
    graph = tf.Graph()
    limit = sys.getrecursionlimit()
    with graph.as_default():
        x = tf.placeholder(tf.float32, [2])
        y = x
        for _ in range(nodes // 2):
            y = tf.add(y, x)
            y = tf.minimum(y, x)
        sys.setrecursionlimit(400)
        try:
            with tf.Session() as sess:
                seen = tf.RunMetadata()
                got = sess.run(y, {x: [1.0, 2.0]}, run_metadata=seen)
        finally:
            sys.setrecursionlimit(limit)
    assert len(seen.plan.kernel_nodes) == nodes
    np.testing.assert_array_equal(got, [1.0, 2.0])  # y -> min(y + x, x) leaves x


def test_loops_nested_beyond_pythons_limit_run():
    def nest(level):
        if level == 0:
            return lambda i, s: (i + 1, s + 1.0)

        def body(i, s):
            _, inner = tf.while_loop(lambda i, s: i < 1, nest(level - 1), [0, s])
            return i + 1, inner

        return body

    with tf.Graph().as_default():
        _, total = tf.while_loop(lambda i, s: i < 3, nest(24), [0, tf.constant(0.0)])
        with tf.Session() as sess:
            assert sess.run(total) == 3.0


def test_the_plan_prints_in_the_grammar_of_the_ir():
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2], name="x")
        loop = tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * 2.0), [0, x])
        with tf.Session() as sess:
            text = print_graph(sess.plan(loop[1], {x: np.ones(2)}).graph)
    assert text.startswith("graph main(%x:0: float32[2]) {")
    assert "While(" in text and "return %" in text


def test_a_closed_session_leaves_no_source_behind():
    import gc
    import linecache

    with tf.Graph().as_default():
        with tf.Session() as sess:
            seen = tf.RunMetadata()
            sess.run(tf.constant(1.0) + tf.placeholder_with_default(2.0, []), run_metadata=seen)
            name = seen.plan.program.filename
            assert "def step" in "".join(linecache.getlines(name))
        del seen
        gc.collect()
        assert name not in linecache.cache
