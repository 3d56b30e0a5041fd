"""Storage rules that only show when buffers are reused: lifetimes, direct writes, layouts, retained inputs."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock import ops
from graphdock.contracts import Bound

SIZE = 64


@pytest.fixture(autouse=True)
def graph():
    graph = tf.Graph()
    with graph.as_default():
        yield graph


def busy(x, steps=12):
    """Many buffers of the size of ``x``, each live for a short while, and their sum."""
    total = x
    for i in range(steps):
        total = tf.sqrt(tf.square(total) + float(i + 1))
    return total


def busy_by_hand(x, steps=12):
    for i in range(steps):
        x = np.sqrt(x * x + (i + 1))
    return x


def test_what_a_loop_captures_is_written_by_no_iteration():
    x = tf.placeholder(tf.float64, [SIZE])
    captured = tf.sqrt(x)
    _, v = tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, busy(v + captured)), [0, x])
    value = want = np.linspace(1, 2, SIZE)
    for _ in range(3):
        want = busy_by_hand(want + np.sqrt(value))
    with tf.Session() as sess:
        np.testing.assert_allclose(sess.run(v, {x: value}), want, rtol=1e-12)


@pytest.mark.parametrize("static", [True, False])
def test_a_loops_result_outlives_what_runs_after_the_loop(static):
    x = tf.placeholder(tf.float64, [SIZE] if static else [None])
    _, v = tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, tf.sqrt(v) + 1.0), [0, x * 1.0])
    late = busy(x) + v
    value = np.linspace(1, 2, SIZE)
    want = value
    for _ in range(3):
        want = np.sqrt(want) + 1
    with tf.Session() as sess:
        np.testing.assert_allclose(sess.run(late, {x: value}), busy_by_hand(value) + want, rtol=1e-12)


def test_a_loop_variable_outlives_what_runs_inside_the_loop():
    x = tf.placeholder(tf.float64, [SIZE])
    _, v, w = tf.while_loop(
        lambda i, v, w: i < 4, lambda i, v, w: (i + 1, busy(w, 5) + v, busy(v, 5)), [0, x * 1.0, x * 2.0]
    )
    value = np.linspace(1, 2, SIZE)
    a, b = value, 2 * value
    for _ in range(4):
        a, b = busy_by_hand(b, 5) + a, busy_by_hand(a, 5)
    with tf.Session() as sess:
        got = sess.run([v, w], {x: value})
    np.testing.assert_allclose(got, [a, b], rtol=1e-12)


@pytest.mark.parametrize("taken", [True, False])
def test_a_branchs_result_outlives_what_runs_after_the_cond(taken):
    x = tf.placeholder(tf.float64, [SIZE])
    pred = tf.placeholder(tf.bool, [])
    early = tf.cond(pred, lambda: tf.sqrt(x), lambda: tf.square(x))
    late = busy(x) + early
    value = np.linspace(1, 2, SIZE)
    with tf.Session() as sess:
        got = sess.run(late, {x: value, pred: taken})
    np.testing.assert_allclose(got, busy_by_hand(value) + (np.sqrt(value) if taken else value**2), rtol=1e-12)


def test_one_value_may_be_returned_for_two_loop_variables():
    x = tf.placeholder(tf.float64, [SIZE])

    def body(i, a, b):
        both = tf.sqrt(a) + b
        return i + 1, both, both

    _, a, b = tf.while_loop(lambda i, a, b: i < 3, body, [0, x, x * 3.0])
    value = np.linspace(1, 2, SIZE)
    p, q = value, 3 * value
    for _ in range(3):
        p = q = np.sqrt(p) + q
    with tf.Session() as sess:
        got = sess.run([a, b], {x: value})
    np.testing.assert_allclose(got, [p, q], rtol=1e-12)


def test_a_body_may_return_a_view_of_what_it_computed():
    x = tf.placeholder(tf.float64, [8, 8])
    _, v = tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, tf.transpose(tf.sqrt(v) * x)), [0, x])
    value = np.arange(1.0, 65.0).reshape(8, 8)
    want = value
    for _ in range(3):
        want = (np.sqrt(want) * value).T
    with tf.Session() as sess:
        np.testing.assert_allclose(sess.run(v, {x: value}), want, rtol=1e-12)


@pytest.mark.parametrize("static", [True, False])
def test_one_storage_fetched_under_two_names_is_handed_out_once(static):
    x = tf.placeholder(tf.float64, [SIZE] if static else [None])
    y = tf.sqrt(x)
    with tf.Session() as sess:
        a, b = sess.run([y, tf.identity(y)], {x: np.ones(SIZE)})
    assert not np.shares_memory(a, b)
    np.testing.assert_array_equal(a, b)


def test_an_assignment_in_a_branch_does_not_count_after_the_cond():
    w = tf.Variable(1.0)
    pred = tf.placeholder(tf.bool, [])
    gate = tf.cond(pred, lambda: tf.assign(w, 5.0), lambda: tf.constant(0.0))
    with tf.control_dependencies([gate]):
        after = w.read_value()
    with tf.Session() as sess:
        for taken in (False, True):
            with pytest.raises(tf.errors.UninitializedError):
                sess.run(after, {pred: taken})
        sess.run(w.initializer)
        assert sess.run(after, {pred: False}) == 1.0
        assert sess.run(after, {pred: True}) == 5.0


SEEN: list[np.ndarray] = []


def _register(name, build, **fields):
    host = tf.default_host()
    if not any(r.full_name == f"user.{name}" for r in host.kernels.for_op("Softsign")):
        ops.RegisterKernel("Softsign", device="cpu", name=name, label=name, **fields)(build)
    return tf.SessionConfig(kernels={"Softsign@cpu": f"user.{name}"})


def test_a_kernel_that_asks_for_contiguous_inputs_gets_them():
    def build(ctx):
        assert ctx.inputs[0].contiguous

        def compute(x, out=None):
            assert x.flags.c_contiguous
            return np.divide(x, 1 + np.abs(x), out)

        return compute

    config = _register("contiguous_softsign", build)
    for dims in ([3, 4], [None, None]):
        x = tf.placeholder(tf.float64, dims)
        y = tf.nn.softsign(tf.transpose(x))
        value = np.arange(12.0).reshape(3, 4)
        with tf.Session(config=config) as sess:
            np.testing.assert_allclose(sess.run(y, {x: value}), (value / (1 + value)).T)


def test_a_retained_input_is_a_copy_of_its_own():
    def build(ctx):
        def compute(x, out):
            SEEN.append(x)
            np.divide(x, 1 + np.abs(x), out)

        return Bound(compute, retains=(0,))

    config = _register("retaining_softsign", build, modes=("planned",))
    x = tf.placeholder(tf.float64, [4])
    y = tf.nn.softsign(x * 2.0)
    SEEN.clear()
    with tf.Session(config=config) as sess:
        for n in (1.0, 2.0):
            sess.run(y, {x: np.full(4, n)})
    np.testing.assert_array_equal(SEEN, [[2.0] * 4, [4.0] * 4])


def test_a_strided_feed_is_read_in_its_own_order():
    x = tf.placeholder(tf.float64, [3, 4])
    base = np.arange(24.0).reshape(4, 6)
    with tf.Session() as sess:
        for value in (base.T[:3], base[:3, ::-1][:, :4], np.asfortranarray(base[:3, :4])):
            np.testing.assert_array_equal(sess.run(x + 0.0, {x: value}), value)
