"""Recomputing for a budget of memory: results stay the same to the bit, buffers get fewer, random numbers are drawn once."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest

BATCH, SIZE, LAYERS = 32, 32, 24


def network(dropout=False, layers=4):
    """Loss, training operation and feeds of a network."""
    x = tf.placeholder(tf.float32, [BATCH, SIZE], name="x")
    h = x
    for layer in range(layers):
        w, v = (tf.Variable(tf.random_normal(s, seed=layer) * 0.1) for s in ([SIZE, 2 * SIZE], [2 * SIZE, SIZE]))
        made = tf.matmul(h, w)
        inner = tf.tanh(made) * tf.sigmoid(made + 1.0)
        if dropout:
            inner = tf.nn.dropout(inner, 0.9, seed=layer)
        h = h + tf.matmul(inner, v)
    loss = tf.reduce_mean(tf.square(h))
    feeds = {x: np.random.default_rng(0).normal(size=(BATCH, SIZE)).astype(np.float32)}
    return loss, tf.train.AdamOptimizer(1e-3).minimize(loss), feeds


def trained(loss, train, feeds, **fields):
    """Losses of three steps, and what is explained of a step."""
    with tf.Session(config=tf.SessionConfig(**fields)) as sess:
        sess.run(tf.global_variables_initializer())
        explained = sess.explain([loss, train], feeds)
        return [sess.run([loss, train], feeds)[0].tobytes() for _ in range(3)], explained


def planned(explained):
    return sum(explained.plan.arena_bytes.values())


@pytest.mark.parametrize("dropout", [False, True])
@pytest.mark.sampled(2)
def test_a_training_step_keeps_to_its_budget_and_computes_the_same(dropout):
    program = network(dropout, LAYERS)
    want, plain = trained(*program)
    budget = int(planned(plain) * 0.6)
    got, explained = trained(*program, memory_budget={"cpu": budget})
    assert got == want
    assert planned(explained) <= budget
    (note,) = [n for n in explained.notes() if n.startswith("pass recompute: ")]
    assert "again" in note and "more than the budget" not in note
    kernels = explained.kernels()
    assert kernels["cpu.tanh"] > plain.kernels()["cpu.tanh"]
    drawn = [k for k in plain.kernels() if "random" in k or "dropout" in k]
    assert [kernels[k] for k in drawn] == [plain.kernels()[k] for k in drawn]


def test_a_budget_that_nothing_satisfies_says_by_how_much():
    program = network()
    got, explained = trained(*program, memory_budget={"cpu": "4KB"})
    assert got == trained(*program)[0]
    (note,) = [n for n in explained.notes() if n.startswith("pass recompute: ")]
    assert "more than the budget" in note


def test_what_fits_is_left_alone_and_without_a_budget_nothing_is_said():
    program = network()
    want, plain = trained(*program)
    got, explained = trained(*program, memory_budget={"cpu": "1GiB"})
    assert got == want and explained.kernels() == plain.kernels()
    assert not any("recompute" in note for note in plain.notes())


def test_the_debug_mode_and_the_pass_by_name():
    program = network()
    want, plain = trained(*program)
    budget = {"cpu": int(planned(plain) * 0.6)}
    assert trained(*program, memory_budget=budget, debug=True)[0] == want
    got, explained = trained(*program, memory_budget=budget, passes={"recompute": False})
    assert got == want and explained.kernels() == plain.kernels()


def test_a_value_of_a_variable_is_computed_again_from_what_the_variable_was():
    r = np.random.default_rng(1)
    x = tf.placeholder(tf.float32, [64, 64], name="x")
    w = tf.Variable(r.normal(size=(64, 64)).astype(np.float32), name="w")
    kept = [tf.sin(tf.matmul(x, tf.reshape(w, [64, 64]) * float(i))) for i in range(1, 9)]
    total = tf.add_n([tf.reduce_sum(tf.reshape(k, [-1])) for k in kept])
    with tf.control_dependencies([total]):
        written = w.assign_add(tf.ones([64, 64]))
    with tf.control_dependencies([written]):
        late = [tf.identity(tf.reduce_max(tf.reshape(k, [32, 128]), axis=1) + total) for k in kept]
    fetches, feeds = [total, *late, written], {x: r.normal(size=(64, 64)).astype(np.float32)}

    def run(**fields):
        with tf.Session(config=tf.SessionConfig(**fields)) as sess:
            sess.run(tf.global_variables_initializer())
            return [a.tobytes() for _ in range(2) for a in sess.run(fetches, feeds)], sess.explain(fetches, feeds)

    want, plain = run()
    for executor in ("straight_line", "dataflow"):
        got, explained = run(memory_budget={"cpu": planned(plain) // 2}, executor=executor)
        assert got == want
        assert sum(explained.kernels().values()) > sum(plain.kernels().values())
