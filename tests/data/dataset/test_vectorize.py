"""Maps before batches: which are computed for whole batches, and that nobody sees it."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock_data.dataset.stages.batching import MappedBatch

ROWS = np.random.default_rng(0).normal(size=(7, 3)).astype(np.float32)
Y = np.arange(7)


def _uses_a_variable(x, y):
    with tf.variable_scope("", reuse=tf.AUTO_REUSE):
        return x * tf.get_variable("w", initializer=2.0), y


def _asserted(x, y):
    tf.Assert(tf.reduce_all(y < 7), [y])
    return x * 2.0, y


#: Function of a row of three and an integer -> whether it is computed for whole batches.
MAPS = {
    "arithmetic": (lambda x, y: (x * 2.0 - 1.0, y), True),
    "by a constant row": (lambda x, y: (x - ROWS.mean(0), y * 2), True),
    "transcendental": (lambda x, y: (tf.exp(tf.tanh(x)) ** 2.5, y), True),
    "nested": (lambda x, y: {"b": (tf.cast(y, tf.float32), tf.identity(x)), "a": tf.clip_by_value(x, -1.0, 1.0)}, True),
    "one component alone": (lambda x, y: tf.reshape(x, [3, 1]) * [[1.0], [0.0], [2.0]] + [3.0], False),
    "reshaped to another rank": (lambda x, y: (tf.reshape(x, [1, 3]) + [[1.0, 2.0, 3.0]], tf.one_hot(y, 4)), True),
    "a scalar beside a row": (lambda x, y: x * tf.cast(y, tf.float32), False),
    "a constant of higher rank": (lambda x, y: (x + [[1.0, 2.0, 3.0]], y), False),
    "a sum": (lambda x, y: (tf.reduce_sum(x), y), False),
    "integers divided by zero": (lambda x, y: (x, 12 // y, 12 % y), True),
    "a power of integers, which may fail": (lambda x, y: (x, tf.pow(y, y)), False),
    "a random number": (lambda x, y: (x + tf.random_uniform([3], seed=1), y), False),
    "a constant beside it": (lambda x, y: (x, y, 1.0), False),
    "a variable": (_uses_a_variable, False),
    "what prints": (lambda x, y: (tf.Print(x * 2.0, [y], first_n=0), y), False),
    "what is asserted": (_asserted, False),
    "python": (lambda x, y: (tf.py_func(lambda a: a + 1, [x], tf.float32), y), False),
    "one-hot vectors along the first axis": (lambda x, y: (x, tf.one_hot([y, y], 3, axis=0)), False),
}
#: What may stand between the map and the batch.
BETWEEN = {
    "nothing": lambda d: d,
    "repeat and take": lambda d: d.repeat(3).skip(2).take(11),
    "shuffle and shard": lambda d: d.shuffle(4, seed=3).shard(2, 1).repeat(2),
}


def elements(dataset):
    it = dataset.make_initializable_iterator()
    following, found = it.get_next(), []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(it.initializer)
        while True:
            try:
                found.append(session.run(following))
            except tf.errors.OutOfRangeError:
                return found


@pytest.mark.parametrize(
    ("name", "between"), [(n, b) for n, (_, moves) in MAPS.items() for b in BETWEEN if moves or b == "nothing"]
)
def test_batches_are_those_of_single_elements(name, between):
    function, vectorizes = MAPS[name]
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        mapped = BETWEEN[between](tf.data.Dataset.from_tensor_slices((ROWS, Y)).map(function))
        whole = mapped.batch(3)
        assert isinstance(whole._stage, MappedBatch) == vectorizes
        assert "BatchDataset" in repr(whole)
        rows, batches = elements(mapped), elements(whole)
        if name == "a random number":
            return
        alone = tf.data.Dataset.from_generator(lambda: iter(rows), mapped.output_types, mapped.output_shapes).batch(3)
        assert whole.output_shapes == alone.output_shapes and whole.output_types == alone.output_types
        want = elements(alone)
    assert len(batches) == len(want)
    for got, expected in zip(batches, want, strict=True):
        leaves = [tf.nest.flatten(v) for v in (got, expected)]
        for a, b in zip(*leaves, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


def test_unknown_dims_prefetches_and_threads_stay():
    rows = tf.data.Dataset.from_tensor_slices(ROWS)
    unknown = tf.data.Dataset.from_generator(lambda: iter(ROWS), tf.float32, [None])
    twice = lambda x: x * 2.0  # noqa: E731
    for dataset in (unknown.map(twice), rows.map(twice).prefetch(2), rows.map(twice, 2), rows.map(twice).cache()):
        assert not isinstance(dataset.batch(2)._stage, MappedBatch)


def test_a_captured_tensor_is_an_argument():
    scale = tf.placeholder(tf.float32, [3])
    dataset = tf.data.Dataset.from_tensor_slices(ROWS).map(lambda x: x * scale).batch(4)
    assert isinstance(dataset._stage, MappedBatch)
    it = dataset.make_initializable_iterator()
    following = it.get_next()
    with tf.Session() as session:
        for factor in ([1.0, 2.0, 3.0], [0.0, 1.0, -1.0]):
            session.run(it.initializer, {scale: factor})
            np.testing.assert_array_equal(session.run(following), ROWS[:4] * np.float32(factor))


def test_the_function_runs_once_a_batch():
    calls = []
    dataset = tf.data.Dataset.from_generator(lambda: (calls.append(0) or row for row in ROWS), tf.float32, [3])
    following = dataset.map(tf.exp).batch(7).make_one_shot_iterator().get_next()
    with tf.Session() as session, np.errstate(over="raise"):
        np.testing.assert_array_equal(session.run(following), np.exp(ROWS))
    assert len(calls) == 7
