"""Batches of what threads queue."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest


def counter(limit):
    variable = tf.Variable(0, trainable=False, collections=[tf.GraphKeys.LOCAL_VARIABLES])
    return variable.count_up_to(limit)


def all_of(fetches):
    """What steps give until there is no more."""
    found = []
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        try:
            while True:
                found.append(session.run(fetches))
        except tf.errors.OutOfRangeError:
            coord.request_stop()
        coord.join(threads)
    return found


def test_batches_in_order():
    n = counter(10)
    x, text = tf.train.batch([n, tf.as_string(n)], 4)
    assert x.shape == [4] and x.name == "batch:0"
    found = all_of([x, text])
    assert [f[0].tolist() for f in found] == [[0, 1, 2, 3], [4, 5, 6, 7]] and found[1][1].tolist() == [
        b"4",
        b"5",
        b"6",
        b"7",
    ]
    assert any("fraction_of_32_full" in s.op.name for s in tf.get_collection(tf.GraphKeys.SUMMARIES))


def test_a_dict_and_a_last_batch_that_is_smaller():
    n = counter(10)
    batch = tf.train.batch({"b": n * 2, "a": n}, 4, allow_smaller_final_batch=True)
    assert batch["a"].shape.as_list() == [None]
    found = all_of(batch)
    assert [f["b"].tolist() for f in found] == [[0, 2, 4, 6], [8, 10, 12, 14], [16, 18]]


def test_rows_of_batches_and_rows_that_are_kept():
    n = counter(4)
    rows = tf.stack([n, n + 100, n + 200])
    keep = tf.equal(rows % 2, 0)
    kept = tf.train.maybe_batch([rows], keep, 2, enqueue_many=True)
    assert [f.tolist() for f in all_of(kept)] == [[0, 100], [200, 2], [102, 202]]


def test_what_is_kept_by_a_scalar():
    n = counter(9)
    kept = tf.train.maybe_batch([n], tf.equal(n % 3, 0), 1)
    assert [f.tolist() for f in all_of(kept)] == [[0], [3], [6]]


def test_padding():
    n = counter(4)
    (row,) = [tf.fill([n], n)]
    padded = tf.train.batch([row], 2, dynamic_pad=True)
    assert padded.shape.as_list() == [2, None]
    assert [f.tolist() for f in all_of(padded)] == [[[0], [1]], [[2, 2, 0], [3, 3, 3]]]


def test_sparse_tensors():
    n = tf.cast(counter(4), tf.int64)
    sparse = tf.SparseTensor(tf.reshape(n, [1, 1]), tf.reshape(tf.cast(n, tf.float32), [1]), [5])
    one, sparse_batch = tf.train.batch([n, sparse], 2)
    found = all_of(sparse_batch)
    assert [f.indices.tolist() for f in found] == [[[0, 0], [1, 1]], [[0, 2], [1, 3]]]
    assert [f.dense_shape.tolist() for f in found] == [[2, 5]] * 2 and one.dtype is tf.int64


def test_several_lists():
    one, two = counter(20), counter(20)
    joined = tf.train.batch_join([[one, tf.constant("a")], [two, tf.constant("b")]], 10)
    found = all_of(joined)
    values = np.concatenate([f[0] for f in found])
    assert sorted(values.tolist()) == sorted([*range(20)] * 2)
    with pytest.raises(TypeError, match="consistent"):
        tf.train.batch_join([[tf.constant(1)], [tf.constant("x")]], 2)


def test_shuffled():
    x = tf.train.shuffle_batch([counter(60)], 10, capacity=40, min_after_dequeue=20, num_threads=2, seed=3)
    values = np.concatenate(all_of(x)).tolist()
    assert sorted(values) == list(range(60)) and values != sorted(values)
    joined = tf.train.shuffle_batch_join([[counter(10)], [counter(10)]], 5, 20, 5)
    assert joined.shape == [5]
    with pytest.raises(ValueError, match="min_after_dequeue"):
        tf.train.shuffle_batch([tf.constant(1)], 2, capacity=5, min_after_dequeue=5)


def test_what_cannot_be():
    with pytest.raises(ValueError, match="at least one"):
        tf.train.batch([], 2)
    with pytest.raises(ValueError, match="rank"):
        tf.train.batch([tf.placeholder(tf.float32)], 2)
    with pytest.raises(ValueError, match="vector"):
        tf.train.maybe_batch([tf.constant(1)], [True], 2)


def test_lists_of_dicts_must_have_the_same_keys():
    lists = [{"a": 1, "b": 2}, {"a": 1, "c": 2}]
    for join in (tf.train.batch_join, tf.train.maybe_batch_join):
        with pytest.raises(ValueError, match=r"same keys\n  expected \['a', 'b'\], got \['a', 'c'\]"):
            join(lists, *([True] if join is tf.train.maybe_batch_join else []), batch_size=2)
    with pytest.raises(ValueError, match="same keys"):
        tf.train.shuffle_batch_join([{"a": 1}, [2]], 2, 8, 4)


def test_padded_dimensions_are_those_that_all_lists_know():
    unknown = tf.fill(tf.expand_dims(tf.placeholder_with_default(2, []), 0), 1)
    for lists in ([[unknown], [tf.fill([3], 7)]], [[tf.fill([3], 7)], [unknown]]):
        assert tf.train.batch_join(lists, 4, dynamic_pad=True).shape.as_list() == [4, None]
