"""Updates of variables inside of regions: what they write, in which order, and what is refused."""

from __future__ import annotations

import threading
import types

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import hookimpl
from graphdock.errors import FailedPreconditionError, GraphdockError
from graphdock.plugin.host import Host
from graphdock_testing.region_reference import ReferenceCompiler


@pytest.fixture
def fused(process_host):
    """A session whose regions the reference evaluates, beside one without; ``fused.compiler`` counts them."""
    compiler = ReferenceCompiler()
    hook = hookimpl(specname="register_region_compilers")(lambda: [compiler])
    host = process_host(Host())
    host.register("lab", types.SimpleNamespace(register_region_compilers=hook, __name__="lab"))

    def session(**fields):
        return tf.Session(config=tf.SessionConfig(**{"backends": ["lab", "cpu"], **fields}), host=host)

    session.compiler = compiler
    with tf.Graph().as_default():
        yield session


def updates(session):
    return [o for p in session.compiler.programs_built for o in p.outputs if o.into is not None]


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


OPTIMIZERS = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "nesterov": lambda: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "adam": lambda: tf.train.AdamOptimizer(0.01),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.01, momentum=0.5),
    "centered": lambda: tf.train.RMSPropOptimizer(0.01, centered=True),
    "adadelta": lambda: tf.train.AdadeltaOptimizer(0.1),
    "proximal": lambda: tf.train.ProximalGradientDescentOptimizer(0.1, 0.01, 0.02),
    "proximal adagrad": lambda: tf.train.ProximalAdagradOptimizer(0.1, 0.1, 0.01, 0.02),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.1, -0.4, l1_regularization_strength=0.01),
    "ftrl with shrinkage": lambda: tf.train.FtrlOptimizer(0.1, l2_shrinkage_regularization_strength=0.01),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("dtype", [tf.float32, tf.float64, tf.float16])
@pytest.mark.sampled(4)
def test_a_fused_optimizer_trains_as_the_kernels_do(fused, name, dtype):
    x = tf.placeholder(dtype, [5, 4])
    w, b = tf.Variable(numbers(4, 3).astype(dtype.np)), tf.Variable(np.zeros(3, dtype.np))
    loss = tf.reduce_sum(tf.square(tf.tanh(tf.matmul(x, w) + b)))
    train = OPTIMIZERS[name]().minimize(loss)
    seen = []
    for fusion in (True, False):
        with fused(fusion=fusion) as sess:
            sess.run(tf.global_variables_initializer())
            for step in range(5):
                sess.run(train, {x: numbers(5, 4, seed=step).astype(dtype.np)})
            seen.append(sess.run([w, b]))
            ran = sess.explain(train, {x: numbers(5, 4).astype(dtype.np)}).kernels()
            assert any("apply" in kernel for kernel in ran) != fusion
    near = {"float16": 2e-2, "float32": 1e-5, "float64": 1e-6}[dtype.name]  # rates are float32 where halves are
    for got, want in zip(*seen, strict=True):
        np.testing.assert_allclose(got, want, near, near)
    assert updates(fused)


def test_reads_see_what_order_says_they_see(fused):
    v = tf.Variable(numbers(4, 3))
    grad = tf.placeholder(tf.float32, [4, 3])
    before = v.read_value() * 1.0
    with tf.control_dependencies([before]):
        first = v.assign_sub(grad * 2.0, read_value=False)
    with tf.control_dependencies([first]):
        between = v.read_value() + 0.0
    with tf.control_dependencies([between]):
        second = v.assign_add(tf.tanh(grad), read_value=False)
    with tf.control_dependencies([second]):
        after = v.read_value() * 1.0
    g = numbers(4, 3, seed=1)
    with fused() as sess:
        sess.run(v.initializer)
        got = sess.run([before, between, after], {grad: g})
    start = numbers(4, 3)
    want = [start, start - g * 2, start - g * 2 + np.tanh(g)]
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, 1e-6, 1e-6)
    assert len(updates(fused)) >= 2


def test_two_updates_of_one_variable_in_a_region_follow_each_other(fused):
    v = tf.Variable(numbers(6))
    grad = tf.placeholder(tf.float32, [6])
    scaled = grad * 2.0
    first = v.assign_add(scaled, read_value=False)
    with tf.control_dependencies([first]):
        second = v.assign_sub(tf.tanh(scaled), read_value=False)
    with fused() as sess:
        sess.run(v.initializer)
        sess.run(second, {grad: numbers(6, seed=1)})
        got = sess.run(v)
    g = numbers(6, seed=1) * 2
    np.testing.assert_allclose(got, numbers(6) + g - np.tanh(g), 1e-6, 1e-6)
    assert len(updates(fused)) == 1  # one region, which writes once


def test_a_gradient_that_is_fetched_too_leaves_the_region_that_updates(fused):
    v, x = tf.Variable(numbers(6)), tf.placeholder(tf.float32, [6])
    doubled = tf.tanh(x) * 2.0
    with fused() as sess:
        sess.run(v.initializer)
        got, _ = sess.run([doubled, v.assign_add(doubled).op], {x: numbers(6, seed=1)})
        np.testing.assert_allclose(got, np.tanh(numbers(6, seed=1)) * 2, 1e-6)
        np.testing.assert_allclose(sess.run(v), numbers(6) + got, 1e-6, 1e-6)
    (program,) = [p for p in fused.compiler.programs_built if p.streams == () and len(p.outputs) > 1]
    made, update = program.outputs
    assert made.into is None and update.into is not None
    assert not [i for i in program.inputs if i.source == update.into and i.dying]  # its memory is nobody else's


def test_two_handles_of_one_variable_are_no_region(fused):
    """Neither would know of the other's write."""
    from graphdock.ops import apply_op

    handles = [apply_op("VarHandleOp", dtype=tf.float32, shape=[6], shared_name="one") for _ in range(2)]
    grad = tf.placeholder(tf.float32, [6])
    scaled = grad * 2.0
    assign = apply_op("AssignVariableOp", resource=handles[0], value=tf.constant(numbers(6)))
    first = apply_op("AssignAddVariableOp", resource=handles[0], value=scaled)
    with tf.control_dependencies([first]):
        second = apply_op("AssignSubVariableOp", resource=handles[1], value=tf.tanh(scaled))
    with tf.control_dependencies([second]):
        value = apply_op("ReadVariableOp", resource=handles[0], dtype=tf.float32)
    with fused() as sess:
        sess.run(assign)
        got = sess.run(value, {grad: numbers(6, seed=1)})
        assert "two handles name one variable" in str(sess.explain(value, {grad: numbers(6)}))
    g = numbers(6, seed=1) * 2
    np.testing.assert_allclose(got, numbers(6) + g - np.tanh(g), 1e-6, 1e-6)


def test_bad_updates_fail_as_they_do_unfused(fused):
    from graphdock.ops import apply_op

    unset = tf.Variable(numbers(6))
    grad = tf.placeholder(tf.float32, [6])
    step = unset.assign_add(grad * 2.0, read_value=False)
    other = tf.Variable(numbers(3))
    wrong = apply_op("ResourceApplyGradientDescent", var=other.handle, alpha=tf.constant(0.1), delta=grad * 2.0)
    loose = tf.Variable(numbers(6), validate_shape=False)
    grown = loose.assign_add(grad * 2.0, read_value=False)
    with fused() as sess:
        with pytest.raises(FailedPreconditionError, match="Variable"):
            sess.run(step, {grad: numbers(6)})
        sess.run(tf.global_variables_initializer())
        with pytest.raises(GraphdockError, match="shape"):
            sess.run(wrong, {grad: numbers(6)})
        sess.run(grown, {grad: numbers(6, seed=1)})  # its shape may change: the kernel updates it
        np.testing.assert_allclose(sess.run(loose), numbers(6) + 2 * numbers(6, seed=1), 1e-6)
    assert [o for o in updates(fused) if o.name.startswith(loose.name.removesuffix(":0"))] == []


def test_updates_in_a_loop_and_a_branch(fused):
    v, x = tf.Variable(np.zeros(6, np.float32)), tf.placeholder(tf.float32, [6])

    def body(i):
        with tf.control_dependencies([v.assign_add(tf.tanh(x) + 1.0, read_value=False)]):
            return i + 1

    looped = tf.while_loop(lambda i: i < 5, body, [0])
    with tf.control_dependencies([looped]):
        branch = tf.cond(
            tf.reduce_sum(x) > 0,
            lambda: tf.group(v.assign_sub(x * 2.0 + 1.0, read_value=False)),
            lambda: tf.no_op(),
        )
    for sign in (1.0, -1.0):
        fed = np.abs(numbers(6, seed=1)) * np.float32(sign)
        with fused() as sess:
            sess.run(v.initializer)
            sess.run(branch, {x: fed})
            want = 5 * (np.tanh(fed) + 1) - (fed * 2 + 1 if sign > 0 else 0)
            np.testing.assert_allclose(sess.run(v), want, 1e-5, 1e-5)
    assert len(updates(fused)) >= 2


def test_concurrent_steps_lose_no_update(fused):
    v, x = tf.Variable(np.zeros(64, np.float32)), tf.placeholder(tf.float32, [64])
    step = v.assign_add(x * 2.0 + 1.0, read_value=False)
    with fused() as sess:
        sess.run(v.initializer)

        def work():
            for _ in range(25):
                sess.run(step, {x: np.ones(64, np.float32)})

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        np.testing.assert_array_equal(sess.run(v), np.full(64, 300, np.float32))
    assert updates(fused)


def test_debug_mode_and_numerics_checks_know_what_a_region_writes(fused):
    v, x = tf.Variable(numbers(6)), tf.placeholder(tf.float32, [6])
    step = v.assign_add(tf.tanh(x) * 2.0, read_value=False)
    with fused(debug=True) as sess:
        sess.run(v.initializer)
        sess.run(step, {x: numbers(6, seed=1)})
        np.testing.assert_allclose(sess.run(v), numbers(6) + 2 * np.tanh(numbers(6, seed=1)), 1e-6, 1e-6)
    with fused(check_numerics=True) as sess:
        sess.run(v.initializer)
        with pytest.raises(GraphdockError, match="NaN"):
            sess.run(step, {x: np.full(6, np.nan, np.float32)})
