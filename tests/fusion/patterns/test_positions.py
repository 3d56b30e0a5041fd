"""The order that replacements of patterns go by: behind what is needed, and as late as can be."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.planning.translate import translate
from graphdock_fusion.patterns.positions import Positions

OPS = {"Neg": tf.negative, "Exp": tf.exp, "Sin": tf.sin, "Tanh": tf.tanh}


def level(seed):
    """A graph of operations that read one or two of those before them, or what is fed."""
    random = np.random.default_rng(seed)
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2])
        made = [x]
        for _ in range(30):
            a, b = (made[i] for i in random.integers(0, len(made), 2))
            made.append(OPS[random.choice(list(OPS))](a) if random.random() < 0.7 else a + b)
        return translate(made[1:], [], [(x, (2,))])


@pytest.mark.parametrize("last", [(), ("Tanh", "Sin"), ("Sin", "Tanh")])
def test_values_stand_behind_what_they_need_and_ops_that_come_last_as_late_as_can_be(last):
    for seed in range(5):
        graph = level(seed)
        positions = Positions(graph, last)
        at = {node: positions.of(node.outputs[0]) for node in graph.nodes}
        assert sorted(at.values()) == list(range(len(graph.nodes))) and positions.of(graph.inputs[0]) == -1
        for node in graph.nodes:
            assert all(positions.of(value) < at[node] for value in node.inputs)
        if not last:
            assert list(at.values()) == sorted(at.values()), "the level's own order"
            continue
        turn = {node: last.index(node.op) if node.op in last else -1 for node in graph.nodes}
        for node in graph.nodes:
            behind = {node}
            for other in sorted(graph.nodes, key=at.__getitem__)[at[node] + 1 :]:
                if not behind.isdisjoint([v.node for v in other.inputs]) or turn[other] >= turn[node]:
                    behind.add(other)
                assert other in behind, f"{other} could stand before {node}"


def test_a_node_that_needs_nothing_is_before_all():
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2])
        y = tf.sin(x) + tf.constant([1.0, 2.0])
        graph = translate([y], [], [(x, (2,))])
    constant, wave, total = (next(n.outputs[0] for n in graph.nodes if n.op == op) for op in ("Const", "Sin", "Add"))
    positions = Positions(graph)
    assert positions.of(constant) == -1 < positions.of(wave) < positions.of(total)
