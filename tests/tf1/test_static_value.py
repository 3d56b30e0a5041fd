"""Values that are known while the graph is built; what TensorFlow 2.21's ``get_static_value`` gives of the same tensors."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest

fed = lambda shape: tf.placeholder(tf.float32, shape)  # noqa: E731

KNOWN = {
    "constant": (lambda: tf.constant([1.5, 2.0]), np.float32([1.5, 2.0])),
    "string": (lambda: tf.constant("a"), np.array(b"a", object)),
    "shape": (lambda: tf.shape(fed([2, 3])), np.int32([2, 3])),
    "shape, wide": (lambda: tf.shape(fed([2]), out_type=tf.int64), np.int64([2])),
    "size": (lambda: tf.size(fed([2, 3])), np.int32(6)),
    "rank": (lambda: tf.rank(fed([None, 3])), np.int32(2)),
    "range": (lambda: tf.range(1, 6, 2), np.int32([1, 3, 5])),
    "cast": (lambda: tf.cast(tf.constant([1.7]), tf.int32), np.int32([1])),
    "fill": (lambda: tf.fill([2, 2], 3.0), np.full((2, 2), 3, np.float32)),
    "concat": (lambda: tf.concat([tf.shape(fed([4, 2])), [7]], 0), np.int32([4, 2, 7])),
    "stack": (lambda: tf.stack([tf.constant([1, 2]), tf.constant([3, 4])], axis=1), np.int32([[1, 3], [2, 4]])),
    "equal": (lambda: tf.equal(tf.constant([1, 2]), [1, 3]), np.array([True, False])),
    "not equal": (lambda: tf.not_equal(tf.constant(1), 2), np.array(True)),
}


@pytest.mark.parametrize("case", KNOWN)
def test_known(case):
    make, want = KNOWN[case]
    tensor = make()
    got = tf.contrib.util.constant_value(tensor)
    assert got.dtype == tensor.dtype.as_numpy_dtype
    np.testing.assert_array_equal(got, want)


def test_not_known():
    x = fed([None])
    for tensor in (
        x,
        tf.shape(x),
        tf.size(x),
        tf.rank(fed(None)),
        tf.range(tf.shape(x)[0]),
        tf.stack([1, tf.shape(x)[0]]),
    ):
        assert tf.get_static_value(tensor) is None
    assert tf.get_static_value(tf.Variable(1.0)) is None
    assert tf.contrib.util.constant_value(tf.stack([2, tf.shape(x)[0]]), partial=True).tolist() == [2, None]
