"""Small products in compiled regions: shapes around the width of vectors and the height of blocks, with what follows them."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import Axis, RegionInput, RegionOutput, RegionProgram, Term, check_program, dtypes
from graphdock.testing.region_reference import evaluate
from graphdock_llvm.target import width

LLVM = {"backends": ("llvm", "cpu")}


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def numbers(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def product(extents, turned, dtype, follows):
    """A program of one product, what follows it and, where it is asked for, the product itself."""
    m, k, n = extents
    kind = dtypes.as_dtype(dtype)
    a = RegionInput("a", 0, kind, *(((k, m), (1, 0)) if "a" in turned else ((m, k), (0, 1))))
    b = RegionInput("b", 1, kind, *(((n, k), (2, 1)) if "b" in turned else ((k, n), (1, 2))))
    bias = RegionInput("bias", 2, kind, (n,), (2,))
    terms = [
        Term("input", kind, (), (0, 1), 0),
        Term("input", kind, (), (1, 2), 1),
        Term("mul", kind, (0, 1), (0, 1, 2)),
        Term("sum", kind, (2,), (0, 2), (1,)),
        Term("input", kind, (), (2,), 2),
        Term("add", kind, (3, 4), (0, 2)),
        Term("max", kind, (5,), (0,), (2,)),
        Term("sub", kind, (5, 6), (0, 2)),
    ]
    wanted = {"nothing": [3], "elements": [5], "rows": [7, 6], "itself": [3, 7]}[follows]
    outs = [
        RegionOutput(f"y{i}", t, kind, *(((m,), (0,)) if t == 6 else ((m, n), (0, 2)))) for i, t in enumerate(wanted)
    ]
    axes = (Axis("m", m), Axis("k", k), Axis("n", n))
    program = RegionProgram("p", axes, (a, b, bias), tuple(terms), tuple(outs))
    check_program(program)
    return program


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("follows", ["nothing", "elements", "rows", "itself"])
@pytest.mark.parametrize("turned", ["", "a", "b", "ab"])
@pytest.mark.sampled(4)
def test_products_of_many_shapes_agree_with_the_reference(call, lanes, follows, turned):
    shapes = [(2, 3, 5), (7, 2, 16), (25, 9, 10), (6, 31, 33), (3, 5, 70)]
    for number, extents in enumerate(shapes):
        dtype = "float64" if (number + lanes // 4 + len(turned)) % 3 == 0 else "float32"
        program = product(extents, turned, dtype, follows)
        arrays = [numbers(*i.shape, seed=s, dtype=dtype) for s, i in enumerate(program.inputs)]
        for got, want in zip(call(program, arrays, lanes), evaluate(program, arrays), strict=True):
            np.testing.assert_allclose(got, want, 2e-5, 2e-5, err_msg=f"{extents} {dtype}")


@pytest.mark.parametrize("extents", [(1, 7, 9), (5, 1, 9), (5, 7, 1), (1, 1, 4), (10, 784, 10), (784, 10, 10)])
@pytest.mark.parametrize("turned", ["", "a", "b"])
def test_products_of_sessions(extents, turned):
    m, k, n = extents
    a = tf.placeholder(tf.float32, [k, m] if "a" in turned else [m, k])
    b = tf.placeholder(tf.float32, [n, k] if "b" in turned else [k, n])
    y = tf.nn.relu(tf.matmul(a, b, transpose_a="a" in turned, transpose_b="b" in turned) + 1.0)
    x, w = numbers(*a.shape.as_list()), numbers(*b.shape.as_list(), seed=1)
    with tf.Session(config=tf.SessionConfig(**LLVM)) as sess:
        got = sess.run(y, {a: x, b: w})
        assert "llvm.region" in sess.explain(y, {a: x, b: w}).kernels()
    want = np.maximum((x.T if "a" in turned else x) @ (w.T if "b" in turned else w) + 1, 0)
    np.testing.assert_allclose(got, want, 1e-4, 1e-4)


def test_a_product_is_a_kernel_where_that_is_quicker_and_what_follows_it_is_fused():
    x, w = tf.placeholder(tf.float32, [12, 1024]), tf.placeholder(tf.float32, [1024, 200])
    y = tf.nn.softmax(tf.nn.relu(tf.matmul(x, w) + 1.0))
    feed = {x: numbers(12, 1024), w: numbers(1024, 200, seed=1)}
    with tf.Session(config=tf.SessionConfig(**LLVM)) as sess:
        assert sess.explain(y, feed).kernels() == {
            "llvm.mat_mul" if width() >= 16 else "cpu.mat_mul": 1,
            "llvm.region": 1,
        }
        got = sess.run(y, feed)
    with tf.Session() as sess:
        np.testing.assert_allclose(got, sess.run(y, feed), 1e-5, 1e-5)


def test_a_product_that_is_run_for_its_own_sake_is_the_kernel_that_is_fetched():
    x, w = (tf.Variable(numbers(128, n), use_resource=True).read_value() for n in (200, 256))
    y = tf.matmul(x, w, transpose_a=True)
    with tf.Session(config=tf.SessionConfig(**LLVM)) as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.explain(y.op).kernels() == sess.explain(y).kernels() == {"llvm.region": 1}
        assert sess.run(y.op) is None
        assert sess.explain([y.op, tf.tanh(y)]).kernels() == {"llvm.region": 1}


def test_a_small_network_trains_as_it_does_unfused():
    x, y = tf.placeholder(tf.float32, [10, 20]), tf.placeholder(tf.float32, [10, 4])
    v, w, b = tf.Variable(numbers(20, 15) * 0.3), tf.Variable(numbers(15, 4) * 0.3), tf.Variable(tf.zeros([15]))
    loss = tf.reduce_mean(
        tf.nn.softmax_cross_entropy_with_logits(logits=tf.matmul(tf.tanh(tf.matmul(x, v) + b), w), labels=y)
    )
    train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
    seen = []
    for fields in (LLVM, {"backends": ("cpu",)}):
        with tf.Session(config=tf.SessionConfig(**fields)) as sess:
            sess.run(tf.global_variables_initializer())
            for step in range(10):
                sess.run(train, {x: numbers(10, 20, seed=step), y: np.eye(4, dtype=np.float32)[np.arange(10) % 4]})
            kernels = sess.explain(train, {x: numbers(10, 20), y: numbers(10, 4)}).kernels()
            assert ("cpu.mat_mul" in kernels) != (fields is LLVM)
            seen.append(sess.run([v, w, b]))
    for got, want in zip(*seen, strict=True):
        np.testing.assert_allclose(got, want, 1e-4, 1e-5)
