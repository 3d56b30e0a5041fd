"""Streams that a node's kernel is given.

The draws of a random op are known by its name, its step and the iterations of its loops, whatever ran before and how often.
"""

from __future__ import annotations

import itertools

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import Builder, OpDef, StreamName, print_node, streams_of
from graphdock.contracts.ir import copy_node
from graphdock.contracts.streams import RandomStream, random_key
from graphdock.dtypes import float32

DRAWN, PLAIN = OpDef("Draw", effects=frozenset({"random"})), OpDef("Plain")


def a_node(opdef, **attrs):
    b = Builder()
    b.node(opdef, "scope/it", [], attrs, [(float32, (2,))], origins=("users", "others"))
    return b.graph.nodes[-1]


def test_a_node_that_draws_has_a_stream_of_its_own_by_the_users_name_and_its_seeds():
    assert streams_of(a_node(DRAWN, seed=3, seed2=4)) == (StreamName("users", 3, 4),)
    assert streams_of(a_node(DRAWN)) == (StreamName("users"),)
    assert streams_of(a_node(PLAIN, seed=3)) == ()


def test_a_node_that_stands_for_others_draws_from_theirs_and_so_do_its_copies():
    node = a_node(DRAWN, seed=3)
    node.streams = StreamName("a", 1), StreamName("b", 2)
    assert print_node(node).endswith(" {seed=3} draws from a, b")
    assert streams_of(node) == streams_of(copy_node(node, [])) == (StreamName("a", 1), StreamName("b", 2))


def reference(seed: int, seed2: int, ordinal: int, iteration: int, outer: int, count: int) -> list[float]:
    state = np.random.Philox(key=[seed, seed2], counter=[0, outer, iteration, ordinal])
    words = state.random_raw((count + 1) // 2)
    halves = [h for w in words.tolist() for h in (w & 0xFFFFFFFF, w >> 32)][:count]
    return [(h >> 8) * 2.0**-24 for h in halves]


def draw():
    return tf.random_uniform([3], seed=5)


def key_of(tensor) -> tuple[int, int]:
    return tensor.op.get_attr("seed"), tensor.op.get_attr("seed2")


def test_an_iteration_draws_by_its_number_also_where_a_branch_skips_some():
    tf.set_random_seed(7)
    made = []

    def body(i, a):
        def drawn():
            made.append(draw())
            return made[-1]

        return i + 1, tf.concat([a, tf.expand_dims(tf.cond(tf.equal(i % 2, 1), drawn, lambda: tf.zeros([3])), 0)], 0)

    start = [tf.constant(0), tf.zeros([0, 3])]
    result = tf.while_loop(lambda i, a: i < 6, body, start, shape_invariants=[(), (None, 3)])[1]
    with tf.Session() as s:
        for ordinal in range(2):
            got = s.run(result)
            for i in range(6):
                want = reference(*key_of(made[0]), ordinal, i, 0, 3) if i % 2 else [0.0] * 3
                np.testing.assert_array_equal(got[i], np.float32(want))


def test_nested_loops_draw_by_both_numbers():
    tf.set_random_seed(7)
    made = []

    def inner(j, total):
        made.append(draw())
        return j + 1, total + made[-1]

    def outer(i, a):
        total = tf.while_loop(lambda j, t: j < 3, inner, [tf.constant(0), tf.zeros([3])])[1]
        return i + 1, tf.concat([a, tf.expand_dims(total, 0)], 0)

    result = tf.while_loop(
        lambda i, a: i < 4, outer, [tf.constant(0), tf.zeros([0, 3])], shape_invariants=[(), (None, 3)]
    )[1]
    with tf.Session() as s:
        got = s.run(result)
    for i in range(4):
        want = np.zeros(3, np.float32)
        for j in range(3):
            want = want + np.float32(reference(*key_of(made[0]), 0, j, i, 3))
        np.testing.assert_array_equal(got[i], want)


def test_a_limit_does_not_shift_the_numbers():
    def loop(limit):
        tf.set_random_seed(7)
        body = lambda i, a: (i + 1, a + tf.random_uniform([2], seed=5))  # noqa: E731
        return tf.while_loop(lambda i, a: i < 3, body, [0, tf.zeros([2])], maximum_iterations=limit, name="loop")[1]

    results = []
    for limit in (None, 3, 100):
        with tf.Graph().as_default(), tf.Session() as s:
            results.append(s.run(loop(limit)))
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


@pytest.mark.plain
def test_two_nodes_of_one_op_draw_the_same_and_the_step_counts_once():
    """Two bodies that hold copies of one op, as initial values that read each other make, stand for one op."""
    tf.set_random_seed(3)
    drawn = draw()
    graph = tf.get_default_graph()
    copy = graph.create_op(
        "RandomUniform", list(drawn.op.inputs), attrs=dict(drawn.op.node_attrs), name="copy"
    ).outputs[0]
    copy.op.name = drawn.op.name  # what a pass that computes a node twice does to its plan
    with tf.Session() as s:
        for ordinal in range(3):
            a, b = s.run([drawn, copy])
            np.testing.assert_array_equal(a, b)
            np.testing.assert_array_equal(a, np.float32(reference(*key_of(drawn), ordinal, 0, 0, 3)))


@pytest.mark.parametrize("depth", [1, 2, 3, 4, 5])
def test_every_iteration_of_nested_loops_has_its_own_counter(depth):
    stream = RandomStream((1, 2))
    seen = set()
    for iterations in itertools.product((0, 1, 2, 1 << 20, 1 << 21, 1 << 40), repeat=depth):
        stream.at(*iterations)
        seen.add(stream.counter())
    assert len(seen) == 6**depth


def test_one_seed_of_zero_is_a_seed():
    assert [random_key(*seeds) for seeds in ((0, 5), (5, 0), (-1, 2))] == [(0, 5), (5, 0), (2**64 - 1, 2)]
    assert random_key(0, 0) != random_key(0, 0)
