"""Large constants of a task: graphs that have the same one share an array, which ends with the last of them."""

from __future__ import annotations

import gc

import graphdock as tf
import numpy as np
from graphdock_cluster.constants import Constants


def graph_of(*arrays):
    made = tf.Graph()
    with made.as_default():
        for array in arrays:
            tf.constant(array)
        tf.cond(tf.placeholder(tf.bool, []), lambda: tf.constant(arrays[0]) + 1.0, lambda: tf.constant(arrays[0]))
    return made


def arrays_of(graph):
    found, stack = [], [graph]
    while stack:
        for op in stack.pop().get_operations():
            found += [v for v in op.node_attrs.values() if isinstance(v, np.ndarray) and v.nbytes > 1024]
            stack.extend(op.bodies)
    return found


def test_graphs_share_equal_arrays_in_bodies_too_and_they_end_with_the_last_graph():
    a, b = np.arange(1000.0), np.arange(1000)
    a[0] = np.nan  # bits are compared, not numbers
    constants = Constants()
    graphs = [graph_of(a, b), graph_of(a)]
    constants.share(graphs[0], {"a": a.copy(), "b": b})
    constants.share(graphs[1], {"a": a.copy()})
    assert {id(v) for g in graphs for v in arrays_of(g)} == {id(v) for v in constants.find(["a", "b", "c"]).values()}
    assert sorted(constants.find(["a", "b", "c"])) == ["a", "b"]
    del graphs[0]
    gc.collect()
    assert sorted(constants.find(["a", "b"])) == ["a"]
