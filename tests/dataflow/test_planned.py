"""Kernels that are given blocks: in steps without end no new memory, and nothing changes under whoever holds a value."""

from __future__ import annotations

import functools

import graphdock as tf
import numpy as np
import pytest
from graphdock_dataflow import blocks, planned

pytestmark = pytest.mark.plain  # debug mode keeps fresh outputs

SIDE = 200  # float32: more than is recycled from on


@pytest.fixture
def taken(monkeypatch):
    """The bytes of each block that is made new."""
    made = []

    class Counting(blocks.Blocks):
        def maker(self, dtype, shape):
            return functools.partial(self._counted, super().maker(dtype, shape))

        def _counted(self, make):
            before = sum(map(len, self._back.values()))
            array = make()
            if not before:
                made.append(array.nbytes)
            return array

    monkeypatch.setattr("graphdock_dataflow.program.Blocks", Counting)
    return made


def network(x, depth=2):
    for i in range(depth):
        x = tf.tanh(tf.matmul(x, x) * 0.01 + float(i))
    return x


def expected(x, depth=2):
    for i in range(depth):
        x = np.tanh(x @ x * np.float32(0.01) + np.float32(i))
    return x


def value(i):
    return np.random.RandomState(i).normal(size=(SIDE, SIDE)).astype("f4")


@pytest.mark.parametrize("threads", [1, 3])
def test_steps_without_end_take_no_new_memory(told, taken, threads):
    x = tf.placeholder(tf.float32, [SIDE, SIDE])
    y = tf.add_n([network(x + float(i)) for i in range(3)])
    counted = tf.reduce_sum(y)
    with told(hand_off=0.0, inter_op_threads=threads) as sess:
        assert sess.run(counted, {x: value(0)}) == pytest.approx(
            sum(expected(value(0) + i).sum() for i in range(3)), rel=1e-3
        )
        first = len(taken)
        for i in range(8):
            sess.run(counted, {x: value(i)})
        most = 3 * 2 * 3 + 3  # its nodes; without recycling it takes as many in every step
        assert 0 < first <= len(taken) <= most
        if threads == 1:
            assert len(taken) == first < most / 2


def test_what_was_fetched_is_the_callers_own(told, taken):
    x = tf.placeholder(tf.float32, [SIDE, SIDE])
    inner = network(x)
    outer = network(inner, 1)
    with told() as sess:
        held = [sess.run([inner, outer], {x: value(i)}) for i in range(4)]
        again = len(taken)
        sess.run([inner, outer], {x: value(5)})
        assert len(taken) == again > 0  # what the caller holds is none of them
    for i, (first, second) in enumerate(held):
        np.testing.assert_allclose(first, expected(value(i)), rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(second, expected(expected(value(i)), 1), rtol=1e-3, atol=1e-4)
        assert first.flags.writeable and not np.shares_memory(first, second)


def kept_in_lists(told):
    """Sums of a stack of elements and of a gradient through a loop, which were kept while others were computed; what they are."""
    x = tf.placeholder(tf.float32, [SIDE, SIDE])
    rows = tf.map_fn(lambda i: tf.tanh(x * i), tf.range(4.0))
    last = tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, tf.sin(v * 2.0)), [0, x])[1]
    with told() as sess:
        found = sess.run([tf.reduce_sum(rows), tf.reduce_sum(tf.gradients(last, x)[0])], {x: value(1)})
    v, gradient = value(1).astype("f8"), 1.0
    for _ in range(3):
        gradient, v = gradient * 2 * np.cos(v * 2), np.sin(v * 2)
    return found, [np.tanh(value(1) * np.arange(4.0)[:, None, None]).sum(), gradient.sum()]


def test_what_lists_hold_stays_as_it_is(told, taken):
    np.testing.assert_allclose(*kept_in_lists(told), rtol=1e-3)
    assert taken


def test_blocks_given_too_early_are_seen(told, monkeypatch):
    class Early(blocks.Blocks):
        def maker(self, dtype, shape):
            same = super().maker(dtype, shape)()
            return lambda: same

    monkeypatch.setattr("graphdock_dataflow.program.Blocks", Early)
    found, wanted = kept_in_lists(told)
    assert not np.isclose(found, wanted, rtol=1e-2).any()


def test_a_step_that_fails_gives_its_blocks_back(told, taken):
    x = tf.placeholder(tf.float32, [SIDE, SIDE])
    wrong = tf.placeholder(tf.bool, [])
    y = network(x)
    with tf.control_dependencies([tf.Assert(tf.logical_not(wrong), ["as was asked"])]):
        z = tf.reduce_sum(network(y, 1))
    with told(hand_off=0.0, inter_op_threads=2) as sess:
        for _ in range(2):
            sess.run(z, {x: value(0), wrong: False})
        before = len(taken)
        for i in range(4):
            with pytest.raises(tf.errors.InvalidArgumentError):
                sess.run(z, {x: value(i), wrong: True})
            found = sess.run(z, {x: value(i), wrong: False})
            assert found == pytest.approx(expected(expected(value(i)), 1).sum(), rel=1e-3, abs=1e-1)
        assert len(taken) <= before + 4


def test_kernels_of_every_form_give_what_they_give_in_a_line(told, taken, monkeypatch):
    """With several outputs, memory of their own, random streams, in loops that overlap, in branches."""
    monkeypatch.setattr(planned, "LARGE", 1)
    x = tf.placeholder(tf.float32, [6, 8])
    half = tf.cast(x, tf.bfloat16)
    loop = tf.while_loop(
        lambda i, v: i < 5,
        lambda i, v: (i + 1, tf.matmul(v, v) * 0.1 + tf.random_uniform([6, 6], seed=4)),
        [0, x[:, :6]],
    )
    found = [
        tf.nn.moments(x, [0]),
        tf.nn.top_k(x, 3),
        tf.split(x * 2.0, 2, axis=1),
        tf.matmul(half, half, transpose_b=True),
        tf.random_normal([6, 8], seed=3) + x,
        loop[1],
        tf.cond(x[0, 0] > 0.0, lambda: tf.sin(x) + 1.0, lambda: tf.cos(x) + 1.0),
        tf.nn.fused_batch_norm(x[None, None], tf.ones([8]), tf.zeros([8])),
    ]
    fetches = [tf.identity(tf.reduce_sum(tf.cast(v, tf.float32))) for v in tf.contrib.framework.nest.flatten(found)]
    results = []
    for open_session in (
        lambda: tf.Session(config=tf.SessionConfig(executor="straight_line")),
        lambda: told(hand_off=0.0),
    ):
        with open_session() as sess:
            results.append([sess.run(fetches, {x: np.arange(48.0).reshape(6, 8) / 50 - i}) for i in range(2)])
    np.testing.assert_allclose(*results, rtol=1e-4, atol=1e-5)
    assert taken
