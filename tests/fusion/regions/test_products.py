"""Products of matrices in regions: the space that the op names, what follows it, and what is no product of a region."""

from __future__ import annotations

import types

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import hookimpl
from graphdock.plugin.host import Host
from graphdock_testing.region_reference import ReferenceCompiler


@pytest.fixture
def fused(process_host):
    """``fused(y, feed)``: the results with regions, after they were held against those without; ``fused.compiler`` has programs."""
    compiler = ReferenceCompiler()
    hook = hookimpl(specname="register_region_compilers")(lambda: [compiler])
    host = process_host(Host())
    host.register("lab", types.SimpleNamespace(register_region_compilers=hook, __name__="lab"))

    def run(y, feed):
        found, kernels = [], {}
        for fusion in (True, False):
            config = tf.SessionConfig(backends=["lab", "cpu"], fusion=fusion)
            with tf.Session(config=config, host=host) as sess:
                sess.run(tf.global_variables_initializer())
                found.append(sess.run(y, feed))
                kernels = sess.explain(y, feed).kernels() if fusion else kernels
        np.testing.assert_allclose(*found, 1e-5, 1e-5)
        return kernels

    run.compiler = compiler
    with tf.Graph().as_default():
        yield run


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("turned_a", [False, True])
@pytest.mark.parametrize("turned_b", [False, True])
@pytest.mark.parametrize("extents", [(2, 3, 4), (3, 3, 3), (1, 3, 4), (2, 1, 4), (2, 3, 1), (1, 1, 5)])
@pytest.mark.sampled(2)
def test_a_product_alone_is_a_region(fused, extents, turned_a, turned_b):
    m, k, n = extents
    a = tf.placeholder(tf.float32, [k, m] if turned_a else [m, k])
    b = tf.placeholder(tf.float32, [n, k] if turned_b else [k, n])
    feed = {a: numbers(*a.shape.as_list()), b: numbers(*b.shape.as_list(), seed=1)}
    kernels = fused(tf.matmul(a, b, transpose_a=turned_a, transpose_b=turned_b), feed)
    assert kernels == {"lab.reference": 1}
    program = fused.compiler.programs_built[0]
    assert len(program.axes) == sum(d != 1 for d in extents)


def test_what_follows_a_product_is_in_its_region_and_what_feeds_it_is_not(fused):
    x, w, b = (tf.placeholder(tf.float32, dims) for dims in ([4, 3], [3, 5], [5]))
    y = tf.nn.softmax(tf.nn.relu(tf.matmul(tf.tanh(x) * 2.0, w) + b))
    assert fused(y, {x: numbers(4, 3), w: numbers(3, 5), b: numbers(5)}) == {"lab.reference": 2}
    (_, program) = sorted(fused.compiler.programs_built[-2:], key=lambda p: len(p.axes))
    assert [a.extent for a in program.axes] == [4, 3, 5]
    assert "sum t" in str(program) and "over j" in str(program) and "over k" in str(program)


def test_products_of_one_space_stay_apart(fused):
    """The second reads the first along another axis than it is made."""
    x, v, w = (tf.placeholder(tf.float32, [4, 4]) for _ in range(3))
    y = tf.nn.relu(tf.matmul(tf.nn.relu(tf.matmul(x, v)), w))
    assert fused(y, {x: numbers(4, 4), v: numbers(4, 4, seed=1), w: numbers(4, 4, seed=2)}) == {"lab.reference": 2}


def test_a_matrix_with_itself_is_read_along_two_pairs_of_axes(fused):
    x = tf.placeholder(tf.float32, [4, 3])
    assert fused(tf.matmul(x, x, transpose_a=True), {x: numbers(4, 3)}) == {"lab.reference": 1}
    program = fused.compiler.programs_built[0]
    assert [i.dims for i in program.inputs] == [(1, 0), (1, 2)] and {i.source for i in program.inputs} == {0}


def test_batches_are_kernels(fused):
    x, w = tf.placeholder(tf.float32, [2, 4, 3]), tf.placeholder(tf.float32, [3, 5])
    assert fused(tf.matmul(x, w), {x: numbers(2, 4, 3), w: numbers(3, 5)}) == {"cpu.mat_mul": 1}


def test_who_does_not_ask_for_products_is_offered_none(fused):
    fused.compiler.products = False
    x, w = tf.placeholder(tf.float32, [4, 3]), tf.placeholder(tf.float32, [3, 5])
    kernels = fused(tf.tanh(tf.matmul(x, w) * 2.0), {x: numbers(4, 3), w: numbers(3, 5)})
    assert kernels == {"cpu.mat_mul": 1, "lab.reference": 1}


def test_a_step_of_training_with_products_and_updates_in_its_regions(fused):
    x, y = tf.placeholder(tf.float32, [4, 3]), tf.placeholder(tf.float32, [4, 5])
    w, b = tf.Variable(numbers(3, 5)), tf.Variable(numbers(5))
    loss = tf.nn.softmax_cross_entropy_with_logits(logits=tf.matmul(x, w) + b, labels=y)
    train = tf.train.AdagradOptimizer(0.1).minimize(loss)
    with tf.control_dependencies([train]):
        after = tf.concat([tf.reshape(w.read_value(), [-1]), b.read_value()], 0)
    kernels = fused(after, {x: numbers(4, 3), y: numbers(4, 5, seed=1) ** 2})
    assert not {"cpu.mat_mul", "cpu.resource_apply_adagrad"} & set(kernels)
