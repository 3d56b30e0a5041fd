"""A table in shards learns as one table does, whatever the optimizer keeps for each row.

What a lookup finds, and its gradient, stands in tests/std/nn/test_functions.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphdock as tf
import numpy as np
import pytest

OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "adam": lambda: tf.train.AdamOptimizer(0.1),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.1, momentum=0.5),
    "lazy adam": lambda: tf.contrib.opt.LazyAdamOptimizer(0.1),
}
#: Of a table of 10 rows, one shard reads none of its rows in the first step, and row 0 of no shard is read in the others.
STEPS = [[[0, 6], [6, 9]], [[1, 5], [5, 8]], [[4, 5], [8, 1]], [[7, 8], [2, 1]]]


def learned(make: Callable[[], Any], shards: int, strategy: str) -> np.ndarray:
    """The table after a few steps, as rows by id."""
    start = np.random.RandomState(0).randn(10, 2)
    if strategy == "mod":
        order = np.concatenate([np.arange(10)[k::shards] for k in range(shards)])
    else:
        order = np.arange(10)
    with tf.Graph().as_default(), tf.Session() as sess:
        parts = tf.get_variable(
            "table", initializer=tf.constant(start[order]), partitioner=tf.fixed_size_partitioner(shards)
        )
        ids = tf.placeholder(tf.int64, [None, 2])
        rows = tf.nn.embedding_lookup(parts, ids, partition_strategy=strategy)
        train = make().minimize(tf.reduce_sum(tf.square(rows - [[[1.0, 2.0]]])))
        sess.run(tf.global_variables_initializer())
        for step in STEPS:
            sess.run(train, {ids: step})
        found = np.empty((10, 2))
        found[order] = sess.run(tf.convert_to_tensor(parts))
    assert (np.abs(found - start).max(1) > 0)[np.unique(STEPS)].all()
    return found


@pytest.mark.parametrize("strategy", ["div", "mod"])
@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.sampled(2)
def test_shards_learn_as_one_table_does(name: str, strategy: str) -> None:
    """The ids of other shards counted as row 0, with a gradient of zero: its momentum moved it once more in every step."""
    make = OPTIMIZERS[name]
    np.testing.assert_allclose(learned(make, 3, strategy), learned(make, 1, strategy), rtol=1e-12)


def test_a_shard_is_asked_for_its_own_ids_alone() -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        shards = [tf.Variable(np.zeros((3, 2)), name=f"shard{k}") for k in range(3)]
        ids = tf.placeholder(tf.int32, [None])
        rows = tf.nn.embedding_lookup(shards, ids, "div")
        assert rows.shape.as_list() == [None, 2]
        found = [g.indices for g in tf.gradients(rows, shards)]
        sess.run(tf.global_variables_initializer())
        named = [each.tolist() for each in sess.run(found, {ids: [8, 4, 8, 3]})]
        assert named == [[], [1, 0], [2, 2]]
        assert sess.run(rows, {ids: []}).shape == (0, 2)
