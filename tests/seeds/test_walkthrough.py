"""The walkthrough's TensorFlow 1 listing."""

from __future__ import annotations

import graphdock as tf


def test_the_placeholder_listing():
    with tf.Graph().as_default():
        # Define the input "placeholder" data to the computation graph and the operations that should be run
        x = tf.placeholder(tf.float32)
        mul = tf.matmul(x, x)

        # Run the operations on some data i.e. feed data into the computation graph
        with tf.Session() as sess:
            m = sess.run(mul, feed_dict={x: [[2.0]]})
    assert m.tolist() == [[4.0]]
