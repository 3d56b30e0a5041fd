"""Parts of variables, as of before ``tf.get_variable`` took a partitioner; names are those that TensorFlow 2.21 prints."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest


def test_parts_of_a_variable_and_their_names():
    whole = np.arange(12, dtype=np.float32).reshape(4, 3)
    rows = tf.create_partitioned_variables([4, 3], [2, 1], tf.constant_initializer(1.5), name="p")
    with tf.variable_scope("outer"):
        columns = tf.create_partitioned_variables([4, 3], [1, 3], lambda shape, dtype, partition_info: tf.zeros(shape))
    single = tf.create_partitioned_variables(whole.shape, [1, 1], tf.constant_initializer(whole), trainable=False)
    assert [v.op.name for v in rows] == ["p/part_0", "p/part_1"]
    assert [v.op.name for v in columns] == [f"outer/PartitionedVariable/part_{i}" for i in range(3)]
    assert [v.op.name for v in single] == ["PartitionedVariable/part_0"]
    assert tf.trainable_variables() == rows + columns
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert [v.shape for v in sess.run(rows)] == [(2, 3)] * 2 and [v.shape for v in sess.run(columns)] == [
            (4, 1)
        ] * 3
        np.testing.assert_array_equal(sess.run(single[0]), whole)


def test_parts_are_shared_and_what_does_not_fit_is_refused():
    rows = tf.create_partitioned_variables([4, 3], [2, 1], tf.zeros_initializer(), name="p")
    assert tf.create_partitioned_variables([4, 3], [2, 1], tf.zeros_initializer(), name="p", reuse=True) == rows
    for slicing in ([2, 3], [2], [2, 0]):
        with pytest.raises(ValueError, match="partitioner"):
            tf.create_partitioned_variables([4, 3], slicing, tf.zeros_initializer())


def test_a_scope_with_the_arguments_of_before_1_0():
    with tf.op_scope([tf.constant(1.0)], None, "default") as scope:
        assert (scope, tf.constant(1.0).op.name) == ("default/", "default/Const")
