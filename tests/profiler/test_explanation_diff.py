"""Differences of two explanations: nodes that moved, came or went, and nothing else."""

from __future__ import annotations

import graphdock as tf
import numpy as np
from graphdock.plugin.host import Host
from graphdock_profiler.explanation_diff import changes, facts


def explained(fetched, feeds, **fields):
    with tf.Session(config=tf.SessionConfig(**fields), host=Host()) as sess:
        return sess.explain(fetched, feeds)


def test_nodes_that_a_pass_drops_are_gone_and_come_the_other_way_round():
    x = tf.placeholder(tf.float32, [3], name="x")
    y = tf.sin(tf.multiply(x, 1.0, name="by_one"), name="y")
    feeds = {x: np.ones(3)}
    plain, simple = explained(y, feeds, passes={"algebra": False}), explained(y, feeds)
    assert [(c.node, c.after) for c in changes(plain, simple)] == [("by_one", None)]
    assert plain.diff(simple).splitlines()[-1].startswith("- by_one (Mul): cpu.mul on cpu:0")
    assert simple.diff(plain).splitlines()[-1].startswith("+ by_one (Mul): cpu.mul on cpu:0")
    assert facts(plain, simple)["changes"] == [{"node": "by_one", "before": ["Mul", "cpu:0", "cpu.mul"], "after": None}]


def test_the_same_settings_make_no_difference():
    x = tf.placeholder(tf.float32, [3])
    y = tf.sin(x)
    one, other = (explained(y, {x: np.ones(3)}) for _ in range(2))
    assert changes(one, other) == []
