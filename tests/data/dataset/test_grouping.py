"""Windows and buckets: what they refuse, and that no element is lost."""

from __future__ import annotations

import collections

import graphdock as tf
import numpy as np
import pytest

Dataset, experimental = tf.data.Dataset, tf.data.experimental


def drained(dataset):
    with tf.Session() as session:
        element, found = dataset.make_one_shot_iterator().get_next(), []
        while True:
            try:
                found.append(session.run(element))
            except tf.errors.OutOfRangeError:
                return found


def test_an_element_that_is_longer_than_its_bucket_is_refused():
    rows = Dataset.from_tensor_slices([1, 9, 2]).map(lambda n: tf.fill([n], n))
    by = experimental.bucket_by_sequence_length(lambda row: tf.size(row), [3], [2, 1], pad_to_bucket_boundary=True)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"length < max\(bucket_boundaries\)"):
        drained(rows.apply(by))


def test_random_lengths_come_in_batches_of_their_buckets():
    rng = np.random.default_rng(3)
    lengths = rng.integers(0, 30, 200)
    boundaries, sizes = [4, 9, 20], [7, 5, 3, 2]
    rows = Dataset.from_tensor_slices(lengths).map(lambda n: tf.fill([tf.cast(n, tf.int32)], n + 1))
    batches = drained(rows.apply(experimental.bucket_by_sequence_length(tf.size, boundaries, sizes)))
    found = []
    for batch in batches:
        mine = (batch > 0).sum(axis=1)
        buckets = set(np.digitize(mine, boundaries).tolist())
        assert len(buckets) == 1 and len(batch) <= sizes[buckets.pop()] and batch.shape[1] == mine.max()
        found += mine.tolist()
    assert collections.Counter(found) == collections.Counter(lengths.tolist())
    assert sum(len(batch) == sizes[np.digitize(batch.shape[1], boundaries)] for batch in batches) >= len(batches) - 4


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: experimental.group_by_window(lambda x: x, lambda k, w: w), ValueError, "not both"),
        (lambda: experimental.group_by_window(lambda x: x, lambda k, w: w, 1, lambda k: k), ValueError, "not both"),
        (lambda: experimental.group_by_window(lambda x: tf.cast(x, tf.int32), lambda k, w: w, 2), ValueError, "int64"),
        (lambda: experimental.group_by_window(lambda x: x, lambda k, w: k, 2), TypeError, "Dataset"),
        (lambda: experimental.bucket_by_sequence_length(lambda x: x, [1, 2], [1, 2]), ValueError, "must equal"),
    ],
)
def test_what_does_not_fit_is_refused(make, error, words):
    with pytest.raises(error, match=words):
        Dataset.range(3).apply(make())


def test_windows_are_resumed_after_an_error_of_their_dataset():
    def reduce(key, window):
        return window.map(lambda x: tf.check_numerics(1.0 / tf.cast(x - 2, tf.float32), "bad"))

    dataset = Dataset.range(5).apply(experimental.group_by_window(lambda x: x % 2, reduce, 5))
    element = dataset.make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert session.run(element) == -0.5
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(element)
        assert [session.run(element) for _ in range(3)] == [0.5, -1.0, 1.0]
