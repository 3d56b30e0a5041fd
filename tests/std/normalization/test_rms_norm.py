"""RMS normalisation: its inverse alone has a gradient too, and so has the gradient of that."""

from __future__ import annotations

import graphdock as tf
import numpy as np
from graphdock import ops


def test_the_gradient_of_the_inverse_alone() -> None:
    x = tf.constant(np.random.default_rng(3).normal(size=(4, 5)))
    by_hand = tf.rsqrt(tf.reduce_mean(tf.square(x), -1) + 0.25)
    made = ops.apply_op("RMSNorm", x=x, gamma=np.ones(5), epsilon=0.25)[1]
    found = []
    for inverse in (by_hand, made):
        (first,) = tf.gradients(tf.sin(inverse), x)
        found += [inverse, first, *tf.gradients(tf.square(first), x)]
    with tf.Session() as session:
        values = session.run(found)
    for want, got in zip(values[:3], values[3:], strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10)
