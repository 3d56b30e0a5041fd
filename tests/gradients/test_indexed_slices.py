"""Rows of a large tensor: their static shape, the whole tensor, and sums of several."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import DTypeError, InvalidArgumentError
from graphdock.gradients.indexed_slices import concatenated


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


def run(x):
    with tf.Session() as sess:
        return sess.run(x)


def test_its_parts_are_tensors_and_its_facts_those_of_the_values(graph):
    slices = tf.IndexedSlices(np.ones((2, 3), np.float32), [4, 0], [5, 3])
    assert (slices.dtype, slices.graph, slices.name, slices.device) == (tf.float32, graph, slices.values.name, "")
    assert slices.op is slices.values.op and slices.indices.name in repr(slices)


def test_rows_without_a_whole_shape_know_all_dims_but_the_first():
    slices = tf.IndexedSlices(np.zeros((3, 4), np.float32), [0, 5, 9])
    assert slices.shape == [None, 4]
    assert tf.IndexedSlices(np.zeros((3, 4), np.float32), [0, 5, 9], [10, 4]).shape == [10, 4]


def test_the_whole_tensor_sums_rows_that_repeat():
    values, rows = np.arange(8, dtype=np.float64).reshape(4, 2), [3, 0, 3, 1]
    want = np.zeros((5, 2))
    np.add.at(want, rows, values)
    np.testing.assert_array_equal(run(tf.convert_to_tensor(tf.IndexedSlices(values, rows, [5, 2]))), want)


def test_the_whole_tensor_needs_its_shape():
    slices = tf.IndexedSlices(np.zeros((1, 2), np.float32), [0])
    with pytest.raises(InvalidArgumentError, match="its dense_shape is not known"):
        tf.convert_to_tensor(slices)


def test_indices_are_integers_and_there_is_no_cast():
    with pytest.raises(DTypeError, match="must be integers"):
        tf.IndexedSlices(np.zeros((1, 2)), [0.5])
    with pytest.raises(DTypeError, match="IndexedSlices of the wrong dtype"):
        tf.convert_to_tensor(tf.IndexedSlices(np.zeros((1, 2), np.float32), [0], [1, 2]), tf.float64)


def test_a_sum_of_several_is_the_sum_of_the_whole_tensors():
    parts = [
        tf.IndexedSlices(np.ones((2, 2)), np.array([0, 3], np.int32)),
        tf.IndexedSlices(2 * np.ones((1, 2)), np.array([3], np.int64), [4, 2]),
    ]
    whole = concatenated(parts)
    assert whole.indices.dtype is tf.int64
    assert run(tf.convert_to_tensor(whole)).tolist() == [[1, 1], [0, 0], [0, 0], [3, 3]]


def test_rows_of_two_index_types_are_joined_in_the_wider_one():
    table = tf.Variable(np.ones((5, 2), np.float32))
    y = tf.gather(table, np.array([1], np.int32)) + tf.gather(table, np.array([2], np.int64))
    (slices,) = tf.gradients(y, [table])
    assert slices.indices.dtype is tf.int64 and slices.shape == [5, 2]
    with pytest.raises(tf.errors.DTypeError, match="IndexedSlices of the wrong dtype"):
        tf.convert_to_tensor(slices, tf.float64)
