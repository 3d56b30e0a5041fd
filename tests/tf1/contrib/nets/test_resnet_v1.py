"""A residual network of two small blocks: names as checkpoints have them, strides, dilation, classes."""

import graphdock as tf
import numpy as np
from graphdock_tf1.contrib.arg_scope import arg_scope
from graphdock_tf1.contrib.nets import resnet_utils, resnet_v1

BLOCKS = [resnet_v1.resnet_v1_block("block1", 2, 2, 2), resnet_v1.resnet_v1_block("block2", 4, 1, 1)]


def build(x, **kwargs):
    with arg_scope(resnet_utils.resnet_arg_scope()):
        return resnet_v1.resnet_v1(x, BLOCKS, scope="net", **kwargs)


def test_names_and_shapes():
    net, points = build(tf.zeros([2, 33, 33, 3]), num_classes=5)
    assert net.shape.as_list() == [2, 5] and points["net/block1"].shape.as_list() == [2, 5, 5, 8]
    names = {v.op.name for v in tf.global_variables()}
    assert "net/block1/unit_1/bottleneck_v1/conv2/BatchNorm/moving_mean" in names and "net/logits/biases" in names
    assert "net/block1/unit_1/bottleneck_v1/shortcut/weights" in names
    assert "net/block1/unit_2/bottleneck_v1/shortcut/weights" not in names
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        np.testing.assert_allclose(sess.run(points["predictions"]).sum(1), 1, rtol=1e-5)


def test_dilation_sees_what_the_strided_network_sees():
    """Every second pixel of the dense features is the strided network's."""
    x = np.random.default_rng(0).normal(size=(1, 33, 33, 3)).astype(np.float32)
    strided, _ = build(x, global_pool=False, is_training=False)
    dense, _ = build(x, global_pool=False, is_training=False, output_stride=4, reuse=True)
    assert (strided.shape.as_list(), dense.shape.as_list()) == ([1, 5, 5, 16], [1, 9, 9, 16])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        few, all_ = sess.run([strided, dense])
    np.testing.assert_allclose(all_[:, ::2, ::2], few, rtol=1e-4, atol=1e-5)


def test_the_network_of_fifty_layers():
    with arg_scope(resnet_utils.resnet_arg_scope()):
        net, _ = resnet_v1.resnet_v1_50(tf.placeholder(tf.float32, [None, 32, 32, 3]), 7, is_training=False)
    assert net.shape.as_list() == [None, 7] and len(tf.global_variables()) == 53 * 5 + 2
