"""Swapping for a budget of memory: values of a queued device wait in the host's memory, and nothing else changes."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.plugin.host import Host
from graphdock_testing import queued
from graphdock_testing.driver import races

SWAP_ALONE = {"recompute": False}


@pytest.fixture
def host():
    host = Host()
    with races.check(queued.install(host)):
        yield host
    host.close()


def network(dropout=0.0, layers=6, size=32):
    x = tf.placeholder(tf.float32, [size, size], name="x")
    h = x
    for layer in range(layers):
        w = tf.Variable(tf.random_normal([size, size], seed=layer) * 0.1)
        inner = tf.tanh(tf.matmul(h, w))
        h = h + (tf.nn.dropout(inner, 1.0 - dropout, seed=layer) if dropout else inner * tf.sigmoid(inner + 1.0))
    loss = tf.reduce_mean(tf.square(h))
    feeds = {x: np.random.default_rng(0).normal(size=(size, size)).astype(np.float32)}
    return [loss, tf.train.AdamOptimizer(1e-3).minimize(loss)], feeds


def trained(host, program, **fields):
    """Losses of three steps, and what is explained of a step."""
    fetches, feeds = program
    config = tf.SessionConfig(backends=("queued", "cpu"), **fields)
    with tf.Session(config=config, host=host) as sess:
        sess.run(tf.global_variables_initializer())
        explained = sess.explain(fetches, feeds)
        return [sess.run(fetches, feeds)[0].tobytes() for _ in range(3)], explained


def planned(explained):
    return explained.plan.arena_bytes["queued:0"]


def notes(explained, name="swap"):
    return [n for n in explained.notes() if n.startswith(f"pass {name}: ")]


@pytest.mark.parametrize("fields", [{}, {"debug": True}, {"steps_in_flight": 2}], ids=["plain", "debug", "in_flight"])
def test_a_training_step_keeps_to_its_budget_and_computes_the_same(host, fields):
    program = network()
    want, plain = trained(host, program)
    budget = int(planned(plain) * 0.6)
    got, explained = trained(host, program, memory_budget={"queued": budget}, passes=SWAP_ALONE, **fields)
    assert got == want
    (note,) = notes(explained)
    assert note.startswith("pass swap: swaps ") and "more than the budget" not in note
    assert explained.kernels() == plain.kernels(), "nothing is computed again"
    if not fields:
        assert planned(explained) <= budget


def test_what_is_swapped_goes_back_in_the_order_of_the_queue(host):
    """The host copies nothing in between, and waits for nothing: staging memory is filled once, with the feed."""
    program = network()
    _, plain = trained(host, program)
    budget = {"queued": int(planned(plain) * 0.6)}
    _, explained = trained(host, program, memory_budget=budget, passes=SWAP_ALONE)
    source, before = explained.plan.source, plain.plan.source
    assert source.count("fill(") == before.count("fill(") == 1
    assert source.count("synchronize") == before.count("synchronize")
    assert len(source.splitlines()) > len(before.splitlines())


def test_numbers_that_were_drawn_are_swapped_and_not_drawn_again(host):
    program = network(dropout=0.3)
    want, plain = trained(host, program)
    got, explained = trained(host, program, memory_budget={"queued": 1})
    assert got == want
    drawn = [k for k in plain.kernels() if "random" in k or "dropout" in k]
    assert drawn and [explained.kernels()[k] for k in drawn] == [plain.kernels()[k] for k in drawn]
    transfers = [n.name for n in explained.plan.graph.nodes if n.verb == "move"]
    assert len(transfers) == len(set(transfers)), "each node stands once"
    (note,) = notes(explained, "recompute")
    assert "computes" in note and "swaps" in note and not notes(explained), "what the first pass did is not said again"


def test_another_name_of_a_swapped_value_is_made_of_what_came_back(host):
    x = tf.placeholder(tf.float32, [64, 64], name="x")
    names, sums = [], []
    for i in range(1, 9):
        names.append(tf.reshape(tf.sin(x * float(i)), [32, 128]))
        sums.append(tf.reduce_sum(names[-1]))
    total = tf.add_n(sums)
    late = [tf.reduce_max(n * total, axis=1) for n in names]
    program = [total, *late], {x: np.random.default_rng(1).normal(size=(64, 64)).astype(np.float32)}

    def run(**fields):
        config = tf.SessionConfig(backends=("queued", "cpu"), **fields)
        with tf.Session(config=config, host=host) as sess:
            return [a.tobytes() for a in sess.run(*program)], sess.explain(*program)

    want, plain = run()
    got, explained = run(memory_budget={"queued": planned(plain) // 3}, passes=SWAP_ALONE)
    assert got == want and notes(explained)
    assert planned(explained) < planned(plain)


def test_what_lies_in_the_hosts_memory_is_not_swapped_and_the_pass_has_a_name(host):
    program = network()
    want, plain = trained(host, program)
    off = {"swap": False, **SWAP_ALONE}
    got, explained = trained(host, program, memory_budget={"queued": 1}, passes=off)
    assert got == want and planned(explained) == planned(plain) and not notes(explained)
    with tf.Session(config=tf.SessionConfig(memory_budget={"cpu": 1})) as sess:
        said = sess.explain(*program).notes()
        assert any("computes" in n for n in said) and not any("swaps" in n for n in said)


def test_explain_says_of_a_transfer_why_it_is_there(host):
    program = network(layers=2)
    _, explained = trained(host, program, memory_budget={"queued": 1}, passes=SWAP_ALONE)
    why = [row.why for row in explained.rows if row.op == "Transfer" and row.why.startswith("memory_budget: ")]
    assert why and len(why) % 2 == 0 and len(set(why)) == 2
