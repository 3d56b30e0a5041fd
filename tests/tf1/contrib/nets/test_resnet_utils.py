"""Parts of residual networks beside a convolution of the whole image."""

import graphdock as tf
import numpy as np
import pytest
from graphdock_tf1.contrib.nets import resnet_utils, resnet_v1


@pytest.mark.parametrize("size", [7, 8])
def test_a_stride_sees_the_pixels_that_it_would_choose_of_all(size):
    """``conv2d_same`` with a stride is the convolution without one, subsampled: SAME is not for even sizes."""
    x = np.random.default_rng(0).normal(size=(1, size, size, 2)).astype(np.float32)
    with tf.variable_scope("a") as scope:
        strided = resnet_utils.conv2d_same(x, 3, 3, 2, scope="conv")
    with tf.variable_scope(scope, reuse=True):
        chosen = resnet_utils.subsample(resnet_utils.conv2d_same(x, 3, 3, 1, scope="conv"), 2)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        np.testing.assert_allclose(*sess.run([strided, chosen]), rtol=1e-4, atol=1e-6)


def test_a_stride_that_is_not_reached_is_an_error():
    blocks = [resnet_v1.resnet_v1_block(f"block{number}", 1, 2, 2) for number in (1, 2)]
    for stride, count in ((12, 1), (3, 2)):
        with tf.Graph().as_default(), pytest.raises(ValueError, match="cannot be reached"):
            resnet_utils.stack_blocks_dense(tf.zeros([1, 8, 8, 4]), blocks[:count], stride)
