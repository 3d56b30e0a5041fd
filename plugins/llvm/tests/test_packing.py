"""Weights that several products read, packed once for all of them; constants once for ever."""

from __future__ import annotations

import gc

import graphdock as tf
import numpy as np
import pytest
from graphdock_fusion.regions import arranged

LLVM = {"backends": ("llvm", "cpu"), "intra_op_threads": 2}


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def numbers(*shape, seed=0, dtype=np.float32):
    return (np.random.default_rng(seed).normal(size=shape) * 0.1).astype(dtype)


def _unrolled(x, w, transposed, steps, sigmoid=tf.sigmoid, matmul=tf.matmul):
    """Products by one matrix, each of what the one before gave."""
    for _ in range(steps):
        x = sigmoid(matmul(x, w, transpose_b=transposed)) - 0.5
    return x


def _numpy(x, w, transposed, steps):
    for _ in range(steps):
        x = 1 / (1 + np.exp(-(x @ (w.T if transposed else w)))) - 0.5
    return x


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("size", [16, 31, 33, 64, 100, 200])
def test_steps_by_one_matrix_agree_with_numpy_and_it_is_packed_once(dtype, transposed, size):
    x, w = numbers(37, size, dtype=dtype), numbers(size, size, seed=1, dtype=dtype)
    fed, weight = tf.placeholder(dtype, x.shape), tf.placeholder(dtype, w.shape)
    y = _unrolled(fed, weight, transposed, 3)
    with tf.Session(config=tf.SessionConfig(**LLVM)) as session:
        kernels = session.explain(y).kernels()
        for turn in range(3):  # another matrix in each step
            made = session.run(y, {fed: x, weight: w * (turn + 1)})
            np.testing.assert_allclose(made, _numpy(x, w * (turn + 1), transposed, 3), rtol=1e-4, atol=1e-5)
    if size > 64:
        assert kernels == {"llvm.region": 3, "llvm.panels": 1}


def test_a_weight_that_is_trained_is_packed_in_each_step():
    x, w = numbers(40, 128), numbers(128, 128, seed=1)
    fed, weight = tf.placeholder(tf.float32, x.shape), tf.Variable(w)
    loss = tf.reduce_sum(tf.square(_unrolled(fed, weight, False, 4)))
    train = tf.train.GradientDescentOptimizer(0.05).minimize(loss)
    found = {}
    for backends in (("llvm", "cpu"), ("cpu",)):
        with tf.Session(config=tf.SessionConfig(backends=backends)) as session:
            session.run(tf.global_variables_initializer())
            found[backends] = [session.run([loss, train], {fed: x})[0] for _ in range(6)]
            if "llvm" in backends:
                assert session.explain([loss, train]).kernels()["llvm.panels"] == 2  # forward, and in the gradient
    np.testing.assert_allclose(found["llvm", "cpu"], found[("cpu",)], rtol=1e-4)
    assert len(set(found[("cpu",)])) == 6


def test_what_a_step_writes_between_products_is_seen_by_those_behind():
    x, w = numbers(40, 128), numbers(128, 128, seed=1)
    fed, weight = tf.placeholder(tf.float32, x.shape), tf.Variable(w, use_resource=True)
    before = _unrolled(fed, weight.read_value(), False, 2)
    with tf.control_dependencies([before]):
        written = weight.assign(weight * 2.0)
    with tf.control_dependencies([written]):
        behind = _unrolled(fed, weight.read_value(), False, 2)
    with tf.Session(config=tf.SessionConfig(**LLVM)) as session:
        session.run(tf.global_variables_initializer())
        for turn in range(3):
            a, b = session.run([before, behind], {fed: x})
            np.testing.assert_allclose(a, _numpy(x, w * 2**turn, False, 2), rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(b, _numpy(x, w * 2 ** (turn + 1), False, 2), rtol=1e-4, atol=1e-5)


def test_a_constant_is_packed_by_one_product_already_and_for_ever():
    x, w = numbers(40, 128), numbers(128, 96, seed=1)
    fed = tf.placeholder(tf.float32, x.shape)
    y = tf.nn.relu(tf.matmul(fed, w) + 1.0)
    with tf.Session(config=tf.SessionConfig(**LLVM)) as session:
        assert session.explain(y).kernels() == {"llvm.region": 1}
        for turn in range(4):
            np.testing.assert_allclose(
                session.run(y, {fed: x * turn}), np.maximum(x * turn @ w + 1, 0), rtol=1e-4, atol=1e-5
            )


def test_a_matrix_on_both_sides_or_read_beside_the_product_is_read_as_it_is():
    x = numbers(64, 64)
    fed = tf.placeholder(tf.float32, x.shape)
    square = [tf.tanh(tf.matmul(fed, fed)) + fed, tf.nn.relu(tf.matmul(fed, fed) * fed)]
    with tf.Session(config=tf.SessionConfig(**LLVM)) as session:
        a, b = session.run(square, {fed: x})
    np.testing.assert_allclose(a, np.tanh(x @ x) + x, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(b, np.maximum((x @ x) * x, 0), rtol=1e-4, atol=1e-5)


def test_while_its_code_is_compiled_a_step_reads_the_matrix_itself(monkeypatch, tmp_path):
    monkeypatch.setenv("GRAPHDOCK_CACHE_DIR", str(tmp_path))
    x, w = numbers(41, 136), numbers(136, 136, seed=1)
    fed, weight = tf.placeholder(tf.float32, x.shape), tf.placeholder(tf.float32, w.shape)
    y, told = _unrolled(fed, weight, True, 3), tf.RunMetadata()
    options = {"llvm": {"compile": "meanwhile"}}
    with tf.Session(config=tf.SessionConfig(**LLVM, options=options)) as session:
        while told.plan is None or told.plan.later:
            made = session.run(y, {fed: x, weight: w}, run_metadata=told)
            np.testing.assert_allclose(made, _numpy(x, w, True, 3), rtol=1e-4, atol=1e-5)
        assert session.explain(y).kernels() == {"llvm.region": 3, "llvm.panels": 1}


def test_products_in_a_loop_s_body_share_what_the_body_packs():
    x, w = numbers(40, 128), numbers(128, 128, seed=1)
    fed, many = tf.placeholder(tf.float32, x.shape), tf.placeholder(tf.int32, [])
    weight = tf.Variable(w)
    _, y = tf.while_loop(lambda i, _: i < many, lambda i, v: (i + 1, _unrolled(v, weight, False, 2)), [0, fed])
    with tf.Session(config=tf.SessionConfig(**LLVM)) as session:
        session.run(weight.initializer)
        for turns in (0, 1, 4):
            want = _numpy(x, w, False, 2 * turns)
            np.testing.assert_allclose(session.run(y, {fed: x, many: turns}), want, rtol=1e-4, atol=1e-5)


def test_what_another_session_writes_is_in_the_next_step():
    x, w = numbers(40, 128), numbers(128, 128, seed=1)
    with tf.container("weights of test_packing"):
        weight = tf.get_variable("packed", initializer=w, use_resource=True)
    fed, new = tf.placeholder(tf.float32, x.shape), tf.placeholder(tf.float32, w.shape)
    y, written = _unrolled(fed, weight, False, 3), weight.assign(new)
    with (
        tf.Session(config=tf.SessionConfig(**LLVM)) as session,
        tf.Session(config=tf.SessionConfig(**LLVM)) as other,
    ):
        session.run(weight.initializer)
        for turn in range(4):
            (session, other)[turn % 2].run(written.op, {new: w * turn})
            for each in (session, other):
                np.testing.assert_allclose(each.run(y, {fed: x}), _numpy(x, w * turn, False, 3), rtol=1e-4, atol=1e-5)


def test_plans_share_the_panels_of_a_constant_and_give_them_back():
    x, w = tf.placeholder(tf.float32, [None, 128]), numbers(128, 96, seed=1)
    y = tf.nn.relu(tf.matmul(x, w) + 1.0)
    gc.collect()
    before = len(arranged._KEPT)
    with tf.Session(config=tf.SessionConfig(**LLVM)) as session:
        for rows in (20, 30, 40, 50):  # a plan for each
            fed = numbers(rows, 128)
            np.testing.assert_allclose(session.run(y, {x: fed}), np.maximum(fed @ w + 1, 0), rtol=1e-4, atol=1e-5)
        assert len(arranged._KEPT) == before + 1
    del session
    gc.collect()
    assert len(arranged._KEPT) == before


def test_beside_many_rows_a_constant_is_packed_where_it_is_read():
    x, w = tf.placeholder(tf.float32, [300, 128]), numbers(128, 96, seed=1)
    y = tf.nn.relu(tf.matmul(x, w) + 1.0)
    gc.collect()
    before = len(arranged._KEPT)
    with tf.Session(config=tf.SessionConfig(**LLVM)) as session:
        fed = numbers(300, 128)
        np.testing.assert_allclose(session.run(y, {x: fed}), np.maximum(fed @ w + 1, 0), rtol=1e-4, atol=1e-5)
        assert len(arranged._KEPT) == before
