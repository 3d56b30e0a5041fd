"""Nodes beside loops: what they compute is what they are said to be. Loops whose lists they serve run over all their cases."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest


@pytest.mark.parametrize("start,count,size", [(0, 4, 4), (2, 3, 5), (1, 2, 6), (0, 0, 3)])
@pytest.mark.parametrize("fed", [False, True])
def test_parts_of_rows_are_read_and_zeros_stand_around_what_is_written(start, count, size, fed):
    """Slices of rows, paddings and indices, of numbers and of scalars of the step."""
    x = tf.placeholder(tf.float32, [size, 2], name="x")
    end = tf.placeholder(tf.int32, [], name="end") if fed else start + count
    feed = {x: np.arange(2.0 * size).reshape(size, 2) + 1, **({end: start + count} if fed else {})}
    rows = tf.TensorArray(tf.float32, size=size).unstack(x)
    out = tf.TensorArray(tf.float32, size=size, element_shape=[2])
    loop = tf.while_loop(lambda i, _: i < end, lambda i, o: (i + 1, o.write(i, rows.read(i) * 3)), [start, out])
    y = loop[1].stack()
    want = np.zeros((size, 2))
    want[start : start + count] = 3 * feed[x][start : start + count]
    slope = np.zeros((size, 2))
    slope[start : start + count] = 3
    with tf.Session() as sess:
        got = sess.run([y, tf.gradients(y, x)[0]], feed)
        ops = [row.op for row in sess.explain(y, feed).rows]
    np.testing.assert_array_equal(got[0], want)
    np.testing.assert_array_equal(got[1], slope)
    assert not count or "TensorListSetItem" not in ops and "TensorListGetItem" not in ops
